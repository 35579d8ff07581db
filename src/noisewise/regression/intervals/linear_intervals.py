"""Intervals around weighted least squares, from its sums: no label is shrunk or forgotten."""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from ...confidence import Interval, joined, noted
from ...numerics import linalg
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from ...support.printing import count_of
from ...theory import mixtures
from ..normal_equations import NormalEquations
from .span import Span, centred, ties

LOST = 1e-13  # an eigenvalue of correlations, as a share of the largest, that sums do not know
ROUNDING = 1e-13  # a sum of squared residuals below that share of the labels' squares

SPARE = "{} nothing to estimate the noise from: more than {} are needed, or pass SubGaussian(sigma)"
BEGIN = "intervals at all times begin at row {}: there are {} so far"
OUTSIDE = "the rows learnt do not tell of it: features were constant there, or collinear"
FREEDOM = "{} too few for an interval at all times: it takes up to {} rows"
EXOGENOUS = "rows that do not depend on past labels"
ORIGIN = "features are 0 and there is no intercept, so the mean is known"
EQUAL = (
    "all labels so far are equal (or lie exactly on the fit), which Gaussian noise of any size "
    "would not give: the noise cannot be estimated, and the interval says nothing. Pass "
    "SubGaussian(sigma), or wait for labels that differ"
)
ON_THE_FIT = "labels lie on the fit up to rounding: the interval shows rounding, not noise"


@dataclass(frozen=True)
class JointTest:
    """The test that several coefficients have given values.

    Attributes
    ----------
    statistic : float
        F, nan where rows and labels tell nothing; ``note`` says why. With noise of known sd it is
        chi-squared over its degrees of freedom.
    count : int
    freedom : float
        Degrees of freedom of F: ``count`` and these, infinite where the noise is known.
    p_value : float
        If ``anytime``, with probability 1 - p it is never below p, however often you look; else at
        one sample size fixed in advance.
    evidence : float
        How many times better a mixture of alternatives explains the labels: an e-value, whose mean
        is at most 1 at any stopping time. 1/p_value if ``anytime`` and above 1.
    anytime : bool
    rests_on, note : str
    """

    statistic: float
    count: int
    freedom: float
    p_value: float
    evidence: float
    anytime: bool
    rests_on: str
    note: str


def solve(sums: NormalEquations) -> "LeastSquares":
    """Return the least-squares solution; of several, the shortest in units of the features.

    It is kept with the sums until they change.
    """
    key = sums.count, sums.total
    if vars(sums).get("_solved", (None,))[0] != key:
        vars(sums)["_solved"] = key, _solve(sums)
    return cast(LeastSquares, vars(sums)["_solved"][1])


@one_thread
def _solve(sums: NormalEquations) -> "LeastSquares":
    C, G, b = centred(sums)
    s, values, vectors, kept = linalg.scaled_spectrum(G, LOST)
    tied = ties(values[:-1], vectors[:, :-1], kept[:-1], np.diag(G) > 0, sums.dim)
    V, values = vectors[:, kept], values[kept]
    inside = (b / s) @ V
    # the difference is known only up to rounding
    left = max(sums.squares - float(inside @ (inside / values)), len(b) * linalg.EPS * sums.squares)
    return LeastSquares(sums, C, G, s, V, values, tied, V @ (inside / values) / s, left)


