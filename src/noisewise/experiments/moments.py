"""Means over trials that are added up chunk by chunk, so that any number of trials fits."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

STATISTICS = "count", "mean", "square", "max"


def of(rows: pd.DataFrame, keys: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """Return a line per group of rows: number, mean and maximum of each value, NaN left out.

    ``square`` is the sum of squares about the mean. Columns are pairs (value, statistic).

    >>> rows = pd.DataFrame({"side": ["l", "l", "r"], "regret": [1.0, 3.0, 5.0]})
    >>> of(rows, ["side"], ["regret"])["regret"].to_numpy().tolist()
    [[2.0, 2.0, 2.0, 3.0], [1.0, 5.0, 0.0, 5.0]]
    """
    grouped = rows.groupby(list(keys), sort=False)
    found: dict[tuple[str, str], pd.Series] = {}
    for value in values:
        column = grouped[value]
        count = column.count()
        square = column.var().fillna(0.0) * (count - 1).clip(lower=0)
        known = count.astype(float), column.mean(), square, column.max()
        found |= {(value, each): line for each, line in zip(STATISTICS, known, strict=True)}
    return pd.DataFrame(found)


def joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the moments of all rows from those of parts, groups in the order of appearance."""
    stacked = pd.concat(list(parts))
    levels = list(range(stacked.index.nlevels))
    found: dict[tuple[str, str], pd.Series] = {}
    for value in dict.fromkeys(stacked.columns.get_level_values(0)):
        part = stacked[value]
        grouped = part.assign(sum=part["count"] * part["mean"].fillna(0.0)).groupby(
            level=levels, sort=False
        )
        count = grouped["count"].sum()
        mean = grouped["sum"].sum() / count.where(count > 0)
        away = part["mean"] - mean.reindex(part.index)
        between = (part["count"] * away.fillna(0.0) ** 2).groupby(level=levels, sort=False).sum()
        known = count, mean, grouped["square"].sum() + between, grouped["max"].max()
        found |= {(value, each): line for each, line in zip(STATISTICS, known, strict=True)}
    return pd.DataFrame(found)


def error(lines: pd.DataFrame) -> pd.Series:
    """Return the standard error of the mean from the moments of one value, NaN for one trial."""
    count = lines["count"].where(lines["count"] > 1)
    return np.sqrt(lines["square"] / (count - 1) / count)


def trials(lines: pd.DataFrame) -> int:
    """Return the number of trials from the moments of one value that every trial has."""
    return int(lines["count"].max())
