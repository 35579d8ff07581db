"""Predictions for the rows of a file, as CSV, or of a data frame."""

import math
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
from pandas.api import types

from ..estimators.online_glm import OUTSIDE, OnlineGLM
from ..evaluation.players import NamedRows
from ..protocols import Array
from . import saving
from .choosing import require_names
from .encoding import Encoding
from .reading import chunks, names_of
from .survey import survey

WRITTEN = "prediction", "lower", "upper"


def predict(
    model: str | PathLike[str],
    frame: pd.DataFrame,
    delta: float = 0.05,
    kind: str = "mean",
) -> pd.DataFrame:
    """Return the columns prediction, lower and upper for the rows of a data frame.

    ``model`` is a folder that ``noisewise fit`` has written. The frame has the columns of the file
    that was fitted, categories and dates as they are; ``delta`` and ``kind`` are those of
    `OnlineGLM.predict_interval`. A row that lacks a value, or has a level that the model has not
    seen, has NaN.
    """
    fitted, encoding = saving.load(Path(model))
    missing = [name for name in encoding.columns if name not in frame.columns]
    if missing:
        raise ValueError(f"frame has no column {missing[0]!r}; the model needs {encoding.columns}")
    held = frame[list(encoding.columns)].reset_index(drop=True)
    for name in encoding.categorical:
        held[name] = _as_words(held[name])
    _check("the data frame", encoding, [held])
    values = _values(fitted, encoding, held, delta, kind)
    return pd.DataFrame(values, columns=list(WRITTEN), index=frame.index)


def _as_words(values: pd.Series) -> pd.Series:
    """Return levels as a file spells them: the whole number 2.0 as 2."""
    known = values[values.notna()]
    if types.is_float_dtype(values) and (known == known.round()).all():
        values = values.astype("Int64")
    given = values.astype("object")
    return given.where(given.isna(), given.astype("str"))


def _check(name: str, encoding: Encoding, frames: Iterable[pd.DataFrame]) -> None:
    """Raise if a column holds something else than it did when the model learnt."""
    found = survey(frames, encoding.categorical)
    wrong = []
    for each in encoding.features:
        column = found.get(each.column)
        if column is None or not column.count:
            raise ValueError(f"{name} has column names but no rows; pass some rows")
        if column.missing < column.count and column.kind != each.kind:
            place = f"{column.example!r} in row {column.places.get('wrong', 1)}"
            wrong.append(f"column {each.column!r} holds {column.kind} ({place}), not {each.kind}")
        if column.infinite:
            row = column.places["infinite"]
            wrong.append(f"column {each.column!r} holds infinite values (first in row {row})")
    if wrong:
        raise ValueError("\n  ".join([f"{name} can't be used as it is:", *wrong]))


def _values(
    model: OnlineGLM, encoding: Encoding, frame: pd.DataFrame, delta: float, kind: str
) -> Array:
    """Return prediction, lower and upper of each row, NaN where it can't be encoded."""
    x, whole = encoding.rows(frame)
    values = np.full((len(frame), len(WRITTEN)), np.nan)
    if whole.any():
        rows = NamedRows(x[whole], encoding.names)
        lower, upper = model.predict_interval(rows, delta, kind=kind)
        values[whole] = np.column_stack([model.predict(rows), lower, upper])
    return values


class Predictions:
    """Predictions with intervals for each row of a file.

    A row that lacks a feature, or has a level that the model has not seen, has empty cells;
    ``notes`` says how many there were and which levels, once all are written.
    """

    def __init__(
        self,
        model: OnlineGLM,
        encoding: Encoding,
        path: Path,
        delta: float = 0.05,
        kind: str = "mean",
        keep: Sequence[str] = (),
    ) -> None:
        names = names_of(path)
        require_names(path, "the model", encoding.columns, names)
        require_names(path, "--keep", keep, names)
        for name in WRITTEN:
            if name in keep:
                raise ValueError(f"--keep holds {name!r}, a column that is written; rename yours")
        self.model, self.encoding, self.path = model, encoding, path
        self.delta, self.kind, self.keep = delta, kind, tuple(keep)
        self.empty, self.outside = 0, 0
        self.unseen: dict[tuple[str, str], int] = {}
        categorical = encoding.categorical
        _check(path.name, encoding, chunks(path, encoding.columns, categorical))

    def write(self, file: IO[str]) -> None:
        """Write CSV: kept columns, then prediction, lower and upper."""
        for i, frame in enumerate(self._frames()):
            frame.to_csv(file, index=False, header=not i)

    def _frames(self) -> Iterator[pd.DataFrame]:
        columns = tuple(dict.fromkeys((*self.encoding.columns, *self.keep)))
        kept_words = [name for name in self.keep if name not in self.encoding.columns]
        for frame in chunks(self.path, columns, [*self.encoding.categorical, *kept_words]):
            for each in self.encoding.features:
                for level, row in each.unseen(frame[each.column]):
                    self.unseen.setdefault((each.column, level), row)
            values = _values(self.model, self.encoding, frame, self.delta, self.kind)
            mean, lower, upper = values.T
            self.empty += int(np.isnan(mean).sum())
            self.outside += int(((mean < lower) | (mean > upper)).sum())
            out = frame[list(self.keep)].reset_index(drop=True)
            for name, column in zip(WRITTEN, values.T, strict=True):
                out[name] = ["" if math.isnan(value) else f"{value:.8g}" for value in column]
            yield out

    @property
    def notes(self) -> list[str]:
        """What a reader of the predictions should know."""
        notes = []
        if self.empty:
            notes.append(f"{self.empty:,} rows lack a value, or have an unknown one: left empty")
        if self.outside:
            notes.append(
                f"{OUTSIDE.format(f'{self.outside:,}')}: predictions stay near the range of the "
                "labels seen, intervals do not"
            )
        for (column, level), row in list(self.unseen.items())[:10]:
            notes.append(f"column {column!r}: {level!r} (row {row}) was not there when fitting")
        return notes