@dataclass(frozen=True, eq=False)
class LeastSquares(Span):
    """A least-squares solution; ``left`` is the weighted sum of squared residuals."""

    theta: Array
    left: float

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals."""
        return max(self.sums.count - len(self.values), 0)

    @property
    def variance(self) -> float:
        """The estimated noise variance at weight 1, infinite without degrees of freedom."""
        return self.left / self.freedom if self.freedom else math.inf

    def noise(self, sigma: float | None) -> tuple[float, float]:
        """Return the sd of a label, and its degrees of freedom; ``sigma`` None is not known."""
        if sigma is None:
            return math.sqrt(self.variance), self.freedom
        return sigma, math.inf

    def scores(self, z: Array) -> Array:
        """Return the estimate at each direction z."""
        return matmul(z, self.C.T @ self.theta)

    def means(self, z: Array) -> Array:
        """Return the estimate at each direction of a row, or of a coefficient."""
        constant = z[:, -1] if self.sums.intercept else 0.0  # 1 for rows, 0 for coefficients
        return self.scores(z) + self.sums.label_origin * constant

    def shares(self, z: Array) -> Array:
        """Return the variance of each estimate over that of a label, infinite if not known."""
        a, seen = self.project(z)
        return np.where(seen, np.einsum("ij,ij->i", a, a), math.inf)

    def half_width(self, z: Array, sigma: float | None, delta: float, anytime: bool) -> Array:
        """Return half the interval at each z, fixed in advance."""
        share, (sd, freedom) = self.shares(z), self.noise(sigma)
        if not freedom or (anytime and not self.sums.frozen):
            return np.where(share == 0, 0.0, math.inf)
        precision = self._precision(z) if anytime else None
        return sd * mixtures.half_width(share, freedom, delta, precision)

    def _precision(self, z: Array) -> Array:
        """Return the precision of the mixture over the error at each z."""
        with np.errstate(divide="ignore"):
            return np.asarray(mixtures.PRECISION / self.lengths(z))

    @one_thread
    def simultaneous_half_width(self, z: Array, sigma: float | None, delta: float) -> Array:
        r"""Return half the interval of each z, for all rows at all times at once.

        By `mixtures.simultaneous_half_width` with a prior D of the first rows' scales, in
        coordinates in which G = I and D is diagonal.
        """
        sd, freedom = self.noise(sigma)
        zero = (z == 0).all(axis=1)
        if not self.sums.frozen or not freedom:
            return np.full(len(z), math.inf)
        (a, seen), (prior, basis) = self.project(z), self.prior
        half = sd * mixtures.simultaneous_half_width(matmul(a, basis), prior, freedom, delta)
        return np.where(zero, 0.0, np.where(seen, half, math.inf))

    def textbook_label(self, z: Array, sigma: float | None, delta: float) -> Array:
        """Return half the interval of a new label of weight 1 at each z, at one time."""
        sd, freedom = self.noise(sigma)
        if not freedom:
            return np.full(len(z), math.inf)
        share = self.shares(z)
        known = np.isfinite(share)
        half = mixtures.quantile(freedom, delta) * sd * np.sqrt(1 + np.where(known, share, 0.0))
        return np.where(known, half, math.inf)

    @property
    def explained(self) -> float:
        """The share of the labels' squares, around their mean with an intercept, explained."""
        total = self.sums.squares
        if self.sums.intercept:
            total -= self.sums.moment[-1] ** 2 / self.sums.total
        return 1 - self.left / total if total > 0 else math.nan

    def interval(
        self,
        z: Array,
        sigma: float | None,
        delta: float,
        anytime: bool,
        simultaneous: bool = False,
        kind: str = "mean",
        what: str = "rows",
    ) -> Interval:
        """Return the interval of the mean at each z, or of a new label there, with its promise."""
        fixed = f"a row fixed in advance, {'all times' if anytime else 'one time'}"
        promise = "all rows, all times" if anytime and simultaneous else fixed
        note = ""
        if kind == "mean":
            half = self._half_width_of_mean(z, sigma, delta, anytime, simultaneous)
        elif sigma is not None and anytime:
            half = self._half_width_of_mean(z, sigma, delta / 2, anytime, simultaneous)
            half = half + sigma * math.sqrt(2 * math.log(4 / delta))
            promise = f"one new label, {promise.replace('all times', 'any time')}"
        else:
            half = self.textbook_label(z, sigma, delta)
            promise = "one new label, one time"
            note = "a label of unknown noise has no anytime interval" if anytime else ""
        always = anytime and (kind == "mean" or sigma is not None)
        rests_on = self._assumptions(sigma, always, simultaneous)
        if sigma is None and self.noiseless:
            half = np.where((z == 0).all(axis=1), 0.0, math.inf)
        note = joined(note, self._note(z, half, sigma, delta, always, what))
        found = np.isfinite(half)
        centre = np.where(found, self.means(z), 0.0)
        return Interval(centre - half, centre + half, promise, rests_on, note)

    @one_thread
    def joint_test(self, z: Array, values: Array, sigma: float | None, anytime: bool) -> JointTest:
        """Test that the estimates at all z are of these values; ``sigma`` None is not known."""
        k, (sd, freedom) = len(z), self.noise(sigma)
        note = self._note(z, np.zeros(k), sigma, 0.5, anytime, "coefficients")
        rests_on = self._assumptions(sigma, False, False)
        rests_on += f", and {EXOGENOUS}" if anytime else ""
        silent = JointTest(math.nan, k, freedom, 1.0, 1.0, anytime, rests_on, note)
        if not freedom or (anytime and not self.sums.frozen):
            return silent
        root, seen = self.project(z)
        if not seen.all() or (sigma is None and self.noiseless):
            return silent
        first = self.sums.whitened(matmul(z, self.C.T)) / math.sqrt(mixtures.PRECISION)
        away = (self.means(z) - values) / sd
        square, log_evidence = mixtures.evidence(away, root, first, freedom)
        p_value = math.exp(min(0.0, -log_evidence))
        if not anytime:
            p_value = mixtures.f_tail(square / k, k, freedom)
        evidence = math.exp(min(log_evidence, 700.0))
        return JointTest(square / k, k, freedom, p_value, evidence, anytime, rests_on, note)

    @property
    def _exact(self) -> bool:
        """Whether all labels lie on the fit, as far as sums tell."""
        return self.left <= ROUNDING * self.sums.squares

    @property
    def noiseless(self) -> bool:
        """Whether labels lie on the fit and are so few different ones that noise is not known."""
        return self._exact and self.sums.few_labels

    def _note(
        self, z: Array, half: Array, sigma: float | None, delta: float, always: bool, what: str
    ) -> str:
        """Return why intervals are infinite, or of no width."""
        n, p, rows = self.sums.count, len(self.values), np.ones(len(z), dtype=bool)
        zero = (z == 0).all(axis=1)
        reasons = [(zero, ORIGIN)]
        if sigma is None and not self.freedom:
            learnt = count_of(n, "row leaves", "rows leave")
            return noted(*reasons, (~zero, SPARE.format(learnt, p)), what=what)
        if sigma is None and self._exact:
            if self.noiseless:
                return noted(*reasons, (~zero, EQUAL), what=what)
            reasons.append((rows, ON_THE_FIT))
        if always and not self.sums.frozen:
            return noted(*reasons, (~zero, BEGIN.format(2 * self.sums.dim + 10, n)), what=what)
        share = self.shares(z)
        reasons.append((np.isinf(share), OUTSIDE))
        few = np.isfinite(share) & np.isinf(half)
        if few.any():
            v = share[few] * self._precision(z[few])
            needed = mixtures.freedom_needed(v, delta).max()
            free = count_of(self.freedom, "degree of freedom is", "degrees of freedom are")
            reasons.append((few, FREEDOM.format(free, math.ceil(needed) + p + 1)))
        return noted(*reasons, what=what)

    @staticmethod
    def _assumptions(sigma: float | None, anytime: bool, simultaneous: bool) -> str:
        if sigma is None:
            noise = "Gaussian noise of unknown sd"
        elif anytime and simultaneous:
            noise = f"sub-Gaussian noise of sd {sigma:g}"
        else:
            noise = f"Gaussian noise of sd {sigma:g}, sub-Gaussian noise asymptotically"
        if anytime and not simultaneous:
            return f"{noise}, and {EXOGENOUS}"
        if anytime and sigma is None:
            return f"{noise}, and rows that do not depend on the scale of past labels"
        return noise

    def _half_width_of_mean(
        self, z: Array, sigma: float | None, delta: float, anytime: bool, simultaneous: bool
    ) -> Array:
        if anytime and simultaneous:
            return self.simultaneous_half_width(z, sigma, delta)
        return self.half_width(z, sigma, delta, anytime)
