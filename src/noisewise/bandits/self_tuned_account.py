"""What `SelfTunedUCB` can say of its state: intervals of means, and what it has learnt."""

import math

import numpy as np

from ..blas import matmul
from ..kernels import self_tuned_ucb_layout as at
from ..linalg import factor, invert
from ..protocols import Array
from .self_tuned_ucb_state import SelfTunedUCBState

CHUNK = 4096  # rows at a time


def score_bounds(state: SelfTunedUCBState, x: Array, delta: float) -> tuple[Array, Array]:
    r"""Return bounds of the score of each arm around its estimate.

    .. math:: \phi h\,(1 + wh)\,\bigl(\log(1 + 1/wh) + 2\log(1/\delta)\bigr)

    is the square of the distance, w the mean weight of a reward: the interval for all times of a
    normal mixture whose precision is that of one reward, as if 1/h were the information about the
    arm. Rewards whose residuals have a clear lag correlation r tell less: :math:`\phi` is
    :math:`(1 + r)/(1 - r)` times as large. Where rewards without sds have outliers, which count
    less in the estimate and so bias it, bounds are those of the plain mean, with
    :math:`\phi` from plain residuals, and reach to the estimate.
    """
    s, d = state.numbers, state.dim
    z = state.features(x)
    score, gaussian = matmul(z, state.vectors[at.THETA]), s[at.FAMILY] == at.GAUSSIAN
    score = score + s[at.ORIGIN]
    h = _forms(z, state.matrices[at.INVERSE])
    phi = s[at.DISPERSION] if gaussian else 1.0
    if state.count == 0 or not phi > 0:
        half = np.full(len(x), math.inf if gaussian else 0.0) + _mixed(h, 1.0, 1.0, delta)
        return score - half, score + half
    r = at.clear_correlation(*s[[at.LAG_PRODUCTS, at.LAG_SQUARES, at.SINCE]].tolist())
    more = (1 + r) / (1 - r)
    parts, sure = state.rows[: int(s[at.STORED]), -1], gaussian and s[at.GIVEN] == 0
    if sure and len(parts) > d + 1 and parts.min() < 1:
        centre, h, phi = _plain_fit(state, z)
        half = _mixed(h, more * phi, 1.0, delta)
        return np.minimum(centre - half, score), np.maximum(centre + half, score)
    u = s[at.WEIGHT] * h / (d + 1)
    if sure and s[at.NOVELTY] > 0:
        novel = s[at.NOVEL_RESIDUALS] / s[at.NOVELTY]
        phi = phi + max(novel - phi, 0.0) * u / (1 + u)
        own = np.divide(_forms(z, state.matrices[at.SANDWICH]), h, np.zeros_like(h), where=h > 0)
        phi = np.maximum(phi, (own + h * phi) / (1 + h))
    half = _mixed(h, more * phi, float(s[at.WEIGHT] / max(len(parts) + s[at.CONDENSED], 1)), delta)
    return score - half, score + half


def _plain_fit(state: SelfTunedUCBState, z: Array) -> tuple[Array, Array, Array]:
    """Return score, h and phi of each arm with all rewards that are kept counted in full.

    phi is the larger of the mean squared residual and the arm's own, by a sandwich.
    """
    n, penalty = int(state.numbers[at.STORED]), state.matrices[at.PENALTY]
    gram, moment, noise, total = penalty.copy(), np.zeros(len(penalty)), np.zeros_like(penalty), 0.0
    for first in range(0, n, CHUNK):
        a, y = state.history(first, first + CHUNK)
        gram, moment = gram + matmul(a.T, a), moment + matmul(a.T, y)
    inverse = invert(factor(gram))
    theta = matmul(inverse, moment)
    for first in range(0, n, CHUNK):
        a, y = state.history(first, first + CHUNK)
        square = (y - matmul(a, theta)) ** 2
        noise, total = noise + matmul(a.T * square, a), total + square.sum()
    h, pz = _forms(z, inverse), matmul(z, inverse)
    own = np.divide(_forms(pz, noise), h, np.zeros_like(h), where=h > 0)
    phi = np.maximum(total / (n - 1), own)
    return matmul(z, theta) + state.numbers[at.ORIGIN], h, phi


def _forms(z: Array, matrix: Array) -> Array:
    """Return z'Az of each row, at least 0."""
    return np.maximum(np.einsum("ij,ij->i", matmul(z, matrix), z), 0.0)


def _mixed(h: Array, phi: float | Array, w: float, delta: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        square = phi * h * (1 + w * h) * (np.log1p(1 / (w * h)) + 2 * math.log(1 / delta))
    return np.sqrt(np.where(h > 0, square, 0.0))


def learnt(state: SelfTunedUCBState) -> dict[str, float]:
    """Return what was learnt on the way, by name."""
    s = state.numbers
    known: dict[str, float] = {
        "rewards learnt": state.count,
        "rewards pending": state.pending,
        "restarts": state.restarts,
    }
    if state.restarts:
        known["last restart, after reward"] = state.last_restart
    if s[at.CONDENSED]:
        known["rewards condensed"] = int(s[at.CONDENSED])
    if s[at.LENGTH_COUNT] > 0 and not s[at.BLOCKS]:
        known["typical norm of an arm"] = math.sqrt(s[at.LENGTHS] / s[at.LENGTH_COUNT])
    if s[at.FAMILY] == at.GAUSSIAN and state.dispersion > 0:
        known["typical sd of a reward"] = math.sqrt(state.dispersion / s[at.TYPICAL])
        if s[at.GIVEN]:
            known["dispersion (variance over that given)"] = state.dispersion
            known["trust in given sds, 0 to 1"] = 1 - float(s[at.DISTRUST])
    return known
