"""The moments of a run: those a study writes down, and the last."""

import numpy as np
import pandas as pd


def spaced(rounds: int, count: int, first: int = 1) -> list[int]:
    """Return about ``count`` rounds from ``first`` on, in equal ratios.

    >>> spaced(1000, 4)
    [1, 10, 100, 1000]
    """
    found: list[int] = np.unique(np.geomspace(first, rounds, count).round().astype(int)).tolist()
    return found


def last(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last round."""
    return table[table["rounds"] == table["rounds"].max()]
