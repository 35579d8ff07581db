"""The order of a file's rows: sorted by the target, or by time, or neither."""

import math

import numpy as np

from ..protocols import Array

UNLIKELY = math.log(1e-3)  # that rows in random order look sorted
ALIKE = 0.3  # correlation of successive labels


class RowOrder:
    """What labels in their order say about it, from one pass.

    Rows are sorted if labels never fall, or never rise, and random rows would be like that with a
    probability below 0.001: 2 n_1! n_2! ... / n! with n_i rows of the i-th value.

    Examples
    --------
    >>> order = RowOrder()
    >>> order.update(np.array([1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 9.0, 9.0]))
    >>> order.direction
    'rising'
    """

    def __init__(self) -> None:
        self.count, self.up, self.down = 0, False, False
        self.last = self.origin = 0.0
        self.run, self.log_orders = 0, 0.0
        self.sums = np.zeros(3)  # of labels, of squares, of products with the label before

    def update(self, y: Array) -> None:
        """Take in labels."""
        if not len(y):
            return
        if not self.count:
            self.origin = self.last = float(y[0])
        steps = np.diff(y, prepend=self.last)
        self.up = self.up or bool((steps > 0).any())
        self.down = self.down or bool((steps < 0).any())
        before = np.concatenate([[self.last], y[:-1]]) - self.origin
        z = y - self.origin
        self.sums += z.sum(), z @ z, z @ before
        if not (self.up and self.down):
            self._count_runs(steps)
        self.last, self.count = float(y[-1]), self.count + len(y)

    def _count_runs(self, steps: Array) -> None:
        """Add ln(n_i!) for each run of equal labels that has ended."""
        ends = np.flatnonzero(steps != 0)
        lengths = np.diff(ends, prepend=-self.run)
        self.log_orders += math.fsum(math.lgamma(each + 1) for each in lengths)
        self.run = len(steps) - int(ends[-1]) if len(ends) else self.run + len(steps)

    @property
    def log_probability(self) -> float:
        """How likely it is that these labels, in random order, are sorted; they are sorted."""
        log = math.log(2) + self.log_orders + math.lgamma(self.run + 1)
        return log - math.lgamma(self.count + 1)

    @property
    def direction(self) -> str:
        """In which way labels are sorted, "rising" or "falling", empty where they are not."""
        if self.up == self.down or self.log_probability > UNLIKELY:
            return ""
        return "rising" if self.up else "falling"

    @property
    def correlation(self) -> float:
        """The correlation of successive labels."""
        total, squares, products = self.sums / max(self.count, 1)
        variance = squares - total**2
        return float((products - total**2) / variance) if variance > 0 else 0.0

    def note(self, target: str, time: str | None) -> str:
        """Return what the order is taken to be, empty where nothing is remarkable."""
        shuffle = "add --shuffle 0"
        if time is not None:
            also = f", in which {target} is {self.direction} all along" if self.direction else ""
            return (
                f"Rows are in order of {time!r}{also}: errors are those of predicting later rows "
                f"from earlier ones. If that order means nothing, {shuffle}."
            )
        if self.direction:
            return (
                f"Rows are sorted by the target ({target} is {self.direction}): each was predicted "
                "from rows unlike it, so errors one step ahead do not say how well new rows are "
                f"predicted. To measure that, {shuffle}."
            )
        if self.correlation > max(ALIKE, 5 / math.sqrt(max(self.count, 1))):
            return (
                f"Successive labels are alike (correlation {self.correlation:.2f}): rows are taken "
                "to be in order of time. If they are sorted or grouped by something else, "
                f"{shuffle}."
            )
        return ""
