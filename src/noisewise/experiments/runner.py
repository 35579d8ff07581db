"""Runs a study: trials in parallel, each batch written once, an interrupted run continued.

A study is a module with

``TITLE``, ``CLAIM``
    a line and a paragraph for the page;
``TRIALS``, ``ROUNDS``
    the default scale;
``cells(rounds)``
    the settings, a list of dicts; a user's algorithms are added to each as ``own``; a study with
    more ``policies`` takes that word too. Raises `MissingData` where a package is not installed
    whose data the study reads;
``data(cell, rng)``
    the rows of one trial of one cell, a list of dicts;
``plot(table)``, ``holds(table)``, ``numbers(table)``
    the figure, what is claimed and whether it held (a bool, or a `Verdict` that says what was
    measured), and a small table for the page;
``condense(rows)``
    (optional) what those three are given in place of the table: the moments of some trials
    (`moments.of`), which are joined, so that no more than a thousand trials of a cell are in
    memory at once. Without it the whole table is read;
``CLOCKED``
    (optional) columns that are measured times: they differ from run to run, the digest leaves
    them out;
``DECISIONS``
    (optional) True where the data depend on choices between near equals: there the last bit of a
    number, in which processors differ, may change all that follows, and so the digest.

Every (cell, trial) has its own child of the seed, so the table does not depend on the number of
jobs, on the order of work, or on how often the run was interrupted. Finished batches are kept, and
used again by runs of the same sources and versions.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import joblib
import numpy as np
import pandas as pd
from joblib.externals.loky.process_executor import TerminatedWorkerError
from tqdm import tqdm

from ..checks import find
from ..protocols import Policy, Regressor, trait
from ..regression import REGRESSORS
from ..storage import files
from ..support import provenance, worker_versions
from . import EXPERIMENTS, Record, cluster, parts, plotting, tables, workers
from .ingredients import bandit_lineup
from .ingredients.datasets import MissingData
from .parts import Held
from .verdicts import Verdict

if TYPE_CHECKING:
    from distributed import Client

LEAST = 0.4  # seconds of a batch on Dask, which adds about a hundredth of a second to each


class Batch(NamedTuple):
    """Trials that were run: what a part holds of them, and the time they took."""

    cell: int
    trials: list[int]
    content: bytes
    seconds: float


def note(sentence: str) -> None:
    """Print a sentence beside the results."""
    print(sentence, file=sys.stderr)


@dataclass(frozen=True)
class UserAlgorithm:
    """An algorithm of the user's: where it is found, and how it differs from an earlier version."""

    name: str
    target: str
    spec: str
    source: str


# by the option that names them: the contract, the names taken, and what it must have
KINDS: dict[str, tuple[type, Collection[str], str]] = {
    "--regressor": (Regressor, REGRESSORS, "a regressor has start, predict and update"),
    "--policy": (Policy, bandit_lineup.ENTRIES, "a policy has start, select and update"),
}


def user_algorithms(option: str, targets: Sequence[str]) -> tuple[UserAlgorithm, ...]:
    """Find algorithms by MODULE:NAME; each is called NAME unless that is taken."""
    kind, taken, words = KINDS[option]
    found: dict[str, UserAlgorithm] = {}
    for target in dict.fromkeys(targets):
        thing = find(target)
        if not isinstance(thing, kind):
            raise ValueError(f"{option} {target} is {thing!r}; {words}")
        name = target.partition(":")[2]
        if name in taken or name in found:
            name = target
        spec = re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
        home = sys.modules[type(thing).__module__].__dict__.get("__file__")
        source = hashlib.sha256(Path(home).read_bytes() if home else b"").hexdigest()[:16]
        found[name] = UserAlgorithm(name, target, spec, source)
    return tuple(found.values())


