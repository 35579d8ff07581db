"""A feature of a self-tuned regression whose variance has moved, changed by rank one; compiled.

The penalty of feature j grows by m, so with k = P e_j, P falls by f k k' and B by f B_j k, where
f = m/(1 + m k_j): a row e_j of label 0 and weight m.
"""

import numpy as np
from numba import njit

from ..compiling.compile_options import INNER, PART
from ..glm import layout
from ..matrices.dense import dot, set_line
from ..matrices.vectors import sweep
from .ridge_rule import INTERCEPT_RIDGE
from .self_tuned_numbers import ROW, VECTORS

RENEWAL = 2.0
padded = njit(**INNER)(layout.padded)


@njit(**INNER)
def penalty(v, i, ridge):
    """Return an entry of R: the ridge times a variance, 1 where that is 0."""
    if i >= v.shape[0]:
        return INTERCEPT_RIDGE
    return ridge * v[i] if v[i] > 0.0 else 1.0


@njit(**INNER)
def has_moved(used, v, j):
    """Return whether the variance of a feature has moved by a factor of 2."""
    return v[j] > RENEWAL * used[j] or used[j] > RENEWAL * v[j]


@njit(**INNER)
def fold(expert, gamma, z, y, w, P, B):
    """Take w z z' into P, the inverse of discounted sums, and w y z into B; return z'Pz."""
    p, scale = z.shape[0], expert.scale
    ld = np.uint64(padded(p))
    row, old = np.uint64(ROW) * ld, np.uint64(expert.slot) * ld
    new = ld - old
    for i in range(p):
        P[row + np.uint64(i)] = z[i]
    first = np.uint64(VECTORS) * ld
    (q,) = sweep(P, np.uint64(p), ld, first, old, row, new, -expert.pending)
    share = scale * w / (gamma + w * scale * max(q, 0.0))
    expert.pending, expert.slot = share, 1.0 - expert.slot
    step = share * (y - dot(z, B))
    for i in range(p):
        B[i] += step * P[new + np.uint64(i)]
    return q


@njit(**PART)
def heavy(used, v, p, G):
    """Count moved features that are not 0 in all rows learnt: those change more than themselves."""
    ld, found = padded(p), 0
    for j in range(v.shape[0]):
        if has_moved(used, v, j) and G[j * ld + j] > 0.0:
            found += 1
    return found


@njit(**PART)
def rescale(expert, used, v, unit, G, P, B):
    """Change the penalty of moved features, each by rank one; ``unit`` is 0 before and after."""
    d, ld = v.shape[0], padded(unit.shape[0])
    ridge = expert.ridge * d
    for j in range(d):
        if not has_moved(used, v, j):
            continue
        if G[j * ld + j] > 0.0:
            unit[j] = 1.0
            more = (penalty(v, j, ridge) - penalty(used, j, ridge)) / expert.scale
            fold(expert, 1.0, unit, 0.0, more, P, B)
            unit[j] = 0.0
        else:
            P[(VECTORS + j) * ld + j] = 1.0 / penalty(v, j, ridge)


@njit(**PART)
def rescaled(expert, used, v, G, P, B, count, found):
    """Set what `rescale` would make of B, with ``count`` heavy features; P is only read."""
    d, p = v.shape[0], B.shape[0]
    ld = padded(p)
    ridge, first = expert.ridge * d, VECTORS * ld
    last = int(expert.slot) * ld
    K, shares = np.empty((count, p)), np.empty(count)
    set_line(B, found)
    c = 0
    for j in range(d):
        if not has_moved(used, v, j) or not G[j * ld + j] > 0.0:
            continue
        k = K[c]
        for i in range(p):
            k[i] = P[first + j * ld + i] if i <= j else P[first + i * ld + j]
            k[i] = expert.scale * (k[i] - expert.pending * P[last + i] * P[last + j])
        for o in range(c):
            factor = shares[o] * K[o, j]
            for i in range(p):
                k[i] -= factor * K[o, i]
        more = (penalty(v, j, ridge) - penalty(used, j, ridge)) / expert.scale
        shares[c] = more / (1.0 + more * k[j])
        step = shares[c] * found[j]
        for i in range(p):
            found[i] -= step * k[i]
        c += 1
