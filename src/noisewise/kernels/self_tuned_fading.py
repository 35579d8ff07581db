"""Older rewards of `SelfTunedUCB` discounted, where their user says how fast; compiled.

A reward counts gamma^a once a more have come, gamma = 1 - 1/`forget_after`.
"""

from numba import njit

from .compile_options import INNER, PART
from .self_tuned_ucb_numbers import M, V

RENEWALS = 4.0  # while the rewards that count are replaced once


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
