"""Noise that differs from arm to arm, compiled: what `SelfTunedUCB` learns where sds are not given.

With M the sum of squared standardised residuals times z z', P M P is the variance of the estimate
whatever the noise of each row (a sandwich). It is kept beside M: rank one changes both.
"""

import numpy as np
from numba import njit

from . import self_tuned_ucb_layout as at
from .compile_options import INNER, PART
from .dense import times


@njit(**INNER)
def own_dispersion(h, f, prior):
    """Return phi of an arm: that of the 1/h rewards near it and of one more, the prior's.

    It is the prior's at least; ``f`` is z'PMPz, h is z'Pz.
    """
    return max(prior, (f / h + h * prior) / (1.0 + h)) if h > 0.0 else prior


@njit(**PART)
def count_noise(m, z, k, q, u, square):
    """Count a squared standardised residual; ``k`` and q are Pz and z'Pz of before the row."""
    D = z.shape[0]
    M, S, g = m[at.NOISE], m[at.SANDWICH], np.empty(D)
    f, left = times(S, z, g), 1.0 / (1.0 + u * q)
    a = u * left
    b = a * a * f + square * left * left
    for i in range(D):
        for j in range(i + 1):
            M[i, j] += square * z[i] * z[j]
            M[j, i] = M[i, j]
            S[i, j] += b * k[i] * k[j] - a * (k[i] * g[j] + g[i] * k[j])
            S[j, i] = S[i, j]


@njit(**PART)
def renew_noise(m):
    """Set P M P for another P."""
    P, M, S = m[at.INVERSE], m[at.NOISE], m[at.SANDWICH]
    D = P.shape[0]
    line, product = np.empty(D), np.empty((D, D))
    for i in range(D):
        times(M, P[i], line)
        times(P, line, product[i])
    for i in range(D):
        for j in range(i + 1):
            S[i, j] = S[j, i] = 0.5 * (product[i, j] + product[j, i])
