"""The textbook's model, without ridge, refitted from all earlier rows every now and then."""

import numpy as np
from scipy.special import expit

from .. import linalg
from ..blas import matmul, one_thread
from ..printing import percent
from ..protocols import Array
from ..regression.linear_intervals import solve
from ..regression.maximum_likelihood import WIDE
from ..regression.normal_equations import NormalEquations

GROWTH = {"gaussian": 1.1, "binomial": 1.25, "poisson": 1.25}  # of the rows between two fits
LARGEST_SCORE = {"binomial": 15.0, "poisson": 30.0}
NAMES = {
    "gaussian": "least squares",
    "binomial": "logistic regression",
    "poisson": "Poisson regression",
}
FEWEST = 10  # rows that a comparison takes
LARGEST_VARIANCE = 1000.0  # of the score of a row: beyond, a coefficient has no finite estimate


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
        start = np.zeros(x.shape[1] + self.intercept) if self.theta is None else self.theta
        z = sums.directions(x)
        theta = newton(z, y, w, start, self.family)
        self.theta = theta if is_finite_fit(z, w, theta, self.family) else None

    def _predict(self, x: Array) -> Array:
        sums = self.sums
        assert sums is not None
        assert self.theta is not None
        scores = matmul(sums.directions(x), self.theta)
        if self.family == "gaussian":
            return scores + sums.label_origin
        return _mean(scores, self.family)


def _mean(scores: Array, family: str) -> Array:
    reach = LARGEST_SCORE[family]
    bounded = np.clip(scores, -reach, reach)
    return np.asarray(expit(bounded) if family == "binomial" else np.exp(bounded))


@one_thread
def newton(z: Array, y: Array, w: Array, theta: Array, family: str) -> Array:
    """Return the maximum-likelihood coefficients, or a large step towards them if there are none.

    Newton's method from ``theta``, with step halving; scores are bounded by 15 (shares) or 30
    (counts), so that perfectly separated classes end.
    """
    value = _negative_likelihood(z, y, w, theta, family)
    for _ in range(50):
        mean = _mean(z @ theta, family)
        slope = w * (mean * (1 - mean) if family == "binomial" else mean)
        gradient = z.T @ (w * (y - mean))
        half = z * np.sqrt(slope)[:, None]
        step = _step(half.T @ half, gradient)
        decrease = float(gradient @ step)
        if not decrease > 1e-12 * max(value, 1.0):
            break
        size = 1.0
        while size > 1e-6:
            tried = theta + size * step
            found = _negative_likelihood(z, y, w, tried, family)
            if found <= value - 1e-4 * size * decrease:
                break
            size /= 2
        else:
            break
        theta, value = tried, found
    return theta


def _step(H: Array, gradient: Array) -> Array:
    """Solve for a step of Newton's method, in the span of H."""
    if len(H) > WIDE:
        s = np.sqrt(np.maximum(np.diag(H), 1e-300))
        found = linalg.solve_safely(H / s[:, None] / s, gradient / s)
        if found is not None:
            return found / s
    s, values, vectors, kept = linalg.scaled_spectrum(H, 1e-12)
    inside = (gradient / s) @ vectors[:, kept]
    return np.asarray(vectors[:, kept] @ (inside / values[kept]) / s)


@one_thread
def is_finite_fit(z: Array, w: Array, theta: Array, family: str) -> bool:
    """Return whether coefficients maximise the likelihood, rather than run off to infinity.

    Where labels are separated along a direction, rows say next to nothing of it at bounded scores.
    """
    mean = _mean(z @ theta, family)
    slope = w * (mean * (1 - mean) if family == "binomial" else mean)
    s, values, vectors, kept = linalg.scaled_spectrum((z * slope[:, None]).T @ z, 1e-12)
    inside = matmul(z / s, vectors[:, kept])
    return bool((inside**2 @ (1 / values[kept])).max() <= LARGEST_VARIANCE)


def _negative_likelihood(z: Array, y: Array, w: Array, theta: Array, family: str) -> float:
    reach = LARGEST_SCORE[family]
    scores = np.clip(z @ theta, -reach, reach)
    potential = np.logaddexp(0.0, scores) if family == "binomial" else np.exp(scores)
    return float(w @ (potential - y * scores))
