r"""Whether a mean of weighted rewards is about normal: from weights, rewards and their product.

Three things can deceive a standard error. The largest weights may be missing from the log: where
one weight has a large share of the sum of squares, larger ones are likely to exist. So may the
largest rewards, or nearly all of a few successes; of k equal ones, each has the share 1/k. And few
decisions may be behind the standard error: with deviations d from the mean it is as uncertain as
that of :math:`(\sum d^2)^2/\sum d^4` equal ones.
"""

import math

import numpy as np

from ...protocols import Array
from ...support.printing import count_of, percent
from .decision_table import DecisionTable

LEAST_REWARDS = 20  # equal rewards apart from the mean, or more that differ
MOST_SHARE = 1 / LEAST_REWARDS  # of one weight, or one reward, in the sum of squares
LEAST_BEHIND = 10  # decisions behind a standard error
SUSPECT = 3.5  # standard errors by which weights fall short of 1, where nothing else tells


def share(x: Array) -> float:
    """Return the largest share of one number in the sum of squares, 0 if all are 0.

    >>> share(np.array([0.0, 1.0, -1.0, 1.0, 1.0])), share(np.zeros(3))
    (0.25, 0.0)
    """
    squares = x * x
    return float(squares.max() / squares.sum()) if squares.any() else 0.0


def behind(d: Array) -> float:
    """Return the number of equal deviations whose sum of squares is as uncertain.

    >>> behind(np.array([1.0, -1.0, 1.0, 0.0]))
    3.0
    """
    squares = d * d
    top = float((squares * squares).sum())
    return float(squares.sum()) ** 2 / top if top > 0 else 0.0


def planned(w: Array, pi: Array, table: DecisionTable) -> float:
    """Return what is behind a sum of weights, by the probabilities of all actions where known."""
    p = table.probabilities
    if p is None:
        return behind(w)
    x = np.divide(pi, p, out=np.zeros_like(p), where=p > 0)
    squares, top = float((p * x**2).sum()), float((p * x**4).sum())
    return squares**2 / top if top > 0 else 0.0


def expected(w: Array, r: Array, weights_behind: float) -> float:
    """Return what would be behind a sum of w r, were weights and rewards independent.

    Unlike the sum itself it does not depend on whether a rare weight met a rare reward.
    """
    if not w.any():
        return 0.0
    squares = (r - np.average(r, weights=w)) ** 2
    second, fourth = np.average(squares, weights=w), np.average(squares**2, weights=w)
    return float(weights_behind * second**2 / fourth) if fourth > 0 else 0.0


def support_doubts(name: str, w: Array, pi: Array, table: DecisionTable) -> list[str]:
    """Return whether decisions of a policy are missing from a log altogether."""
    if table.probabilities is not None:
        lost = float((pi * (table.probabilities <= 0)).sum(axis=1).mean())
        if lost > 1e-12:
            return [
                f"{name}: {percent(lost)} of its decisions had probability 0 in the log, which "
                "says nothing about their rewards; only the anytime interval holds. An agent with "
                "among='all' gives every arm a probability above 0"
            ]
    error = float(w.std(ddof=1)) / math.sqrt(len(w)) if len(w) > 1 else math.inf
    short = 1 - float(w.mean())
    if abs(short) > 5 * error + 1e-9:
        return [
            f"{name}: weights average {w.mean():.3g} instead of 1; probabilities are wrong, or "
            "some of its decisions had probability 0 in the log"
        ]
    if table.probabilities is None and short > SUSPECT * error + 1e-9:
        return [
            f"{name}: weights average {w.mean():.3g} instead of 1, so about {percent(short)} of "
            "its decisions may have had probability 0; keep the column 'probabilities' to be sure"
        ]
    return []


def tail_doubts(name: str, w: Array, r: Array, known: bool) -> list[str]:
    """Return whether one weight, or one reward, has too large a share.

    Where the probabilities of all actions are ``known``, `planned` sees the weights not met.
    """
    if not w.any():
        return []
    found = []
    heaviest = share(w)
    if heaviest > MOST_SHARE and not known:
        found.append(
            f"{name}: its largest weight, {w.max():.3g}, has {percent(heaviest)} of the sum of "
            f"squared weights; more than {percent(MOST_SHARE)} suggests that larger ones are "
            "missing from the log, which a column 'probabilities' would show"
        )
    farthest = share((r - np.average(r, weights=w))[w > 0])
    if farthest == 0:
        found.append(f"{name}: its rewards in the log are all equal, so their spread is not known")
    elif farthest > MOST_SHARE:
        found.append(
            f"{name}: its value rests on a few rewards that differ from the others, such as "
            f"successes, as if on {math.floor(1 / farthest)}; it takes {LEAST_REWARDS}"
        )
    return found


def too_few(name: str, estimator: str, count: float) -> str:
    """Return the sentence on a standard error that rests on few decisions."""
    return (
        f"{name}, {estimator}: its standard error rests on about "
        f"{count_of(math.floor(count), 'decision')}; it takes {LEAST_BEHIND}"
    )