@dataclass(frozen=True)
class Run:
    """One study at one scale, with the folder its results go to."""

    name: str
    out: Path
    trials: int | None = None
    rounds: int | None = None
    seed: int = 0
    jobs: int = 2
    own: tuple[UserAlgorithm, ...] = ()
    policies: str | None = None
    scheduler: str | None = None

    @property
    def study(self) -> ModuleType:
        """The module of the study."""
        return import_module(EXPERIMENTS[self.name])

    @property
    def command(self) -> str:
        """The command that makes this run again."""
        words = ["noisewise", "reproduce", self.name, "--trials", str(self.scale)]
        if self.rounds is not None:
            words += ["--rounds", str(self.rounds)]
        option = "--regressor" if self.name == "regressors" else "--policy"
        for each in self.own:
            words += [option, each.target]
        if self.policies:
            words += ["--policies", self.policies]
        return " ".join([*words, "--seed", str(self.seed)])

    @property
    def scale(self) -> int:
        """The number of trials."""
        return self.trials or int(self.study.TRIALS)

    @property
    def cells(self) -> list[Record]:
        """The settings of the study."""
        more = {"policies": self.policies} if self.policies else {}
        cells = list(self.study.cells(self.rounds or self.study.ROUNDS, **more))
        own = [asdict(each) for each in self.own]
        return [cell | ({"own": own} if own else {}) for cell in cells]

    @property
    def missing_requirement(self) -> str:
        """What is missing for the study, a package with its data, and how to get it."""
        try:
            self.study.cells(self.study.ROUNDS)
        except MissingData as error:
            return str(error)
        return ""

    @property
    def parts(self) -> Path:
        """Where finished batches lie: elsewhere for another seed, horizon, regressor or source."""
        own = inspect.getsource(self.study)  # a study may live outside the package
        key = json.dumps([self.name, self.seed, self.cells, own, provenance.key()], sort_keys=True)
        return self.out / "parts" / self.name / hashlib.sha256(key.encode()).hexdigest()[:16]

    def execute(self, tell: Callable[[str], object] = note) -> Record:
        """Run what is missing, then write table, figure and summary; return the summary.

        ``tell`` hears of parts of an earlier run that are damaged.
        """
        began = time.perf_counter()
        self.parts.mkdir(parents=True, exist_ok=True)
        for attempt in range(4):
            held = parts.read(self.parts, self.scale, tell)
            missing = self._missing(held)
            if not missing:
                break
            if attempt == 3:
                raise RuntimeError(
                    f"study {self.name}: workers were killed three times (memory?); run the same "
                    "command again to continue, with fewer --jobs"
                )
            with suppress(TerminatedWorkerError):  # what the other workers finished is on disk
                self._work(missing)
        known: Record = {}

        def fill(path: Path) -> None:  # nothing is replaced before all is summarised
            condense = trait(self.study, "condense", None)
            clocked = trait(self.study, "CLOCKED", ())
            digest, table = tables.write(held, path, clocked, condense)
            seconds = time.perf_counter() - began
            known["table"] = table
            known["summary"] = self._summary(table, digest, seconds, held.machines)

        files.replace(self.out / f"{self.name}.parquet", fill)
        plotting.write(self.study.plot, known["table"], self.out / f"{self.name}.svg")
        text = json.dumps(known["summary"], indent=1)
        files.replace(self.out / f"{self.name}.json", lambda p: p.write_text(text))
        return known["summary"]

    def _missing(self, held: Held) -> list[tuple[int, list[int]]]:
        """Return (cell, trials) that no part holds yet, in runs of consecutive trials."""
        missing = []
        for cell in range(len(self.cells)):
            missing += [(cell, run) for run in parts.runs(held.missing(cell), self.scale)]
        return missing

    def _work(self, missing: list[tuple[int, list[int]]]) -> None:
        """Run trials, and keep each batch of them when it is done."""
        folder, total = self.parts, sum(len(trials) for _, trials in missing)
        with (
            tqdm(total=total, desc=self.name, unit="trial", leave=False) as bar,
            closing(self._results(missing)) as results,
        ):
            for done, count in results:
                parts.keep(folder, done.cell, done.trials, done.content)
                bar.set_postfix(workers=count, refresh=False)
                bar.update(len(done.trials))

    def _results(
        self, missing: list[tuple[int, list[int]]]
    ) -> Generator[tuple[Batch, int], None, None]:
        """Yield finished batches, and how many workers there are: processes here, or on Dask."""
        if self.scheduler is not None:
            with cluster.connection(self.scheduler) as client:
                yield from self._on_dask(client, missing)
        elif (client := cluster.chosen_client()) is not None:
            yield from self._on_dask(client, missing)
        else:
            size = self._batch_size(self.jobs)
            batches = [(cell, run) for cell, trials in missing for run in parts.runs(trials, size)]
            jobs = min(self.jobs, len(batches))
            with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
                pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
                batch = joblib.delayed(partial(_local_batch, self, self.parts, os.getpid()))
                yield from ((done, jobs) for done in pool(batch(*each) for each in batches))

    def _on_dask(
        self, client: Client, missing: list[tuple[int, list[int]]]
    ) -> Iterator[tuple[Batch, int]]:
        """Yield the same from Dask; batches of short trials grow while there are enough of them."""
        jobs = cluster.threads(client)
        worker_versions.refuse_others(client)
        size, most = self._batch_size(jobs), max(1, self.scale // (2 * jobs))

        def batches() -> Iterator[tuple[int, list[int]]]:
            for cell, trials in missing:
                left = trials
                while left:
                    yield cell, left[:size]
                    left = left[size:]

        batch = partial(_remote_batch, self, worker_versions.wanted())
        for done, count in cluster.results(client, batch, batches()):
            yield done, count
            enough = math.ceil(len(done.trials) * LEAST / done.seconds)
            size = min(most, max(size, enough))

    def _batch_size(self, jobs: int) -> int:
        """Return a number of trials small enough to share out."""
        return max(1, min(25, self.scale // (2 * jobs)))

    def _summary(
        self, table: pd.DataFrame, digest: str, seconds: float, machines: list[dict[str, str]]
    ) -> Record:
        study = self.study
        found: dict[str, Verdict | bool] = study.holds(table)
        verdicts = {c: v if isinstance(v, Verdict) else Verdict(v) for c, v in found.items()}
        return {
            "study": self.name,
            "title": study.TITLE,
            "claim": study.CLAIM,
            "command": self.command,
            "seed": self.seed,
            "trials": self.scale,
            "specs": self.cells,
            "constants": _constants(study),
            "holds": {c: bool(v.held) for c, v in verdicts.items() if v.held is not None},
            "measured": {claim: verdict.measured for claim, verdict in verdicts.items()},
            "numbers": json.loads(study.numbers(table).to_json(orient="split", index=False)),
            "digest": digest,
            "decisions": trait(study, "DECISIONS", False),
            "seconds": round(seconds, 1),
            "sources": provenance.sources(),
            "versions": provenance.versions(),
            "machines": machines,
        }


def _local_batch(run: Run, folder: Path, driver: int, cell: int, trials: list[int]) -> Batch:
    workers.end_with(driver)
    if run.parts != folder:
        raise ValueError("the sources changed while the study ran; run the same command again")
    return _batch(run, cell, trials)


def _remote_batch(run: Run, wanted: dict[str, str], cell: int, trials: list[int]) -> Batch:
    worker_versions.require(wanted)
    return _batch(run, cell, trials)


def _batch(run: Run, cell: int, trials: list[int]) -> Batch:
    began, setting = time.perf_counter(), run.cells[cell]
    study_key = int.from_bytes(hashlib.sha256(run.name.encode()).digest()[:4], "big")
    rows = []
    for trial in trials:
        seed = np.random.SeedSequence(run.seed, spawn_key=(study_key, cell, trial))
        made = run.study.data(setting, np.random.default_rng(seed))
        if not made:
            raise ValueError(f"study {run.name}: data({setting}) is empty; return at least one row")
        rows += [{**row, "trial": trial, "_cell": cell} for row in made]
    return Batch(cell, trials, parts.content_of(rows), time.perf_counter() - began)


def _constants(study: ModuleType) -> Record:
    """Return the numbers a study is set up with, its names in capitals."""
    named = {n: v for n, v in vars(study).items() if n.isupper() and n not in ("TITLE", "CLAIM")}
    return json.loads(json.dumps(named, default=repr))
