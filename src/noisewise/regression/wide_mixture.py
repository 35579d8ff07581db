"""How a `RidgeMixture` of many columns keeps their scales, at d^2 operations a row.

All scales are renewed at counts that grow by a quarter, if any variance has moved by a factor of 2.
In between only a column whose variance grows by more than 4 is, which changes the inverses of the
experts by two ranks; one that was the same in all rows so far has nothing to change. While rows
have fewer directions than columns, experts learn them in coordinates of their span.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import linalg
from ..blas import matmul, one_thread
from ..protocols import Array
from . import row_space
from .moving import rescaled, stretch, transformed

if TYPE_CHECKING:
    from .ridge_mixture import RidgeMixture
    from .ridge_mixture_state import RidgeMixtureState

NARROW = 50  # columns up to which all scales are renewed whenever one has moved
FIRST = 32  # directions that the first basis has room for
LEAP = 4.0  # growth of a variance that is not left alone until scales are renewed
AHEAD = 64  # rows that are learnt at once: an interrupt is heard in between


def ready(mixture: "RidgeMixture", state: "RidgeMixtureState", z: Array, variances: Array) -> int:
    """Make the state ready for the first of some rows; return how many of them it is ready for."""
    if not state.next_look:
        state.next_look = state.count + 1
    if state.basis is not None and state.rank == len(state.basis):
        grow(mixture, state)
    room = AHEAD if state.basis is None else len(state.basis) - state.rank
    n = min(len(z), AHEAD, state.next_look - state.count, room)
    rescale(mixture, state, variances[0])
    beyond = (leaps(state, variances[1:n]) | fresh(state, variances[1:n])).any(axis=1)
    n = 1 + int(np.argmax(beyond)) if beyond.any() else n
    if state.basis is not None:
        state.rank = row_space.widened(state.basis, state.rank, z[:n] * state.units)
    return n


def look(mixture: "RidgeMixture", state: "RidgeMixtureState", variance: Array) -> None:
    """Renew all scales if one is off by a factor of 2, and say when to look again."""
    if state.outgrown(variance):
        vars(state).update(vars(renewed(mixture, state, variance)))
    state.next_look = state.count + max(1, state.count // 4)


def leaps(state: "RidgeMixtureState", variance: Array) -> NDArray[np.bool_]:
    """Return which variances have grown by too much."""
    return (variance > LEAP * state.variances) & (state.variances > 0)


def fresh(state: "RidgeMixtureState", variance: Array) -> NDArray[np.bool_]:
    """Return which columns vary for the first time: they were 0 in all rows before."""
    return (variance > 0) & (state.variances == 0)


def rescale(mixture: "RidgeMixture", state: "RidgeMixtureState", variance: Array) -> None:
    """Renew the scales of columns that begin to vary, and of those whose variance leaps."""
    state.variances = np.where(fresh(state, variance), variance, state.variances)
    at = np.flatnonzero(leaps(state, variance))
    if 4 * len(at) > (state.dim if state.basis is None else state.rank):
        some = np.where(leaps(state, variance), variance, state.variances)
        vars(state).update(vars(renewed(mixture, state, some)))
        return
    for j in at.tolist():
        factor = math.sqrt(state.variances[j] / variance[j])
        if state.basis is None:
            direction, t = np.eye(1, state.dim, j)[0], factor
        else:
            direction, t = row_space.stretched(state.basis, j, factor)
        for each in state.experts:
            stretch(mixture.expert.glm, each, direction, t)
        state.variances[j] = variance[j]


@one_thread
def renewed(
    mixture: "RidgeMixture", state: "RidgeMixtureState", variance: Array
) -> "RidgeMixtureState":
    """Return the state of the same rows scaled by other variances."""
    variance, expert = np.where(variance > 0, variance, state.variances), mixture.expert
    ratio = np.divide(state.variances, variance, np.ones(state.dim), where=variance > 0)
    factors = np.sqrt(ratio)
    if state.basis is None:
        kept = np.ones(state.experts[0].dim - state.dim)
        factors = np.concatenate([factors, kept])
        experts = [rescaled(expert.glm, each, factors) for each in state.experts]
        return replace(state, experts=experts, variances=variance)
    basis, L = row_space.scaled(state.basis, state.rank, np.where(ratio > 0, factors, 1.0))
    back = linalg.lapack().dtrtri(L, lower=1)[0].T
    experts = [transformed(expert, each, L, back) for each in state.experts]
    return replace(state, experts=experts, variances=variance, basis=basis)


@one_thread
def grow(mixture: "RidgeMixture", state: "RidgeMixtureState") -> None:
    """Give the basis twice the room, or see the columns themselves where that is as many."""
    assert state.basis is not None
    p, basis = len(state.basis), None
    to = state.basis
    if 2 * p < state.dim:
        basis, to = np.zeros((2 * p, state.dim)), np.eye(p, 2 * p)
        basis[:p] = state.basis
    experts = [transformed(mixture.expert, each, to, to) for each in state.experts]
    rank = 0 if basis is None else state.rank
    vars(state).update(experts=experts, basis=basis, rank=rank)


def see_rows(mixture: "RidgeMixture", state: "RidgeMixtureState", z: Array) -> None:
    """Let fresh experts see the span of rows learnt at once, or columns where these are fewer."""
    if state.basis is None:
        return
    basis, rank, p = None, 0, FIRST
    while p < len(z):
        p *= 2
    if p < state.dim:
        basis = np.zeros((p, state.dim))
        rank = row_space.widened(basis, 0, z * state.units)
    width = state.dim if basis is None else p
    experts = [mixture.expert.start(width + mixture.fit_intercept) for _ in state.experts]
    vars(state).update(experts=experts, basis=basis, rank=rank)


@one_thread
def scores(state: "RidgeMixtureState", z: Array, variance: Array) -> Array:
    r"""Return what each expert scores rows as if each were the next.

    Where variances leap, the penalty grows by :math:`\frac12\sum_jD_j\theta_j^2` over those columns
    E, and the estimate is a Newton step away: less
    :math:`PE(D^{-1} + E^\top PE)^{-1}E^\top\theta`, P the inverse among all columns. It is that
    among coordinates in the span of rows, and one over the ridge beside it.
    """
    leap = leaps(state, variance)
    some, p = np.flatnonzero(leap.any(axis=1)), state.width
    found = np.empty((len(state.experts), len(z)))
    for i, each in enumerate(state.experts):
        x, theta, rho = state.scaled(z, i), each.theta, each.head.ridge
        found[i] = matmul(x, theta)
        if not len(some):
            continue
        P = each.inverse()
        for row in some.tolist():
            at = np.flatnonzero(leap[row])
            E = np.zeros((each.dim, len(at)))
            E[:p] = state.basis[:, at] if state.basis is not None else np.eye(p)[:, at]
            PE = P @ E
            own = z[row, at] * state.units[at] / math.sqrt(state.ridges[i])
            inside = E.T @ PE + (np.eye(len(at)) - E.T @ E) / rho
            D = rho * (variance[row, at] / state.variances[at] - 1)
            move = np.linalg.solve(np.diag(1 / D) + inside, E.T @ theta)
            found[i, row] -= (x[row] @ PE + (own - x[row] @ E) / rho) @ move
    return found
