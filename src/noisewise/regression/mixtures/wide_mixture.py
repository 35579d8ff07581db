"""How a `RidgeMixture` of many columns keeps their scales, at d^2 operations a row.

All scales are renewed at counts that grow by a quarter, if any variance has moved by a factor of 2.
In between only a column whose variance grows by more than 4 is, which changes the inverses of the
learners by two ranks; one that was the same in all rows so far has nothing to change. While rows
have fewer directions than columns, learners see them in coordinates of their span.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...numerics import linalg
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from . import row_space

if TYPE_CHECKING:
    from .ridge_mixture import RidgeMixture
    from .ridge_mixture_state import RidgeMixtureState

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
    rescale(state, variances[0])
    beyond = (leaps(state, variances[1:n]) | fresh(state, variances[1:n])).any(axis=1)
    n = 1 + int(np.argmax(beyond)) if beyond.any() else n
    if state.basis is not None:
        state.rank = row_space.widened(state.basis, state.rank, z[:n] * state.units)
    return n


def look(state: "RidgeMixtureState", variance: Array) -> None:
    """Renew all scales if one is off by a factor of 2, and say when to look again."""
    if state.outgrown(variance):
        renew(state, variance)
    state.next_look = state.count + max(1, state.count // 4)


def leaps(state: "RidgeMixtureState", variance: Array) -> NDArray[np.bool_]:
    """Return which variances have grown by too much."""
    return (variance > LEAP * state.variances) & (state.variances > 0)


def fresh(state: "RidgeMixtureState", variance: Array) -> NDArray[np.bool_]:
    """Return which columns vary for the first time: they were 0 in all rows before."""
    return (variance > 0) & (state.variances == 0)


def rescale(state: "RidgeMixtureState", variance: Array) -> None:
    """Renew the scales of columns that begin to vary, and of those whose variance leaps."""
    new = fresh(state, variance)
    if new.any():
        state.variances = np.where(new, variance, state.variances)
        state.learners.unit[:] = state.learner_units
    at = np.flatnonzero(leaps(state, variance))
    if 4 * len(at) > (state.dim if state.basis is None else state.rank):
        renew(state, np.where(leaps(state, variance), variance, state.variances))
        return
    for j in at.tolist():
        factor = math.sqrt(state.variances[j] / variance[j])
        state.variances[j] = variance[j]
        if state.basis is None:
            direction, t = np.eye(1, state.dim, j)[0], factor
            state.learners.unit[:] = state.learner_units
        else:
            direction, t = row_space.stretched(state.basis, j, factor)
            rows, p = state.history.rows, state.width
            rows[:, :p] += np.outer((t - 1) * matmul(rows[:, :p], direction), direction)
        if t != 1:
            state.stretch(direction, t)


@one_thread
def renew(state: "RidgeMixtureState", variance: Array) -> None:
    """Scale the features by other variances, but where these are 0."""
    if state.basis is None:
        state.rescale(variance)
        return
    variance = np.where(variance > 0, variance, state.variances)
    ratio = np.divide(state.variances, variance, np.ones(state.dim), where=variance > 0)
    factors = np.where(ratio > 0, np.sqrt(ratio), 1.0)
    state.variances = variance
    state.basis, L = row_space.scaled(state.basis, state.rank, factors)
    theta, rows, p = state.learners.theta, state.history.rows, state.width
    rows[:, :p] = matmul(rows[:, :p], L)
    theta[:, :p] = matmul(theta[:, :p], linalg.lapack().dtrtri(L, lower=1)[0].T)
    state.rebuild(theta)


@one_thread
def grow(mixture: "RidgeMixture", state: "RidgeMixtureState") -> None:
    """Give the basis twice the room, or see the columns themselves where that is as many."""
    assert state.basis is not None
    p, theta, rows, basis = state.width, state.learners.theta, state.history.rows, state.basis
    if 2 * p < state.dim:
        state.basis = np.zeros((2 * p, state.dim))
        state.basis[:p] = basis
        x, t = (np.pad(each[:, :p], ((0, 0), (0, p))) for each in (rows, theta))
    else:
        state.basis, state.rank, units = None, 0, state.units
        x, t = matmul(rows[:, :p], basis), matmul(theta[:, :p], basis) * units
        x = np.divide(x, units, out=np.zeros_like(x), where=units > 0)
    state.history.replace(np.hstack([x, rows[:, p:]]))
    before = state.learners.numbers
    state.use(mixture.memory(len(theta), state.history.x.shape[1], state.history.count))
    for name in ("scale", "passes", "factors"):
        state.learners.numbers[name] = before[name]
    state.rebuild(np.hstack([t, theta[:, p:]]))


def see_rows(state: "RidgeMixtureState", z: Array) -> None:
    """Let learners see the span of rows learnt at once, or columns where these are fewer."""
    if state.basis is None:
        return
    p = FIRST
    while p < len(z):
        p *= 2
    state.basis, state.rank = None, 0
    if p < state.dim:
        state.basis = np.zeros((p, state.dim))
        state.rank = row_space.widened(state.basis, 0, z * state.units)


@one_thread
def scores(state: "RidgeMixtureState", z: Array, variance: Array) -> Array:
    r"""Return what each expert scores rows as if each were the next.

    Where variances leap, the penalty grows by :math:`\frac12\sum_jD_j\theta_j^2` over those columns
    E, and the estimate is a Newton step away: less
    :math:`PE(D^{-1} + E^\top PE)^{-1}E^\top\theta`, P the inverse among all columns. It is that
    among coordinates in the span of rows, and one over the ridge beside it.
    """
    leap, found = leaps(state, variance), state.scores(z)
    some, p = np.flatnonzero(leap.any(axis=1)), state.width
    if not len(some):
        return found
    for i, theta in enumerate(state.learners.estimate):
        x, P = state.scaled(z, i), state.learners.inverse(i)
        for row in some.tolist():
            at = np.flatnonzero(leap[row])
            E = np.zeros((len(theta), len(at)))
            E[:p] = state.basis[:, at] if state.basis is not None else np.eye(p)[:, at]
            PE = P @ E
            own = z[row, at] * state.units[at] / math.sqrt(state.ridges[i])
            inside = E.T @ PE + np.eye(len(at)) - E.T @ E
            D = variance[row, at] / state.variances[at] - 1
            move = np.linalg.solve(np.diag(1 / D) + inside, E.T @ theta)
            found[i, row] -= (x[row] @ PE + own - x[row] @ E) @ move
    return found
