"""The rows that a `RidgeMixture` keeps, and the loss of a stream over them."""

from collections.abc import Callable

import numpy as np

from ...numerics.blas import matmul
from ...protocols import Array
from ...support.ownership import Owned
from .ridge_mixture import RidgeMixture
from .ridge_mixture_state import RidgeMixtureState


def kept_rows(mixture: RidgeMixture, state: RidgeMixtureState) -> tuple[Array, Array, Array, Array]:
    """Return rows less the first (as they are without an intercept), labels, weights, that row.

    They are in the user's units.
    """
    h, p, own = state.history, state.width, slice(state.prior_rows, None)
    z, y, w = h.rows[own, :p].copy(), h.targets[own], h.weights[own].copy()
    if state.basis is not None:
        units = state.units
        z = np.divide(matmul(z, state.basis), units, np.zeros((len(z), state.dim)), where=units > 0)
    shift = state.shift.copy()
    if mixture.fit_intercept and len(z):  # of a batch, 0 is the mean
        shift, z = shift + z[0], z - z[0]
    return z, y, w, shift


def played(mixture: RidgeMixture, state: RidgeMixtureState) -> Callable[[], float]:
    """Return a call for the loss of the rows learnt so far, each predicted from earlier ones.

    That is the loss of the state, unless rows were fitted as a batch. Then it is that of a fresh
    mixture to which all rows are given in the order in which they were learnt. The fresh mixture
    is kept, and learns later rows when it is asked again.
    """
    loss, count = state.loss, state.count
    if not state.batch:
        return lambda: loss
    return lambda: _replayed(mixture, state, count)


def _replayed(mixture: RidgeMixture, state: RidgeMixtureState, count: int) -> float:
    with Owned(state):
        fresh: RidgeMixtureState | None = vars(state).get("_replay")
        z, y, w, origin = kept_rows(mixture, state)
        if fresh is None or fresh.count > count:
            fresh = mixture.start(state.dim)
        here = slice(fresh.count, count)
        if count > fresh.count:
            mixture.update(fresh, z[here] + origin, y[here], w[here])
        vars(state)["_replay"] = fresh
        return fresh.loss
