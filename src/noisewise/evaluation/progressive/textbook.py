"""The textbook's model, without ridge, refitted from all earlier rows every now and then."""

import numpy as np

from ...model.families import FAMILIES, model
from ...numerics.blas import matmul
from ...protocols import Array
from ...regression.intervals.linear_intervals import solve
from ...regression.intervals.maximum_likelihood import Design, maximise
from ...regression.normal_equations import NormalEquations
from ...support.printing import percent

GROWTH = {"gaussian": 1.1, "binomial": 1.25, "poisson": 1.25}  # of the rows between two fits
NAMES = {
    "gaussian": "least squares",
    "binomial": "logistic regression",
    "poisson": "Poisson regression",
}
FEWEST = 10  # rows that a comparison takes


class Textbook:
    """Least squares, logistic or Poisson regression without ridge, refitted as rows grow.

    Least squares needs the sums of the rows only; the others keep them all. What is predicted is
    NaN before the first fit, from 2p + 10 rows, and while there is no finite one.

    Parameters
    ----------
    family : {"gaussian", "binomial", "poisson"}
    intercept : bool
    """

    def __init__(self, family: str, intercept: bool = True) -> None:
        self.family, self.intercept = family, intercept
        self.sums: NormalEquations | None = None
        self.rows: list[tuple[Array, Array, Array]] = []
        self.theta: Array | None = None
        self.count, self.first, self.next = 0, 0, 0

    def update(self, x: Array, y: Array, w: Array) -> Array:
        """Learn the rows in order; return the mean predicted before each."""
        if self.sums is None:
            self.sums = NormalEquations.start(x.shape[1], self.intercept)
            self.first = self.next = 2 * (x.shape[1] + self.intercept) + 10
        means, at = np.full(len(x), np.nan), 0
        while at < len(x):
            if self.count >= self.next:
                self._fit()
                self.next = max(self.count + 1, int(GROWTH[self.family] * self.count))
            here = slice(at, at + self.next - self.count)
            if self.theta is not None:
                means[here] = self._predict(x[here])
            self._add(x[here], y[here], w[here])
            at = here.stop
        return means

    def about(self, compared: int) -> str:
        """Return in a sentence what it did, if it is ``compared`` over so many rows."""
        name = NAMES[self.family].capitalize()
        if compared:
            return (
                f"{name} has no ridge and is refitted to all earlier rows whenever these have "
                f"grown by {percent(GROWTH[self.family] - 1)}, from row {self.first:,} on. All are "
                f"compared over the {compared:,} rows for which it had a fit."
            )
        if self.family == "gaussian" or self.count < self.first + FEWEST:
            return (
                f"{name} is not compared: its first fit takes {self.first:,} rows, and a "
                f"comparison {FEWEST} more; there are {self.count:,}."
            )
        return (
            f"{name} is not compared: without ridge it had no finite fit for most rows, since "
            "features separate the labels, or these are all alike."
        )

    def _add(self, x: Array, y: Array, w: Array) -> None:
        self.count += len(x)
        self.sums.update(x, y, w)  # type: ignore[union-attr]
        if self.family != "gaussian":
            self.rows.append((x, y, w))

    def _fit(self) -> None:
        sums = self.sums
        assert sums is not None
        if self.family == "gaussian":
            fit = solve(sums)
            self.theta = fit.C.T @ fit.theta
            return
        x, y, w = (np.concatenate(parts) for parts in zip(*self.rows, strict=True))
        self.rows = [(x, y, w)]
        before = None if self.theta is None else matmul(sums.directions(x), self.theta)
        design = Design.of(model(self.family).link, sums, x, y, w)
        found = maximise(design, before)
        self.theta = design.C.T @ (design.lift @ found.beta) if found.exists else None

    def _predict(self, x: Array) -> Array:
        sums = self.sums
        assert sums is not None
        assert self.theta is not None
        scores = matmul(sums.directions(x), self.theta)
        if self.family == "gaussian":
            return scores + sums.label_origin
        return np.asarray(model(self.family).link.mean(FAMILIES[self.family].clip(scores)))
