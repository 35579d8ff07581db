"""Intervals of shares and counts around the unregularised fit, from the rows of `RidgeMixture`."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..blas import matmul, one_thread
from ..confidence import Interval
from ..inputs import features, numbers, one_of, probability
from ..noise import Likelihood
from ..ownership import Owned
from ..protocols import Array
from . import candidate_mixture, level_sets
from .families import FAMILIES, model
from .intervals import FEWEST, PRECISION, anytime_half_width, quantile
from .linear_intervals import GRID
from .maximum_likelihood import Design, Estimate, maximise
from .normal_equations import NormalEquations
from .ridge_mixture import RidgeMixture
from .ridge_mixture_state import RidgeMixtureState
from .solver import Session

ASYMPTOTIC = "asymptotic"
ENOUGH_ROWS = 100  # for the sandwich
NORMAL = 1e6  # counts of that mean are as good as continuous
NEARLY_POISSON = 1e-12  # relative variance of a mean that is as good as known
FARTHEST = 1e150  # a score as good as infinite, whose square is a number
METHODS = "mixture", "likelihood"
PLAYED = 0.1  # share of delta that the mixture spends on the losses as they were played


@one_thread
def solve(mixture: RidgeMixture, state: RidgeMixtureState) -> "CurvedFit":
    """Return the unregularised fit to all rows that a `RidgeMixture` has learnt.

    Thirty successes of a hundred have score log(3/7), with variance 1/(100 * 0.3 * 0.7):

    >>> mixture = RidgeMixture("binomial", fit_intercept=False)
    >>> state = mixture.start(dim=1)
    >>> _ = mixture.update(state, np.ones((100, 1)), np.repeat([1.0, 0.0], [30, 70]))
    >>> lower, upper = solve(mixture, state).interval(np.ones((1, 1)), anytime=False)
    >>> lower.round(3), upper.round(3)  # 1/(1 + exp(-log(3/7) +- 1.96 * 0.218))
    (array([0.218]), array([0.397]))
    """
    mixture.check_state(state)
    with Owned(state):
        x, y, w = _rows(mixture, state)
        played, shift = state.loss, state.shift.copy()
    sums = NormalEquations.start(state.dim, mixture.fit_intercept)
    sums.update(x, y, w)  # the first row is 0: no further shift
    fit = maximise(Design(model(mixture.family).link, sums, x, y, w))
    offset = -float(w @ mixture.log_likelihood(np.zeros(len(y)), y))
    return CurvedFit(fit, mixture.family, shift, played - offset)


def _rows(mixture: RidgeMixture, state: RidgeMixtureState) -> tuple[Array, Array, Array]:
    """Return shifted rows in the user's units, labels and weights, from the first expert's."""
    d, first = state.dim, state.experts[0]
    with Session(model(mixture.family), first):
        blocks = [(each.x[:, :d], each.pull, each.weight) for each in first.blocks()]
        x, pull, w = (
            np.concatenate([each[i] for each in blocks] or [np.zeros((0, d) if i == 0 else 0)])
            for i in range(3)
        )
    x, pull, w = (each[state.prior_rows :] for each in (x, pull, w))
    units = state.units / math.sqrt(state.ridges[0])
    return np.divide(x, units, np.zeros_like(x), where=units > 0), pull / w, w


@dataclass(frozen=True, eq=False)
class CurvedFit:
    """The unregularised fit of shares or counts, and what it says of means and coefficients.

    Where labels are separated the fit lies at infinity in some directions, and what is shown of it
    there is a point on the way; the intervals are infinite. ``played`` is the loss of the mixture
    of ridges, in the units of `Design.loss`.
    """

    fit: Estimate
    family: str
    shift: Array
    played: float

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.fit.design.sums.count

    @cached_property
    def _parameter(self) -> Array:
        """The parameter of rows (x - shift, 1)."""
        design = self.fit.design
        return design.C.T @ (design.lift @ self.fit.beta)

    @property
    def theta(self) -> Array:
        """The coefficients; of several that fit alike, the shortest in units of the features."""
        return self._parameter[: len(self.shift)].copy()

    @property
    def intercept(self) -> float:
        """The score at x = 0."""
        return float(self.scores(np.zeros((1, len(self.shift))))[0])

    def scores(self, x: Array) -> Array:
        """Return the score of each row."""
        return matmul(self._directions(x), self._parameter)

    def _directions(self, x: Array) -> Array:
        x, _ = features(x, len(self.shift))
        return self.fit.design.sums.directions(x - self.shift)

    @one_thread
    def interval(
        self,
        x: Array,
        noise: Likelihood | str = "auto",
        delta: float = 0.05,
        anytime: bool = True,
        simultaneous: bool = False,
        kind: str = "mean",
        method: str = "mixture",
    ) -> Interval:
        """Return the interval of the mean at each row, or of a new label there, with its promise.

        Parameters
        ----------
        x : (n, d) array
            In the user's units.
        noise : "auto", Likelihood or "asymptotic"
            "auto" is ``Likelihood()``. "asymptotic" estimates the variance from the residuals (the
            sandwich), from 100 rows and twice the number of parameters on.
        delta : float in (0, 1)
        anytime, simultaneous : bool
            Whether it holds at all times, and whether for all rows at once; the textbook's Wald
            interval with ``anytime=False``.
        kind : {"mean", "observation"}
            Of the mean, or of a new label of weight 1, at one time.
        method : {"mixture", "likelihood"}
            For all rows at all times. "likelihood": all parameters whose loss is at most that of
            the mixture of ridges and log(1/delta). "mixture": the mixture around each candidate
            (`candidate_mixture`) with nine tenths of delta, and that set with one tenth, which is
            smaller while events are few. Each row takes some ten passes over the history.
        """
        one_of("kind", kind, ("mean", "observation"))
        z, delta = self._directions(x), probability("delta", delta)
        if kind == "observation":
            lower, upper, rests_on = self._label(z, noise, delta)
            note = "the interval of a new label holds at one time" if anytime else ""
            return Interval(lower, upper, "one new label, one time", rests_on, note)
        found = self._scores_within(z, noise, delta, anytime, simultaneous, method)
        return Interval(*self._means(found), found.promise, found.rests_on, found.note)

    def _means(self, scores: Interval) -> tuple[Array, Array]:
        """Return the means at bounds of scores, which may be infinite."""
        with np.errstate(over="ignore"):
            low, high = (
                self.fit.design.link.mean(np.clip(each, -FARTHEST, FARTHEST)) for each in scores
            )
        return low, high

    @one_thread
    def coefficient_interval(
        self, noise: Likelihood | str = "auto", delta: float = 0.05, anytime: bool = True
    ) -> Interval:
        """Return the intervals of the coefficients and, where there is one, the intercept."""
        p, d = len(self._parameter), len(self.shift)
        z = np.eye(p)
        z[d:, :d] = -self.shift
        found = self._scores_within(z, noise, probability("delta", delta), anytime, False)
        promise = found.promise.replace("a row", "a coefficient")
        return Interval(found.lower, found.upper, promise, found.rests_on, found.note)

    @one_thread
    def contains(
        self,
        theta: Array,
        intercept: float = 0.0,
        noise: Likelihood | str = "auto",
        delta: float = 0.05,
        method: str = "mixture",
    ) -> bool:
        """Return whether a parameter lies in the set behind intervals for all rows at all times."""
        theta = numbers("theta", theta)
        design = self.fit.design
        around = np.full(len(self._parameter), intercept + float(self.shift @ theta))
        around[: len(theta)] = theta  # that of rows (x - shift, 1)
        W = (design.V * np.sqrt(design.values)).T * design.s
        scores = matmul(design.u, W @ np.linalg.solve(design.C.T, around))
        return self.fit.rise(scores) <= self._height(self._dispersion(noise), delta, method)

    def _scores_within(
        self,
        z: Array,
        noise: Likelihood | str,
        delta: float,
        anytime: bool,
        simultaneous: bool,
        method: str = "mixture",
    ) -> Interval:
        """Return bounds of the score of each direction z, infinite where nothing is known."""
        one_of("method", method, METHODS)
        dispersion = self._dispersion(noise)
        b, seen = self.fit.design.project(z)
        whole, note = anytime and simultaneous, ""
        times = "all times" if anytime else "one time"
        promise = "all rows, all times" if whole else f"a row fixed in advance, {times}"
        if whole and dispersion is not None:
            height, rests_on = self._height(dispersion, delta, method), "the likelihood"
            if method == "mixture":
                rests_on += ", and first rows that do not depend on labels"
            if height < 0:
                note = "no parameter fits the labels as well as they were predicted: the likelihood"
                note += " is contradicted, and the interval says nothing"
            lower, upper = level_sets.bounds(self.fit, b[seen], height)
        else:
            rests_on = "the likelihood, asymptotically"
            if dispersion is None:
                rests_on = "independent rows, asymptotically"
            if anytime and not whole:
                rests_on += ", and rows that do not depend on past labels"
            half = self._half_width(z[seen], b[seen], dispersion, delta, anytime, whole)
            centre = np.where(np.isfinite(half), matmul(b[seen], self.fit.beta), 0.0)
            lower, upper = centre - half, centre + half
        ends = np.full(len(z), -math.inf), np.full(len(z), math.inf)
        ends[0][seen], ends[1][seen] = lower, upper
        return Interval(*ends, promise, rests_on, note)

    @staticmethod
    def _dispersion(noise: Likelihood | str) -> float | None:
        """Return the dispersion, None where the variance is estimated."""
        if isinstance(noise, Likelihood):
            return noise.dispersion
        if noise not in ("auto", ASYMPTOTIC):
            raise ValueError(f"noise is {noise!r}; pass 'auto', Likelihood() or {ASYMPTOTIC!r}")
        return 1.0 if noise == "auto" else None

    def _height(self, dispersion: float | None, delta: float, method: str) -> float:
        """Return how far above its minimum the loss is in the set for all rows at all times."""
        if dispersion is None:
            raise ValueError(f"noise is {ASYMPTOTIC!r}, which gives no set; pass Likelihood()")
        if method == "likelihood":
            if dispersion != 1:
                raise ValueError(
                    f"method is 'likelihood' and noise has dispersion {dispersion:g}; the losses "
                    "were played at dispersion 1, pass method='mixture'"
                )
            return self.played + math.log(1 / delta) - self.fit.loss
        if dispersion != 1:
            return self._level(delta, dispersion)
        height = self._level((1 - PLAYED) * delta, 1.0)
        return min(height, self._height(1.0, PLAYED * delta, "likelihood"))

    def _level(self, delta: float, dispersion: float) -> float:
        """Return the level of the candidate mixture, computed once."""
        question = delta, dispersion
        if question not in self._levels:
            self._levels[question] = candidate_mixture.level(self.fit, delta, dispersion)
        return self._levels[question]

    @cached_property
    def _levels(self) -> dict[tuple[float, float], float]:
        return {}

    def _half_width(
        self,
        z: Array,
        b: Array,
        dispersion: float | None,
        delta: float,
        anytime: bool,
        whole: bool,
    ) -> Array:
        """Return half the width of intervals from the variance of the estimate."""
        n, r = self.count, self.fit.design.rank
        enough = dispersion is not None or n >= max(ENOUGH_ROWS, 2 * r)
        if not enough or (anytime and not (self.fit.design.sums.frozen and self._eventful)):
            return np.where(b.any(axis=1), math.inf, 0.0)
        V = self.fit.inverse * (dispersion or 1.0)
        if dispersion is None:
            V = self.fit.sandwich * n / (n - r)
        unit = float(self.fit.design.link.slope(np.zeros(1))[0]) / (dispersion or 1.0)
        v = np.maximum(np.einsum("ij,ij->i", matmul(b, V), b), 0.0)  # rounding
        if whole:
            half = _simultaneous(b, V, self.fit.design.prior * unit, delta)
        elif anytime:
            design = self.fit.design
            a = matmul(z, design.C.T)
            scales = np.where(design.sums.scales > 0, design.sums.scales, 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                phi = PRECISION * unit / np.einsum("ij,ij->i", a / scales, a)
                half = anytime_half_width(v, phi, math.inf, delta)
        else:
            half = quantile(math.inf, delta) * np.sqrt(v)
        half = np.where(self.fit.known(b) & np.isfinite(half), half, math.inf)
        return np.where(b.any(axis=1), half, 0.0)

    @property
    def _eventful(self) -> bool:
        """Whether there are as many events as the likelihood needs to be nearly quadratic."""
        w, (low, high) = self.fit.design.w, FAMILIES[self.family].label_range
        y = self.fit.design.y - low
        events = float(w @ y)
        if high == 1.0:
            events = min(events, float(w @ (high - low - y))) / (high - low)
        return events >= FEWEST

    def _label(self, z: Array, noise: Likelihood | str, delta: float) -> tuple[Array, Array, str]:
        """Return bounds of a new label of weight 1 at each direction, and what they rest on."""
        low, high = FAMILIES[self.family].label_range
        if high == 1.0:
            found = self._scores_within(z, noise, delta / 2, False, False)
            lower, upper = self._means(found)
            rare = (high - low) * delta / 4
            return (
                np.where(high - lower < rare, high, low),
                np.where(upper - low > rare, high, low),
                found.rests_on,
            )
        found = self._scores_within(z, noise, delta, False, False)
        ends = _counts(found, self._dispersion(noise) or 1.0, delta)
        return (*ends, found.rests_on)


def _counts(scores: Interval, dispersion: float, delta: float) -> tuple[Array, Array]:
    """Return bounds of a new count whose score has these bounds, which hold those of its mean."""
    low, high = (np.asarray(each) for each in scores)
    known = np.isfinite(high)
    lower, upper = np.zeros(len(known)), np.full(len(known), math.inf)
    low, high = low[known], high[known]
    with np.errstate(over="ignore"):
        ends = [np.minimum(np.exp(each), FARTHEST) for each in (low, (low + high) / 2, high)]
    sd = (high - low) / 2 / quantile(math.inf, delta)
    spread = np.minimum(sd, 1.0) ** 2  # a gamma distribution of larger sd is nearly always near 0
    spread += max(dispersion - 1, 0.0) / np.maximum(ends[1], 1 / FARTHEST)
    lower[known] = np.minimum(count_quantile(delta / 2, ends[1], spread), np.floor(ends[0]))
    upper[known] = np.maximum(count_quantile(1 - delta / 2, ends[1], spread), np.ceil(ends[2]))
    return lower, upper


def count_quantile(share: float, mean: Array, spread: Array) -> Array:
    r"""Return quantiles of a count whose mean is uncertain, with relative variance ``spread``.

    The mean is taken as gamma-distributed, so the count is negative binomial with variance
    :math:`m + sm^2`. That is the posterior of a mean of n counts with sum S under the prior
    1/mean, whose relative variance 1/S is that of the estimated score.

    >>> count_quantile(0.975, np.array([4.0, 4.0]), np.array([0.0, 0.25]))
    array([ 8., 11.])
    """
    from scipy.special import betainc, gammaincinv

    s = np.maximum(spread, NEARLY_POISSON)
    total = s + 1 / np.maximum(mean, NORMAL)
    large = np.floor(mean * total * gammaincinv(1 / total, share))
    m, s = mean[mean < NORMAL], s[mean < NORMAL]
    least, most = np.full(len(m), -1.0), np.ceil(m)

    def reached(k: Array) -> NDArray[np.bool_]:
        return np.asarray(1 - betainc(k + 1, 1 / s, m * s / (1 + m * s)) >= share)

    while not (enough := reached(most)).all():
        most = np.where(enough, most, 2 * most + 1)
    while (most - least > 1).any():
        middle = np.floor((least + most) / 2)
        enough = reached(np.maximum(middle, 0.0)) & (middle >= 0)
        least, most = np.where(enough, least, middle), np.where(enough, middle, most)
    large[mean < NORMAL] = most
    return large


def _simultaneous(b: Array, V: Array, D: Array, delta: float) -> Array:
    r"""Return half-widths for all rows at all times, of an estimate of variance V: asymptotic.

    The formula of `LeastSquares.simultaneous_half_width` for sd 1 and :math:`G = V^{-1}`, which is
    0 where labels are separated.
    """
    square, lifted = np.full(len(b), math.inf), matmul(b, V)
    root = np.linalg.cholesky(D)
    half = np.linalg.solve(root, np.linalg.pinv(V, hermitian=True))
    values = np.maximum(np.linalg.eigvalsh(np.linalg.solve(root, half.T)), 0.0)
    for rho in GRID:
        level = 2 * math.log(len(GRID) / delta) + float(np.log1p(values / rho).sum())
        form = np.einsum("ij,ij->i", matmul(lifted, rho * D), lifted)
        square = np.minimum(square, level * (np.einsum("ij,ij->i", lifted, b) + form))
    return np.sqrt(square)
