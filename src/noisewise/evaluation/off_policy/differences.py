r"""What one policy earns more than another, from weighted rewards of the same decisions.

With :math:`v = \pi_1 - \pi_2` and w and u the weights of both, each estimate is the difference of
two. At all times, for rewards in [0, 1], the bets of `theory.betting` are on

.. math:: z(q) = \sum_b v(b)q(b) + (w - u)(r - q(a)),

whose mean given the past is the difference for any q known before. It is at least -1 for the
worst q, :math:`1[v < 0]`, whatever the probabilities. For each stake, q is the mixture of rewards
predicted and of the worst ones that keeps what can be lost below the stake's limit. So a larger
stake relies less on predictions, and no weight is too large. Where an action had probability 0, the
worst q stands for it, and the bound holds all the same.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...protocols import Array
from ...theory import betting
from ...theory.betting import STAKES
from . import estimates
from .decision_table import DecisionTable
from .estimates import ANYTIME, BOUNDED, CONTRADICTED, LATER, START, Estimate, Judged, Limits

GAIN = "gain"
MOST_LOST = 0.95  # of what was won so far, by one decision


@dataclass(frozen=True, eq=False)
class Rival:
    """A policy to be compared: its probabilities are (n, K), or None for what was played."""

    judged: Judged
    pi: Array | None


def lines(
    first: Rival, second: Rival, table: DecisionTable, q: Array, delta: float, limits: Limits
) -> tuple[list[Estimate], list[str]]:
    """Return the difference of two policies by each estimator, and what is to be said of it."""
    judged, other = first.judged, second.judged
    ways = {}
    for name, (value, terms) in judged.ways.items():
        less, those = other.ways.get(name) or other.ways["mean"]
        ways[name] = value - less, terms - those
    own = Judged(
        GAIN, judged.w, judged.r, ways, min(judged.expected, other.expected),
        tuple(dict.fromkeys((*judged.lost, *other.lost))),
        tuple(dict.fromkeys((*judged.doubts, *other.doubts))),
    )  # fmt: skip
    found, said = [], []
    for name, (value, terms) in ways.items():
        each, more = own.approximate(name, value, terms, delta, None)
        found.append(each)
        said += more
    size = min(estimates.effective(judged.w), estimates.effective(other.w))
    if limits is None:
        value, terms = ways["dr"]
        half = math.inf if own.lost or size < START else estimates.sequence(terms, delta)
        ends = value - half, value + half
        found.append(Estimate(GAIN, "anytime", value, *ends, LATER, estimates.UNBOUNDED, size))
        return found, said
    low, high = limits
    p, shares = probabilities(table), (table.reward - low) / (high - low)
    expected = np.clip((q - low) / (high - low), 0, 1)
    base = p if second.pi is None else second.pi
    if base is None or first.pi is None:  # against what was played, by unknown probabilities
        sums = [_sums(((judged.w - 1) * each)[:, None]) for each in (shares, 1 - shares)]
    else:
        sums = [
            log_wins(each, p, table, shares, expected)
            for each in (first.pi - base, base - first.pi)
        ]
    n, size_of = len(shares), high - low
    lower, upper = (
        sign * betting.lower_bound_of_sums(each, n, delta / 2)
        for sign, each in zip((1, -1), sums, strict=True)
    )
    words = f"{estimates.RECORDED}; {BOUNDED_ONLY.format(*limits)}"
    if lower > upper:
        lower, upper, words = -1.0, 1.0, CONTRADICTED
    value = min(max(ways["dr"][0], size_of * lower), size_of * upper)
    ends = size_of * lower, size_of * upper
    found.append(Estimate(GAIN, "anytime", value, *ends, ANYTIME, words, size))
    return found, said


BOUNDED_ONLY = BOUNDED.partition(";")[0]  # of the average over these contexts, however they change


def probabilities(table: DecisionTable) -> Array | None:
    """Return those of all actions, (n, K), where they are known, as of two from that of one."""
    if table.probabilities is not None or len(table.actions) != 2:
        return table.probabilities
    p = table.probability[:, None]
    return np.where(table.action[:, None] == np.arange(2), p, 1 - p)


def log_wins(v: Array, p: Array | None, table: DecisionTable, s: Array, q: Array) -> Array:
    """Return the sum of logarithms of what each stake has won, (G,), on a difference being large.

    ``s`` and ``q`` are rewards and their predictions, in [0, 1]; ``v`` (n, K) is the difference.
    """
    rows, a = np.arange(len(s)), table.action
    worst = (v < 0).astype(float)
    c = v[rows, a] / table.probability
    least = (v * worst).sum(axis=1)
    safe = least + c * (s - worst[rows, a])
    if p is None:
        return _sums(safe[:, None])
    q = np.where(p > 0, q, worst)
    centre = (v * q).sum(axis=1)
    weight = np.divide(v, p, out=np.zeros_like(v), where=p > 0)
    lowest = centre + (weight * (worst - q)).min(axis=1)  # whichever action had been taken
    z = centre + c * (s - q[rows, a])
    wanted, room = -MOST_LOST / STAKES - lowest[:, None], np.maximum(least - lowest, 1e-300)
    share = np.clip(wanted / room[:, None], 0, 1)
    return _sums((1 - share) * z[:, None] + share * safe[:, None])


def _sums(z: Array) -> Array:
    return np.asarray(np.log1p(z * STAKES).sum(axis=0))
