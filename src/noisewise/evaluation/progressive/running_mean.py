"""The running mean of the labels: what any model should beat."""

import numpy as np

from ...protocols import Array


class RunningMean:
    """Predicts the weighted mean of the labels so far.

    Shares, counts and classes begin with half a success each (Jeffreys' prior), since a mean of
    exactly 0 or 1 would make a surprise infinitely costly.

    Examples
    --------
    >>> RunningMean("gaussian").update(np.zeros((3, 1)), np.array([1.0, 3.0, 5.0]), np.ones(3))
    array([0., 1., 2.])
    >>> RunningMean("binomial").update(np.zeros((2, 1)), np.array([1.0, 1.0]), np.ones(2))
    array([0.5 , 0.75])
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self.sum: Array | float = 0.0
        self.total = 0.0

    def update(self, x: object, y: Array, w: Array) -> Array:
        """Learn the labels in order; return the mean predicted before each."""
        w = w.reshape(-1, *([1] * (y.ndim - 1)))
        sums = self.sum + np.cumsum(w * y, axis=0) - w * y
        totals = self.total + np.cumsum(w, axis=0) - w
        self.sum = self.sum + (w * y).sum(axis=0)
        self.total += float(w.sum())
        if self.family in ("binomial", "classes"):
            k = 2 if y.ndim == 1 else y.shape[1]
            return np.asarray((sums + 0.5) / (totals + k / 2))
        if self.family == "poisson":
            sums = sums + 0.5
        known = totals > 0
        return np.where(known, sums / np.where(known, totals, 1.0), sums)
