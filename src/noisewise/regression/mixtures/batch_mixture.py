"""`RidgeMixture` fitted to all rows at once: the order of rows does not matter."""

import math
from typing import NamedTuple

import numpy as np

from ...model.families import FAMILIES, model
from ...numerics import linalg
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from ..ftrl.newton import minimise
from ..history import Block, History
from .ridge_mixture import RidgeMixture
from .ridge_mixture_state import LEAST_WEIGHT, RidgeMixtureState
from .wide_mixture import see_rows

UNIT_RIDGE = 0.5  # in coordinates of a learner the penalty is half the squared length


class Found(NamedTuple):
    """What the rows say of a ridge."""

    theta: Array  # the minimiser
    value: float  # log-likelihood less penalty, at their maximum
    log_det: float  # of the Fisher information and the ridge
    dispersion: float  # squared residuals over their variance, by information

    def log_evidence(self, dispersion: float) -> float:
        """Return the logarithm of the evidence, up to what all ridges have in common."""
        return self.value / dispersion - 0.5 * self.log_det


class BatchFit(NamedTuple):
    """A state fitted as a batch, and what the rows say of every ridge of the grid."""

    state: RidgeMixtureState
    log_priors: Array
    found: list[Found]
    dispersion: float

    def log_evidence(self, dispersion: float) -> float:
        """Return the logarithm of the evidence of all ridges together.

        Up to what fits to the same labels and weights have in common, whatever their features.
        """
        logs = self.log_priors + [each.log_evidence(dispersion) for each in self.found]
        return float(np.logaddexp.reduce(logs))


def batch_state(
    mixture: RidgeMixture, z: Array, y: Array, w: Array, origin: Array
) -> RidgeMixtureState:
    """Return the state of rows ``origin + z`` fitted as a batch, see `fit_batch`."""
    return fit_batch(mixture, z, y, w, origin).state


@one_thread
def fit_batch(mixture: RidgeMixture, z: Array, y: Array, w: Array, origin: Array) -> BatchFit:
    r"""Return the state of rows ``origin + z``, checked and of positive weight, fitted as a batch.

    Rows are taken less their mean, and scaled by their variances. Every ridge c of the grid has its
    minimiser :math:`\theta_c`, solved for to rounding, and the weight

    .. math:: w_c \propto \pi_c \exp(L_c/\phi) \det(H_c)^{-1/2},

    Laplace's approximation of the evidence, in units in which the ridge is 1: :math:`L_c` is the
    largest log-likelihood less penalty and :math:`H_c` the Fisher information and the ridge.
    The dispersion :math:`\phi` is that of the rows if it is above 1: labels that scatter more than
    the family says would ask for too small a ridge. Ridges of weight below 1e-6 are dropped.
    """
    (n, d), state, family = z.shape, mixture.start(z.shape[1]), FAMILIES[mixture.family]
    if mixture.fit_intercept:
        mean = z.mean(axis=0)
        state.shift, z = origin + mean, z - mean
    else:
        z = origin + z
    state.total, state.squares = z.sum(axis=0), (z * z).sum(axis=0)
    state.variances = mixture.variance(n, state.total, state.squares)
    see_rows(state, z)
    state.history = History.start(state.width + mixture.fit_intercept, len(state.ridges))
    if state.prior_rows:
        z, w = np.vstack([np.zeros((1, d)), z]), np.append(1.0, w)
        y = np.append(float(family.middle or 0.0), y)
    labels = np.array([w, w * y])
    found = minimisers(mixture, state, z, labels)
    weights = np.exp(_log_weights(state, found, 1.0))
    dispersion = float(weights @ [each.dispersion for each in found])
    logs = _log_weights(state, found, max(dispersion, 1.0))
    kept = np.flatnonzero(logs >= math.log(LEAST_WEIGHT)).tolist()
    priors, state.ridges = state.log_weights, state.ridges[kept]
    state.log_weights = logs[kept] - np.logaddexp.reduce(logs[kept])
    state.history = History(state.coordinates(z), labels, np.ones((len(kept), len(z))))
    state.count, state.batch = n, True
    state.use(mixture.memory(len(kept), state.history.x.shape[1], len(z)))
    state.rebuild(state.learner_units * [found[i].theta for i in kept])
    state.solve()
    return BatchFit(state, priors, found, dispersion)


def _log_weights(state: RidgeMixtureState, found: list[Found], dispersion: float) -> Array:
    logs = state.log_weights + [each.log_evidence(dispersion) for each in found]
    return np.asarray(logs - np.logaddexp.reduce(logs))


def minimisers(
    mixture: RidgeMixture, state: RidgeMixtureState, z: Array, labels: Array
) -> list[Found]:
    """Return what the rows say of each ridge; ``labels`` are as a history has them."""
    glm, found, theta = model(mixture.family), [], np.zeros(state.history.dim)
    for i in reversed(range(len(state.ridges))):  # the largest ridge has the shortest way
        block = Block(state.scaled(z, i), labels[0], labels[1], np.zeros(len(z)))
        best, _ = minimise(glm, UNIT_RIDGE, [block], theta, np.eye(len(theta)))
        found.append(_look(mixture, block, best.theta, state.prior_rows))
        theta = best.theta.copy()
        theta[: state.dim] *= math.sqrt(state.ridges[i - 1] / state.ridges[i])  # the same scores
    return found[::-1]


def _look(mixture: RidgeMixture, block: Block, theta: Array, prior_rows: int) -> Found:
    """Return what is to be known of a ridge at the minimiser of its loss.

    Where the link is not canonical, the likelihood has its maximum elsewhere: a Newton step away.
    """
    glm, family, x, w = model(mixture.family), FAMILIES[mixture.family], block.x, block.weight
    scores, y = family.clip(matmul(x, theta)), block.pull / w
    mean, slope = glm.mean(scores), glm.slope(scores)
    variance = family.variance(mean)
    canonical = slope / variance  # 1 if it is
    g = matmul(w * canonical * (y - mean), x) - theta
    root = x * np.sqrt(w * canonical * slope)[:, None]
    c = linalg.factor(matmul(root.T, root) + np.eye(len(theta)))
    value = float(w @ family.log_likelihood(scores, y)) - 0.5 * float(theta @ theta)
    pull, known = (w * canonical * (y - mean))[prior_rows:], (w * canonical * slope)[prior_rows:]
    freedom = len(pull) - len(theta) + float(np.trace(linalg.invert(c)))
    return Found(
        theta,
        value + 0.5 * float(g @ linalg.solve(c, g)),
        linalg.log_det(c),
        float(pull @ pull) / float(known.sum()) * len(pull) / max(freedom, 1.0),
    )
