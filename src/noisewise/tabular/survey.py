"""The first pass over a file: what each column holds."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pandas.api import types

from ..protocols import Array

MOST_LEVELS = 200
DAY = pd.Timedelta(days=1)


@dataclass
class Column:
    """What was seen in a column: its kind in every chunk, and how its values spread.

    ``kinds`` are "number", "bool", "date" and "text"; ``missing`` and ``infinite`` count rows, and
    ``places`` says in which row (from 1), and of a folder in which file, each was first seen.
    """

    name: str
    categorical: bool = False
    kinds: set[str] = field(default_factory=set)
    count: int = 0
    missing: int = 0
    infinite: int = 0
    wrong: int = 0
    places: dict[str, str] = field(default_factory=dict)
    example: str = ""
    low: float = np.inf
    high: float = -np.inf
    binary: bool = True
    levels: Counter[str] = field(default_factory=Counter)

    @property
    def kind(self) -> str:
        """How the column is read: "category", "number", "date" or "text"."""
        if self.categorical:
            return "category"
        if self.kinds <= {"number", "bool"}:
            return "number"
        return "date" if self.kinds == {"date"} else "text"

    @property
    def constant(self) -> bool:
        """Whether all rows have the same value."""
        return len(self.levels) < 2 if self.categorical else not self.low < self.high

    def look(self, values: pd.Series, file: str = "") -> None:
        """Take in the values of a chunk, of a file of a folder if that is named."""
        self._file = file
        self.count += len(values)
        there = values.notna()
        self._first("missing", ~there)
        self.missing += int((~there).sum())
        values = values[there]
        if not len(values):
            return
        if self.categorical:
            if len(self.levels) <= MOST_LEVELS:
                self.levels.update(values.value_counts().to_dict())
            return
        kind = kind_of(values)
        self.kinds.add(kind)
        if kind == "text":
            self._look_at_text(values)
            return
        x = floats(values, kind)
        self._first("infinite", pd.Series(~np.isfinite(x), index=values.index))
        finite = x[np.isfinite(x)]
        self.infinite += len(x) - len(finite)
        if len(finite):
            self.low, self.high = min(self.low, finite.min()), max(self.high, finite.max())
            self.binary = self.binary and bool(np.isin(finite, (0.0, 1.0)).all())

    def _look_at_text(self, values: pd.Series) -> None:
        wrong = pd.to_numeric(values, errors="coerce").isna()
        if not self.wrong and wrong.any():
            self.example = str(values[wrong].iloc[0])
        self._first("wrong", wrong)
        self.wrong += int(wrong.sum())

    def _first(self, what: str, where: pd.Series) -> None:
        if what not in self.places and where.any():
            row = int(where.index[int(np.argmax(where.to_numpy()))]) + 1
            self.places[what] = f"{row} of {self._file}" if self._file else str(row)


def kind_of(values: pd.Series) -> str:
    """Return what values that are not missing are: "bool", "number", "date" or "text"."""
    if types.is_bool_dtype(values) or values.map(type).eq(bool).all():
        return "bool"
    if types.is_numeric_dtype(values) and not types.is_complex_dtype(values):
        return "number"
    if types.is_datetime64_any_dtype(values):
        return "date"
    try:
        pd.to_datetime(values, format="ISO8601", utc=True)
    except (ValueError, TypeError):
        return "text"
    return "date"


def floats(values: pd.Series, kind: str) -> Array:
    """Return numbers, booleans (0 and 1) or dates (days since 1970) as floats, NaN if missing."""
    if kind == "date":
        moments = pd.to_datetime(values, format="ISO8601", utc=True)
        return ((moments - pd.Timestamp(0, tz="UTC")) / DAY).to_numpy(dtype=np.float64)
    if values.dtype == object:
        values = values.astype("boolean")
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def survey(frames: Iterable[pd.DataFrame], categorical: Iterable[str]) -> dict[str, Column]:
    """Return what the columns of all chunks hold."""
    columns: dict[str, Column] = {}
    chosen = frozenset(categorical)
    for frame in frames:
        for name in frame.columns:
            column = columns.setdefault(name, Column(name, name in chosen))
            column.look(frame[name], frame.attrs.get("file", ""))
    return columns
