"""A model of a file: surveyed in a first pass, learnt row by row in a second, then as a batch."""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from tqdm import tqdm

from ..estimators.online_glm import OnlineGLM
from ..estimators.summary import Summary
from ..estimators.width import warning
from ..evaluation.progressive.players import EstimatorPlayer
from ..evaluation.progressive.result import Evaluation
from ..evaluation.progressive.running_mean import RunningMean
from ..evaluation.progressive.textbook import NAMES, Textbook
from ..evaluation.progressive.validation import Validation
from ..protocols import Array
from ..support.printing import clean, count_of
from ..support.shell_words import in_shell_words
from .choosing import Choice, Options, choose
from .columns import Use, encode, without_identifiers
from .diagnostics import KeptRows, Residuals
from .encoding import Encoding
from .identifiers import in_time
from .order import RowOrder
from .problems import require_usable
from .reading import chunks, names_of
from .survey import Column, survey

WORK = 2e8  # squares of columns, times rows, between two steps of a progress bar
FEWER = "name fewer of them in --features, or hash them: OnlineGLM(hashed=1024) in Python"
Rows = tuple[Array, Array, Array, Array | None]
SEPARATED = (
    "The features separate the labels, or labels are all alike, or rows are too few: without ridge "
    "no coefficient is finite, and textbook intervals are infinite. Predictions use a ridge."
)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model of a file, and how it came about.

    ``spreads`` are the standard deviations of the features, ``binary`` the columns of 0 and 1
    alone, ``doubts`` what contradicts an assumption, and ``sorted_by_target`` says that errors one
    step ahead mean little.
    """

    source: str
    family: str
    model: OnlineGLM
    encoding: Encoding
    evaluation: Evaluation
    summary: Summary
    spreads: Array
    binary: frozenset[str]
    residuals: Residuals
    rows: int
    uses: tuple[Use, ...]
    column_notes: tuple[str, ...]
    notes: tuple[str, ...]
    doubts: tuple[str, ...]
    order: str
    sorted_by_target: bool
    seconds: float
    delta: float


def fit(path: Path, asked: Options) -> Fit:
    """Return a model of a column of a file, and how well its rows were predicted in their order.

    The file is read twice, by chunks: once to see what columns hold, which levels there are and
    what is missing, once to learn. Rows that are shuffled are held in memory.
    """
    began = perf_counter()
    names = names_of(path, folder=True)
    choice = choose(path, names, asked)
    found = survey(_shown(chunks(path, choice.columns, choice.words), "look"), choice.words)
    if not found:
        raise ValueError(f"{path} has column names but no rows; pass a file with rows")
    choice, why = without_identifiers(choice, found, names[0])
    require_usable(choice, found, asked.drop_missing)
    encoding, uses, column_notes = encode(choice, found, why)
    notes = _family_notes(choice, found[choice.target])
    count = found[choice.target].count
    model = OnlineGLM(family=choice.family, noise=asked.noise, nonlinear=asked.nonlinear)
    validation = Validation(
        {
            "noisewise": EstimatorPlayer(model, None, encoding.names),
            NAMES[choice.family]: Textbook(choice.family),
            "running mean": RunningMean(choice.family),
        },
        choice.family,
        asked.delta,
    )
    order, kept = RowOrder(), KeptRows()
    width = len(encoding.names)
    if said := warning(count, width, choice.family, False, FEWER):
        tqdm.write(_sentence(said), file=sys.stderr)
    blocks = _blocks(choice, encoding)
    if asked.shuffle is not None:
        blocks = _shuffled(blocks, asked.shuffle)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # said of the batch
        for x, y, w, offset in _in_pieces(blocks, width, count):
            validation.update(x, y, w, offset)
            order.update(_comparable(choice.family, y, offset))
            kept.add(x, y, w, offset)
    if validation.count < 2:
        complete = count_of(validation.count, "complete row")
        raise ValueError(f"{path} has {complete}; at least 2 are needed")
    dropped = count - validation.count
    if dropped:
        lack, have = ("lacks", "has") if dropped == 1 else ("lack", "have")
        light = "0 trials" if choice.trials else "weight 0" if choice.weight else ""
        lack += f" a value{f' or {have} {light}' * bool(light)}"
        notes.append(f"{dropped:,} of {count_of(count, 'row')} {lack}: left out.")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        model.refit()
        summary = model.summary(asked.delta)
    summary = replace(summary, notes=tuple(map(in_shell_words, summary.notes)))
    doubts = tuple(dict.fromkeys(_sentence(in_shell_words(each.message)) for each in heard))
    if choice.family == "binomial" and not np.isfinite(np.hstack(summary.textbook)).any():
        notes.append(SEPARATED)
    times = (name for name in choice.features if in_time(found[name]))
    time = next(times, None) if asked.shuffle is None else None
    sorted_by_target = time is None and asked.shuffle is None and bool(order.direction)
    if sorted_by_target:
        validation.looks.reason = "rows are sorted by the target"
    said = f"Rows were shuffled with seed {asked.shuffle}."
    if asked.shuffle is None:
        said = order.note(encoding.label, time)
    return Fit(
        source=clean(path.name),
        family=choice.family,
        model=model,
        encoding=encoding,
        evaluation=validation.result(f"{encoding.label} in {clean(path.name)}"),
        summary=summary,
        spreads=model._model.spreads(),
        binary=frozenset(name for name in choice.features if found[name].binary),
        residuals=kept.residuals(model, summary, encoding.names, choice.family),
        rows=validation.count,
        uses=tuple(uses),
        column_notes=tuple(column_notes),
        notes=tuple(notes),
        doubts=doubts,
        order=said,
        sorted_by_target=sorted_by_target,
        seconds=perf_counter() - began,
        delta=asked.delta,
    )


def _family_notes(choice: Choice, target: Column) -> list[str]:
    """Return what labels between 0 and 1 suggest, unless the options say what they are."""
    name, gaussian = repr(clean(choice.target)), choice.family == "gaussian"
    if choice.success is not None or target.kind != "number" or choice.family == "poisson":
        return []
    if target.binary:
        return [f"{name} is always 0 or 1: consider --family binomial."] if gaussian else []
    if choice.beside or target.low < 0 or target.high > 1:
        return []
    how = "the number of trials as --weight, or events and trials as --events and --trials."
    if gaussian:
        return [
            f"{name} lies between 0 and 1: if it is a share, add --family binomial, and pass {how}"
        ]
    return [f"{name} holds shares, each taken as one trial: if there were more, pass {how}"]


def _blocks(choice: Choice, encoding: Encoding) -> Iterator[Rows]:
    """Yield the complete rows, chunk by chunk."""
    for frame in chunks(choice.path, choice.columns, choice.words):
        rows = encoding.labelled(frame)
        if choice.trials is not None and (rows[1] > 1).any():
            at = int(np.argmax(rows[1] > 1))
            events = rows[1][at] * rows[2][at]
            raise ValueError(
                f"{choice.path} has {events:g} {choice.target!r} in {rows[2][at]:g} "
                f"{choice.trials!r}; events can't exceed trials"
            )
        if len(rows[0]):
            yield rows


def _shuffled(blocks: Iterator[Rows], seed: int) -> Iterator[Rows]:
    """Yield all rows at once, in random order."""
    held = list(blocks)
    if held:
        x, y, w = (np.concatenate([rows[i] for rows in held]) for i in range(3))
        offsets = [rows[3] for rows in held if rows[3] is not None]
        at = np.random.default_rng(seed).permutation(len(x))
        yield x[at], y[at], w[at], np.concatenate(offsets)[at] if offsets else None


def _in_pieces(blocks: Iterator[Rows], width: int, count: int) -> Iterator[Rows]:
    """Yield rows, a second's work or so at a time, beside a progress bar."""
    most = 10 + int(WORK / width**2)
    with _bar("learn", count) as bar:
        for x, y, w, offset in blocks:
            for at in range(0, len(x), most):
                here = slice(at, at + most)
                yield x[here], y[here], w[here], None if offset is None else offset[here]
                bar.update(len(y[here]))
        bar.update(count - bar.n)  # rows left out


def _comparable(family: str, y: Array, offset: Array | None) -> Array:
    """Return labels of the same exposure and offset."""
    if offset is None:
        return y
    return y - offset if family == "gaussian" else y / np.exp(offset)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _shown(frames: Iterator[pd.DataFrame], word: str) -> Iterator[pd.DataFrame]:
    """Pass chunks on beside a progress bar."""
    with _bar(word) as bar:
        for frame in frames:
            yield frame
            bar.update(len(frame))


def _bar(word: str, count: int | None = None) -> "tqdm[object]":
    """Return a progress bar, which only a terminal shows."""
    return tqdm(total=count, desc=word, unit=" rows", unit_scale=True, disable=None)
