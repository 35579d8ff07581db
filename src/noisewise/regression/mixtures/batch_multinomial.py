"""`MultinomialMixture` fitted to all rows at once: the order of rows does not matter."""

import numpy as np

from ...numerics import linalg
from ...numerics.blas import one_thread
from ...protocols import Array
from .multinomial import MultinomialMixture
from .multinomial_newton import Table
from .multinomial_state import MultinomialState

MOST = 2000  # coefficients up to which determinants are computed, not bounded


@one_thread
def batch_state(
    mixture: MultinomialMixture, z: Array, y: Array, w: Array, origin: Array
) -> MultinomialState:
    r"""Return the state of rows ``origin + z``, checked and of positive weight, fitted as a batch.

    Rows are taken less their mean, and scaled by their variances. Every ridge of the grid has its
    minimiser, solved for to rounding, and the weight
    :math:`w_c \propto \pi_c e^{-f_c}\det(H_c/cd)^{-1/2}`, Laplace's approximation of the evidence:
    :math:`f_c` is the least loss and penalty and :math:`H_c` the Hessian there, of which the ridge
    cd is taken out. Beyond 2,000 coefficients the determinant is that of Boehning's bound. Ridges
    of weight below 1e-6 are dropped.
    """
    state = mixture.start(z.shape[1])
    if mixture.fit_intercept:
        mean = z.mean(axis=0)
        state.shift, z = origin + mean, z - mean
    else:
        z = origin + z
    state.history.append(z, y, w)
    n = len(z)
    state.total, state.squares = z.sum(axis=0), (z * z).sum(axis=0)
    state.heaviest[0], state.batch = w.max(), True
    state.due = mixture.next_renewal(n)
    mixture.renew(state, mixture.variance(n, state.total, state.squares), state.total / n)
    table = mixture.table(state)
    evidence = [
        log_evidence(table, theta, ridge)
        for theta, ridge in zip(state.theta, (state.ridges * state.dim).tolist(), strict=True)
    ]
    state.log_priors = state.log_priors + evidence
    state.log_priors -= np.logaddexp.reduce(state.log_priors)
    state.drop()
    return state


def log_evidence(table: Table, theta: Array, ridge: float) -> float:
    """Return the logarithm of the evidence, up to what all ridges have in common."""
    penalty, (K, p) = table.penalties(ridge), theta.shape
    value, shares = table.look(theta, penalty)
    if theta.size <= MOST:
        log_det = linalg.log_det(linalg.factor(table.hessian(shares, penalty)))
    else:
        log_det = (K - 1) * table.bound(penalty)[1] + np.log(ridge) * (p - table.constant)
    return -value - 0.5 * (log_det - K * (p - table.constant) * np.log(ridge))
