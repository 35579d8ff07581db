"""A model of a file: surveyed in a first pass, learnt row by row in a second."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from tqdm import tqdm

from ..estimators.online_glm import OnlineGLM
from ..estimators.summary import Summary
from ..evaluation.players import EstimatorPlayer
from ..evaluation.result import Evaluation
from ..evaluation.running_mean import RunningMean
from ..evaluation.textbook import NAMES, Textbook, describe
from ..evaluation.validation import Validation
from .choosing import choose, encode
from .encoding import Encoding
from .reading import chunks, names_of
from .survey import survey

TOO_FEW = "There are too few rows for intervals of coefficients."
UNKNOWN = {  # why no coefficient has an interval
    "gaussian": TOO_FEW,
    "binomial": (
        "The features separate the labels completely, or rows are too few: without ridge no "
        "coefficient is finite, so that intervals are infinite. Predictions use a ridge."
    ),
    "poisson": TOO_FEW,
}


@dataclass(frozen=True, eq=False)
class Fit:
    """A model of a file, and how it came about."""

    source: str
    family: str
    model: OnlineGLM
    encoding: Encoding
    evaluation: Evaluation
    summary: Summary
    rows: int
    dropped: int
    notes: tuple[str, ...]
    comparison: str
    seconds: float
    delta: float


def fit(
    path: Path,
    target: str,
    family: str = "gaussian",
    weight: str | None = None,
    features: Sequence[str] = (),
    categorical: Sequence[str] = (),
    drop_missing: bool = False,
    success: str | None = None,
    delta: float = 0.05,
) -> Fit:
    """Return a model of ``target`` learnt from the rows of a file in their order.

    The file is read twice, by chunks: once to see what columns hold, which levels there are and
    what is missing, once to learn.
    """
    began = perf_counter()
    choice, notes = choose(
        path, names_of(path, folder=True), target, features, weight, categorical, family, success
    )
    found = survey(_shown(chunks(path, choice.columns, choice.words), "look"), choice.words)
    encoding, more = encode(choice, found, drop_missing)
    count = found[target].count
    model = OnlineGLM(family=family)
    validation = Validation(
        {
            "noisewise": EstimatorPlayer(model, None, encoding.names),
            NAMES[family]: Textbook(family),
            "running mean": RunningMean(family),
        },
        family,
        delta,
    )
    for frame in _shown(chunks(path, choice.columns, choice.words), "learn", count):
        x, y, w = encoding.labelled(frame)
        if len(x):
            validation.update(x, y, w)
    dropped = count - validation.count
    if validation.count < 2:
        raise ValueError(f"{path.name} has {validation.count} complete rows; at least 2 are needed")
    if dropped:
        more.append(f"{dropped:,} of {count:,} rows lack a value or have weight 0: left out.")
    summary = model.summary(delta)
    if not np.isfinite(np.hstack(summary.textbook)).any():
        more.append(UNKNOWN[family])
    return Fit(
        source=path.name,
        family=family,
        model=model,
        encoding=encoding,
        evaluation=validation.result(f"{target} in {path.name}"),
        summary=summary,
        rows=validation.count,
        dropped=dropped,
        notes=(*notes, *more),
        comparison=describe(family),
        seconds=perf_counter() - began,
        delta=delta,
    )


def _shown(
    frames: Iterator[pd.DataFrame], word: str, count: int | None = None
) -> Iterator[pd.DataFrame]:
    """Pass chunks on beside a progress bar, which only a terminal shows."""
    with tqdm(total=count, desc=word, unit=" rows", unit_scale=True, disable=None) as bar:
        for frame in frames:
            yield frame
            bar.update(len(frame))
