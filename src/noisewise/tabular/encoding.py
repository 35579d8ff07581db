"""Columns of a file turned into features, the same way whenever the model is used."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..protocols import Array
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
        """The names of the features."""
        if self.kind != "category":
            return (self.column,)
        return tuple(f"{self.column}={level}" for level in self.levels[1:])

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
    """Which columns are features, target and weight.

    Where ``success`` is given, labels are 1 for that value of the target and 0 for others.
    """

    features: tuple[Feature, ...]
    target: str
    weight: str | None = None
    success: str | None = None

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

    def rows(self, frame: pd.DataFrame) -> tuple[Array, NDArray[np.bool_]]:
        """Return the features of each row, and which rows have all of them."""
        x = np.hstack([each.encode(frame[each.column]) for each in self.features])
        return x, np.asarray(~np.isnan(x).any(axis=1))

    def _labels(self, values: pd.Series) -> Array:
        if self.success is None:
            return floats(values, "number")
        return np.where(values.isna(), np.nan, 1.0 * (values == self.success))

    def labelled(self, frame: pd.DataFrame) -> tuple[Array, Array, Array]:
        """Return features, labels and weights of the rows that have all of them."""
        x, whole = self.rows(frame)
        y = self._labels(frame[self.target])
        w = np.ones(len(y)) if self.weight is None else floats(frame[self.weight], "number")
        whole = whole & ~np.isnan(y) & ~np.isnan(w) & (w != 0)
        return x[whole], y[whole], w[whole]
