"""Estimates of a policy's value from weighted rewards, each with an interval."""

import math
from dataclasses import dataclass

import numpy as np

from ...protocols import Array
from ...theory import betting
from ...theory.mixtures import asymptotic_half_width, quantile
from . import reliability
from .decision_table import DecisionTable

Limits = tuple[float, float] | None
Ways = dict[str, tuple[float, Array]]  # estimator -> estimate, and terms with its error
START = 100.0  # effective sample size from which the asymptotic sequence holds
FIXED = "one policy, at one time fixed in advance; approximate"
ANYTIME = "one policy, at all times at once"
LATER = f"{ANYTIME} from an effective sample size of {START:g} on; approximate"
RECORDED = "probabilities as recorded"
SUPPORT = f"{RECORDED}, above 0 for every action the policy takes"
SAMPLED = "contexts drawn from one distribution"
NORMAL = f"{SAMPLED}; so many decisions behind the standard error that means are about normal"
RESTS_ON = {
    "mean": f"rewards from one distribution; {NORMAL}",
    "ips": f"{SUPPORT}; {NORMAL}",
    "snips": f"{SUPPORT}; {NORMAL}; its bias, of order 1/n, is left out",
    "dr": f"{SUPPORT}; {NORMAL}; no prediction needs to be right",
}
BOUNDED = f"rewards within [{{:g}}, {{:g}}]; {SAMPLED}"
NO_VALUE = "no value explains these rewards; the recorded probabilities are wrong"
CONTRADICTED = f"nothing: {NO_VALUE}"
UNBOUNDED = f"{SUPPORT}; {SAMPLED}; rewards and weights of finite variance, no range being known"


@dataclass(frozen=True)
class Estimate:
    """The value of a policy, a mean reward per decision, by one estimator.

    Attributes
    ----------
    policy, estimator : str
    value, lower, upper : float
        The ends are NaN where the estimator has no interval.
    promise, rests_on : str
        What the interval promises with probability 1 - delta, and what that assumes.
    effective : float
        The effective sample size, :math:`(\\sum w)^2/\\sum w^2`.
    reliable : bool
        False where `OffPolicyValue.warnings` says why there is no interval: use the anytime one.
    """

    policy: str
    estimator: str
    value: float
    lower: float
    upper: float
    promise: str
    rests_on: str
    effective: float
    reliable: bool = True


@dataclass(frozen=True, eq=False)
class Judged:
    """A policy on a log: ``w`` and ``r`` (n,), the terms of its estimators, and doubts.

    ``lost`` says that the log lacks some of its decisions; ``expected`` is what would be behind its
    standard error, whatever weights the rewards met.
    """

    name: str
    w: Array
    r: Array
    ways: Ways
    expected: float
    lost: tuple[str, ...]
    doubts: tuple[str, ...]

    def lines(self, delta: float, limits: Limits) -> tuple[list[Estimate], list[str]]:
        """Return estimates, the anytime one last, and what is to be said of them."""
        found, said = [], [*self.lost, *self.doubts]
        for estimator, (value, terms) in self.ways.items():
            each, more = self.approximate(estimator, value, terms, delta, limits)
            found.append(each)
            said += more
        always = self.anytime(delta, limits)
        if math.isinf(always.lower):
            said.append(self.unlimited)
        elif always.rests_on == CONTRADICTED:
            said.append(f"{self.name}: the anytime interval says nothing, since {NO_VALUE}")
        return [*found, always], said

    def approximate(
        self, estimator: str, value: float, terms: Array, delta: float, limits: Limits
    ) -> tuple[Estimate, list[str]]:
        """Return an estimate, without an interval and with the reason where that would not hold."""
        count = min(reliability.behind(terms - terms.mean()), self.expected)
        doubted = bool(self.lost or self.doubts)
        few = count < reliability.LEAST_BEHIND
        lower = upper = math.nan
        if not (doubted or few):
            lower, upper = normal(value, terms, delta, limits)
        said = [reliability.too_few(self.name, estimator, count)] if few and not doubted else []
        words, size = RESTS_ON[estimator], effective(self.w)
        return Estimate(
            self.name, estimator, value, lower, upper, FIXED, words, size, not (doubted or few)
        ), said

    def anytime(self, delta: float, limits: Limits) -> Estimate:
        """Return the interval for all times: by betting, or asymptotic where there is no range.

        Where the policy needs what had probability 0, weighted rewards fall short on both sides:
        the bounds of bets hold all the same.
        """
        size = effective(self.w)
        if limits is None:
            value, terms = list(self.ways.values())[-1]
            half = math.inf if self.lost or size < START else sequence(terms, delta)
            ends = value - half, value + half
            return Estimate(self.name, "anytime", value, *ends, LATER, UNBOUNDED, size)
        low, high = limits
        s = (self.r - low) / (high - low)
        found = betting.interval(self.w * s, self.w * (1 - s), delta)
        words = f"{RECORDED}; {BOUNDED.format(*limits)}"
        if math.isnan(found[0]):
            found, words = (0.0, found[1], 1.0), CONTRADICTED
        lower, value, upper = (low + (high - low) * each for each in found)
        return Estimate(self.name, "anytime", value, lower, upper, ANYTIME, words, size)

    @property
    def unlimited(self) -> str:
        """Why the anytime interval says nothing."""
        if self.lost:
            why = "some of its decisions may be missing from the log"
        else:
            why = f"its effective sample size is {effective(self.w):.0f}, where it takes {START:g}"
        return (
            f"{self.name}: the anytime interval is infinite, since rewards have no known range and "
            f"{why}; pass reward_range if there is one"
        )


