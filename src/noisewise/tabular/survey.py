"""The first pass over a file: what each column holds."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from pandas.api import types

from ..protocols import Array

MOST_LEVELS = 200
MOST_REMEMBERED = 200_000  # values, to see whether all differ
DAY = pd.Timedelta(days=1)
NUMBER = r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*"
AMOUNT = r"\s*[-+<>~]?\s*[$€£]?\s*\d"
DATES = ("ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S")  # tried in turn


@dataclass
class Column:
    """What was seen in a column: its kind in every chunk, and how its values spread.

    ``kinds`` are "number", "bool", "date" and "text"; ``missing``, ``infinite``, ``wrong`` (no
    number) and ``measured`` (words that begin like a number or an amount) count rows, and
    ``places`` says in which row (from 1), and of a folder in which file, each was first seen.
    ``distinct`` says that no two rows have the same word or whole number (beyond 200,000 rows, none
    within 50,000), ``counting`` that they are 0, 1, 2, ... or 1, 2, 3, ... in order, and ``rising``
    that no number or date is below the one before.
    """

    name: str
    categorical: bool = False
    kinds: set[str] = field(default_factory=set)
    count: int = 0
    missing: int = 0
    infinite: int = 0
    wrong: int = 0
    measured: int = 0
    places: dict[str, str] = field(default_factory=dict)
    example: str = ""
    low: float = np.inf
    high: float = -np.inf
    binary: bool = True
    whole: bool = True
    distinct: bool = True
    counting: bool = True
    rising: bool = True
    dotted: bool = False
    levels: Counter[str] = field(default_factory=Counter)
    _seen: list[Array] = field(default_factory=list)
    _last: float = -np.inf

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
            self._compare(pd.util.hash_array(values.to_numpy(dtype=object)))
            return
        self.dotted = self.dotted or (kind == "date" and date_format(values) != "ISO8601")
        x = floats(values, kind)
        self._first("infinite", pd.Series(~np.isfinite(x), index=values.index))
        finite = x[np.isfinite(x)]
        self.infinite += len(x) - len(finite)
        if len(finite):
            self.low, self.high = min(self.low, finite.min()), max(self.high, finite.max())
            self.binary = self.binary and bool(np.isin(finite, (0.0, 1.0)).all())
            self._follow(finite)

    def _follow(self, x: Array) -> None:
        """Note how numbers go on from those before."""
        self.rising = self.rising and bool((np.diff(x, prepend=self._last) >= 0).all())
        self.whole = self.whole and bool((x == np.rint(x)).all())
        start = self._last + 1 if np.isfinite(self._last) else float(x[0] == 1)
        self.counting = self.counting and bool((x == start + np.arange(len(x))).all())
        self._last = float(x[-1])
        if self.whole:
            self._compare(x)
        else:
            self.distinct, self._seen = False, []

    def _compare(self, x: Array) -> None:
        """Note whether values differ from each other and from those before."""
        held = np.concatenate([*self._seen, x]) if self.distinct else x[:0]
        self.distinct = self.distinct and len(np.unique(held)) == len(held)
        self._seen = [held[:MOST_REMEMBERED]] if self.distinct else []

    def _look_at_text(self, values: pd.Series) -> None:
        words = values.astype("str")
        wrong = ~words.str.fullmatch(NUMBER)
        if not self.wrong and (wrong.any() or not self.example):
            self.example = str((words[wrong] if wrong.any() else words).iloc[0])
        self._first("wrong", wrong)
        self.wrong += int(wrong.sum())
        self.measured += int(words.str.match(AMOUNT).sum())

    def _first(self, what: str, where: pd.Series) -> None:
        if what not in self.places and where.any():
            row = int(where.index[int(np.argmax(where.to_numpy()))]) + 1
            self.places[what] = f"{row} of {self._file}" if self._file else str(row)


def kind_of(values: pd.Series) -> str:
    """Return what values that are not missing are: "bool", "number", "date" or "text"."""
    if types.is_bool_dtype(values):
        return "bool"
    if types.is_numeric_dtype(values) and not types.is_complex_dtype(values):
        return "number"
    if values.map(type).eq(bool).all():
        return "bool"
    if types.is_datetime64_any_dtype(values):
        return "date"
    return "date" if date_format(values) else "text"


def date_format(values: pd.Series) -> str:
    """Return how dates are written, empty where values are none: 2024-01-31, or 31.01.2024."""
    for form in DATES:
        try:
            pd.to_datetime(values, format=form, utc=True)
        except (ValueError, TypeError):
            continue
        return form
    return ""


def floats(values: pd.Series, kind: str) -> Array:
    """Return numbers, booleans (0 and 1) or dates (days since 1970) as floats, NaN if missing."""
    if kind == "date":
        form = "ISO8601" if types.is_datetime64_any_dtype(values) else date_format(values)
        moments = pd.to_datetime(values, format=form or "ISO8601", utc=True)
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
