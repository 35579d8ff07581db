"""Estimates of a policy's value from weighted rewards, each with an interval."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..printing import percent
from ..protocols import Array
from . import betting
from .decision_table import DecisionTable

FIXED = "one policy, at one time fixed in advance; approximate"
ANYTIME = "one policy, at all times at once"
RECORDED = "probabilities as recorded"
SUPPORT = f"{RECORDED}, above 0 for every action the policy takes"
SAMPLED = "contexts drawn from one distribution"
NORMAL = f"{SAMPLED}; an effective sample size so large that means are about normal"
RESTS_ON = {
    "mean": f"rewards from one distribution; {NORMAL}",
    "ips": f"{SUPPORT}; {NORMAL}",
    "snips": f"{SUPPORT}; {NORMAL}; its bias, of order 1/n, is left out",
    "dr": f"{SUPPORT}; {NORMAL}; no prediction needs to be right",
}
BOUNDED = f"rewards within [{{:g}}, {{:g}}]; {SAMPLED}"
LEAST_EFFECTIVE = 30.0
HEAVIEST = 0.1  # share of all weights on one decision
SUSPECT = 3.5  # standard errors by which weights fall short of 1, where nothing else tells


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
        False where `OffPolicyValue.warnings` says why not to rely on the interval.
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


def estimates(
    name: str,
    pi: Array,
    table: DecisionTable,
    q: Array,
    delta: float,
    limits: tuple[float, float] | None,
) -> list[Estimate]:
    r"""Estimate the value of a policy with probabilities ``pi`` (n, K).

    With :math:`w = \pi(a)/p(a)` and q the reward expected of each action:

    .. math:: \text{ips} = \overline{wr},\qquad \text{snips} = \overline{wr}/\overline{w},\qquad
              \text{dr} = \overline{\textstyle\sum_b \pi(b)q(b) + w(r - q(a))}
    """
    w, r = weights(pi, table), table.reward
    size = effective(w)
    v = float((w * r).sum() / w.sum()) if w.any() else math.nan
    spread = w.mean() or math.nan
    ways = {
        "ips": (float((w * r).mean()), w * r),
        "snips": (v, v + w * (r - v) / spread),
    }
    dr = doubly_robust(pi, w, table, q)
    ways["dr"] = float(dr.mean()), dr
    found = [
        normal(name, estimator, value, terms, delta, size, limits)
        for estimator, (value, terms) in ways.items()
    ]
    if limits is not None:
        found.append(anytime(name, w, r, delta, limits))
    return found


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


def normal(
    name: str,
    estimator: str,
    value: float,
    terms: Array,
    delta: float,
    size: float,
    limits: tuple[float, float] | None,
) -> Estimate:
    """Return a mean with its standard error times a quantile of Student's t."""
    from scipy.stats import t

    error = float(terms.std(ddof=1)) / math.sqrt(len(terms))
    half = error * float(t.isf(delta / 2, size - 1)) if size > 1 else math.nan
    low, high = limits or (-math.inf, math.inf)
    lower, upper = (min(max(end, low), high) for end in (value - half, value + half))
    if math.isnan(half):
        lower = upper = math.nan
    return Estimate(name, estimator, value, lower, upper, FIXED, RESTS_ON[estimator], size)


def anytime(name: str, w: Array, r: Array, delta: float, limits: tuple[float, float]) -> Estimate:
    """Return the bounds of two bets, on rewards and on what they lack to the largest.

    The value is midway between the two weighted means. Where the policy needs what had probability
    0, weighted rewards fall short on both sides: the bounds hold all the same.
    """
    low, high = limits
    share = (r - low) / (high - low)
    lower = low + (high - low) * betting.lower_bound(w * share, delta / 2)
    upper = high - (high - low) * betting.lower_bound(w * (1 - share), delta / 2)
    value = low + (high - low) * float((w * share).mean() + (1 - w * (1 - share)).mean()) / 2
    words = f"{RECORDED}; {BOUNDED.format(low, high)}"
    return Estimate(name, "anytime", value, lower, upper, ANYTIME, words, effective(w))


def doubted(found: list[Estimate]) -> list[Estimate]:
    """Return estimates marked as unreliable, except intervals that hold for any weights."""
    return [e if e.estimator == "anytime" else replace(e, reliable=False) for e in found]


def warnings_of(name: str, pi: Array, table: DecisionTable) -> list[str]:
    """Return why not to rely on estimates of a policy."""
    w, found = weights(pi, table), []
    if table.probabilities is not None:
        lost = float((pi * (table.probabilities <= 0)).sum(axis=1).mean())
        if lost > 1e-12:
            found.append(
                f"{name}: {percent(lost)} of its decisions had probability 0 in the log, which "
                "says nothing about their rewards; only the anytime interval holds. An agent with "
                "among='all' gives every arm a probability above 0"
            )
    error = float(w.std(ddof=1)) / math.sqrt(len(w))
    short = 1 - float(w.mean())
    if not found and abs(short) > 5 * error + 1e-9:
        found.append(
            f"{name}: weights average {w.mean():.3g} instead of 1; probabilities are wrong, or "
            "some of its decisions had probability 0 in the log"
        )
    elif table.probabilities is None and short > SUSPECT * error + 1e-9:
        found.append(
            f"{name}: weights average {w.mean():.3g} instead of 1, so about {percent(short)} of "
            "its decisions may have had probability 0; keep the column 'probabilities' to be sure"
        )
    size = effective(w)
    if size < LEAST_EFFECTIVE:
        found.append(
            f"{name}: its effective sample size is {size:.0f}; only the anytime interval is "
            "reliable"
        )
    elif w.max() > HEAVIEST * w.sum():
        found.append(f"{name}: one decision has {percent(w.max() / w.sum())} of the total weight")
    return found
