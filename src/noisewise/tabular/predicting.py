"""Predictions for the rows of a file, as CSV."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from ..estimators.online_glm import OnlineGLM
from ..evaluation.players import NamedRows
from .choosing import require_names
from .encoding import Encoding
from .reading import chunks, names_of
from .survey import survey

WRITTEN = "prediction", "lower", "upper"


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
        self.empty = 0
        self.unseen: dict[tuple[str, str], int] = {}
        self._check()

    def _check(self) -> None:
        """Raise if a column holds something else than it did when the model learnt."""
        categorical = self.encoding.categorical
        found = survey(chunks(self.path, self.encoding.columns, categorical), categorical)
        wrong = []
        for each in self.encoding.features:
            column = found.get(each.column)
            if column is None:
                raise ValueError(f"{self.path} has column names but no rows; pass a file with rows")
            if column.missing < column.count and column.kind != each.kind:
                place = f"{column.example!r} in row {column.places.get('wrong', 1)}"
                wrong.append(
                    f"column {each.column!r} holds {column.kind} ({place}), not {each.kind}"
                )
            if column.infinite:
                row = column.places["infinite"]
                wrong.append(f"column {each.column!r} holds infinite values (first in row {row})")
        if wrong:
            raise ValueError("\n  ".join([f"{self.path.name} can't be used as it is:", *wrong]))

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
            x, whole = self.encoding.rows(frame)
            self.empty += int((~whole).sum())
            values = np.full((len(frame), 3), np.nan)
            if whole.any():
                rows = NamedRows(x[whole], self.encoding.names)
                lower, upper = self.model.predict_interval(rows, self.delta, kind=self.kind)
                values[whole] = np.column_stack([self.model.predict(rows), lower, upper])
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
        for (column, level), row in list(self.unseen.items())[:10]:
            notes.append(f"column {column!r}: {level!r} (row {row}) was not there when fitting")
        return notes
