"""Columns of a file turned into features, the same way whenever the model is used."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..protocols import Array
from ..support.printing import clean
from .survey import floats


@dataclass(frozen=True)
class Feature:
    """A column as features: a number or a date as one, a category as one per further level.

    The first level is the one the others are compared with.
    """

    column: str
    kind: str
    levels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, control characters spelt out."""
        if self.kind != "category":
            return (clean(self.column),)
        return tuple(clean(f"{self.column}={level}") for level in self.levels[1:])

    def encode(self, values: pd.Series) -> Array:
        """Return the features of each row, (n, k); NaN where a value or level is missing."""
        if self.kind != "category":
            return floats(values, self.kind)[:, None]
        codes = pd.Index(self.levels).get_indexer(values)  # -1 where it is none of them
        k = len(self.levels)
        return np.vstack([np.eye(k)[:, 1:], np.full((1, k - 1), np.nan)])[codes]

    def unseen(self, values: pd.Series) -> Iterator[tuple[str, int]]:
        """Yield levels that the model does not know, with the row (from 1) of each."""
        if self.kind == "category":
            other = values[values.notna() & ~values.isin(self.levels)].drop_duplicates()
            yield from ((str(level), int(row) + 1) for row, level in other.items())


@dataclass(frozen=True)
class Encoding:
    """Which columns are features, and which say what a label is.

    Where ``success`` is given, labels are 1 for that value of the target and 0 for others; where
    ``trials`` is, they are shares: the target over it. ``exposure`` and ``offset`` add to scores,
    the first by its logarithm.
    """

    features: tuple[Feature, ...]
    target: str
    weight: str | None = None
    success: str | None = None
    trials: str | None = None
    exposure: str | None = None
    offset: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(name for each in self.features for name in each.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that features come from."""
        return tuple(each.column for each in self.features)

    @property
    def categorical(self) -> tuple[str, ...]:
        """The columns that hold categories."""
        return tuple(each.column for each in self.features if each.kind == "category")

    @property
    def counted(self) -> str | None:
        """The column of weights, of shares the number of trials."""
        return self.weight or self.trials

    @property
    def label(self) -> str:
        """What is modelled, in words."""
        if self.trials is not None:
            return f"the share of {clean(self.target)} in {clean(self.trials)}"
        if self.success is not None:
            return f"{clean(self.target)} = {clean(self.success)}"
        return clean(self.target)

    def rows(self, frame: pd.DataFrame) -> tuple[Array, NDArray[np.bool_]]:
        """Return the features of each row, and which rows have all of them."""
        x = np.hstack([each.encode(frame[each.column]) for each in self.features])
        return x, np.asarray(~np.isnan(x).any(axis=1))

    def shift(self, frame: pd.DataFrame) -> Array | None:
        """Return the offset of each row, NaN where it is missing; of columns not there, none."""
        found = None
        for name, transform in ((self.exposure, np.log), (self.offset, np.asarray)):
            if name is not None and name in frame.columns:
                held: Array = transform(floats(frame[name], "number"))
                found = held if found is None else found + held
        return found

    def _labels(self, frame: pd.DataFrame) -> tuple[Array, Array]:
        """Return labels and weights."""
        values = frame[self.target]
        if self.success is not None:
            y = np.where(values.isna(), np.nan, 1.0 * (values == self.success))
        else:
            y = floats(values, "number")
        w = np.ones(len(y)) if self.counted is None else floats(frame[self.counted], "number")
        if self.trials is not None:
            y = y / np.where(w == 0, 1.0, w)
        return y, w

    def labelled(self, frame: pd.DataFrame) -> tuple[Array, Array, Array, Array | None]:
        """Return features, labels, weights and offsets of the rows that have all of them."""
        x, whole = self.rows(frame)
        (y, w), o = self._labels(frame), self.shift(frame)
        whole = whole & ~np.isnan(y) & ~np.isnan(w) & (w != 0)
        if o is not None:
            whole = whole & ~np.isnan(o)
        return x[whole], y[whole], w[whole], None if o is None else o[whole]
