"""A learner of `SelfTunedUCB`, compiled: rows are learnt by rank one, their past discounted.

Of the two, one learns from all rewards, the other forgets. The loss of a row is that of a normal or
binomial likelihood; shares are learnt by one implicit Newton step, which is exact for a quadratic.
Where a user says how fast older rewards are discounted, one counts gamma^a in the first, too, once
a more have come, gamma = 1 - 1/`forget_after`.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ...support.arrays import Array
from ..compiling.compile_options import INNER, PART
from ..matrices.dense import dot, invert, times, update_inverse
from .self_tuned_ucb_numbers import GAUSSIAN, M, V

RENEWALS = 4.0  # while the rewards that count are replaced once
FLATTEST = 2e-9  # slope of the logistic mean at a score of 20


class Learner(NamedTuple):
    """Coefficients, b and G, the sums over rows, and P = (G + R)^-1; views of a state."""

    theta: Array
    moment: Array
    gram: Array
    inverse: Array


@njit(**INNER)
def lasting(v, m):
    """Return the learner of all rewards."""
    return Learner(v[V.theta], v[V.moment], m[M.gram], m[M.inverse])


@njit(**INNER)
def forgetting(v, m):
    """Return the one that forgets."""
    return Learner(
        v[V.recent_theta], v[V.recent_moment], m[M.recent_gram], m[M.recent_inverse]
    )  # fmt: skip


@njit(**INNER)
def sigmoid(z):
    """Return the logistic mean."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@njit(**INNER)
def slope(p):
    """Return the slope of the logistic mean where that is ``p``."""
    return max(p * (1.0 - p), FLATTEST)


@njit(**INNER)
def log_likelihood(score, y, n):
    """Return the log likelihood of a share ``y`` of ``n`` trials."""
    return n * (y * score - max(score, 0.0) - math.log1p(math.exp(-abs(score))))


@njit(**PART)
def implicit_step(score, h, y, n):
    """Return the root of u = n (y - mean(score + h u)), by Newton's method within brackets."""
    p = sigmoid(score)
    u = n * (y - p)
    low, high = min(u, 0.0), max(u, 0.0)
    u /= 1.0 + n * h * slope(p)
    for _ in range(60):
        p = sigmoid(score + h * u)
        excess = u - n * (y - p)
        if excess > 0.0:
            high = u
        else:
            low = u
        after = u - excess / (1.0 + n * h * slope(p))
        if not low <= after <= high:
            after = 0.5 * (low + high)
        if abs(after - u) <= 1e-12 * abs(after):
            return after
        u = after
    return u


@njit(**PART)
def add_row(P, z, c):
    """Add c z z' to the matrix of which P is the inverse; return c z'Pz."""
    k = np.empty(z.shape[0])
    q = times(P, z, k)
    update_inverse(P, k, q, c, 1.0)
    return c * q


@njit(**PART)
def learn_row(learner, family, z, k, y, w, gamma, most):
    """Learn a reward of weight ``w`` (for shares: trials), all before it discounted by ``gamma``.

    Returns the score of before, z'Pz, the squared standardised residual of a continuous reward up
    to ``most``, beyond which the row counts less, and what it counts. Sets ``k`` to Pz of before.
    """
    theta, moment, gram, P = learner
    q, score, square = times(P, z, k), dot(z, theta), 0.0
    h = q / gamma
    if family == GAUSSIAN:
        r, c = y - score, w
        square = r * r / (1.0 / w + q)
        if square > most:
            c, square = w * math.sqrt(most / square), most
        u, b = c * r / (1.0 + c * h), c * y
    else:
        u = implicit_step(score, h, y, w)
        after = score + h * u
        c = w * slope(sigmoid(after))
        b = c * after + u
    for i in range(z.shape[0]):
        theta[i] += u / gamma * k[i]
        moment[i] = gamma * moment[i] + b * z[i]
        for j in range(i + 1):
            gram[i, j] = gamma * gram[i, j] + c * z[i] * z[j]
            gram[j, i] = gram[i, j]
    update_inverse(P, k, q, c, gamma)
    return score, q, square, c


@njit(**PART)
def solve(learner, penalty):
    """Invert G + R, and solve for the coefficients."""
    invert(learner.gram, penalty, learner.inverse)
    times(learner.inverse, learner.moment, learner.theta)


@njit(**INNER)
def discount(s):
    """Return gamma, 1 where nothing is forgotten."""
    return 1.0 - 1.0 / s.forget_after if s.forget_after > 0.0 else 1.0


@njit(**INNER)
def age_weight(s, t):
    """Return what row ``t`` of the history counts."""
    return discount(s) ** (s.stored - 1.0 - t) if s.forget_after > 0.0 else 1.0


@njit(**PART)
def fade(s, v, m, k):
    """Discount what the rewards so far have summed up to, and ``k``, Pz, likewise.

    The learner has discounted G already: so P, which is in ``k`` and in P M P, is larger.
    """
    gamma = discount(s)
    s.information *= gamma
    s.condensed_information *= gamma
    s.slopes *= gamma
    s.slope_squares *= gamma * gamma
    for i in range(k.shape[0]):
        k[i] /= gamma
        v[V.condensed_moment, i] *= gamma
        for j in range(k.shape[0]):
            m[M.condensed_gram, i, j] *= gamma
            m[M.noise, i, j] *= gamma
            m[M.sandwich, i, j] /= gamma