def judge(name: str, pi: Array, table: DecisionTable, q: Array) -> Judged:
    r"""Return a policy with probabilities ``pi`` (n, K) on a log.

    With :math:`w = \pi(a)/p(a)` and q the reward expected of each action:

    .. math:: \text{ips} = \overline{wr},\qquad \text{snips} = \overline{wr}/\overline{w},\qquad
              \text{dr} = \overline{\textstyle\sum_b \pi(b)q(b) + w(r - q(a))}
    """
    w, r = weights(pi, table), table.reward
    v = float((w * r).sum() / w.sum()) if w.any() else math.nan
    spread = w.mean() or math.nan
    dr = doubly_robust(pi, w, table, q)
    ways = {
        "ips": (float((w * r).mean()), w * r),
        "snips": (v, v + w * (r - v) / spread),
        "dr": (float(dr.mean()), dr),
    }
    expected = reliability.expected(w, r, reliability.planned(w, pi, table))
    lost = reliability.support_doubts(name, w, pi, table)
    doubts = reliability.tail_doubts(name, w, r, table.probabilities is not None)
    return Judged(name, w, r, ways, expected, (*lost,), (*doubts,))


def played(name: str, r: Array) -> Judged:
    """Return what was earned: all weights are 1."""
    w = np.ones(len(r))
    expected = reliability.expected(w, r, float(len(r)))
    doubts = reliability.tail_doubts(name, w, r, known=True)
    return Judged(name, w, r, {"mean": (float(r.mean()), r)}, expected, (), (*doubts,))


def weights(pi: Array, table: DecisionTable) -> Array:
    """Return how much likelier the policy takes what was taken, (n,)."""
    return np.asarray(pi[np.arange(len(table)), table.action] / table.probability)


def doubly_robust(pi: Array, w: Array, table: DecisionTable, q: Array) -> Array:
    """Return the terms whose mean is the doubly robust estimate, (n,)."""
    expected = q[np.arange(len(w)), table.action]
    return np.asarray((pi * q).sum(axis=1) + w * (table.reward - expected))


def effective(w: Array) -> float:
    """Return the effective sample size: the number of equal weights with the same precision."""
    return float(w.sum() ** 2 / (w**2).sum()) if w.any() else 0.0


def normal(value: float, terms: Array, delta: float, limits: Limits) -> tuple[float, float]:
    r"""Return an interval around a mean: by Student's t, with room for skewness.

    The kurtosis gives degrees of freedom, :math:`2/(k/n - 1/n)` where k/n is one over the decisions
    behind the standard error. This counts the largest deviation twice, for one as large that the
    log does not have. Each end is the farther one of Student's t and of Hall's transformation
    (1992), by which an estimate from skewed terms is about normal.
    """
    n, d = len(terms), terms - terms.mean()
    error = math.sqrt(float((d**2).sum() + (d**2).max()) / (n - 1) / n)
    size = reliability.behind(d)
    freedom = min(n - 1.0, 2 / (1 / size - 1 / n)) if size < n else n - 1.0
    t = float(quantile(freedom, delta))
    skewness = float((d**3).sum() / (d**2).sum() ** 1.5)
    low, high = limits or (-math.inf, math.inf)
    lower = value - error * max(t, _hall(t, skewness))
    upper = value + error * max(t, -_hall(-t, skewness))
    return max(lower, low), min(upper, high)


def _hall(x: float, skewness: float) -> float:
    """Return where Hall's transformation of a studentised mean is x: its cubic, solved."""
    if abs(skewness) < 1e-6:
        return x
    return 3 / skewness * (float(np.cbrt(1 + skewness * (x - skewness / 6))) - 1)


def sequence(terms: Array, delta: float) -> float:
    """Return `asymptotic_half_width` of the mean of terms."""
    d = terms - terms.mean()
    return asymptotic_half_width(len(terms), float((d**2).sum()), float((d**4).sum()), delta)
