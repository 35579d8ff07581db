"""What `SelfTunedUCB` can say of its state: intervals of means, and what it has learnt."""

import math

import numpy as np

from ..kernels.self_tuned_ucb.self_tuned_ucb_numbers import GAUSSIAN, clear_correlation
from ..numerics.blas import matmul
from ..numerics.linalg import factor, forms, invert
from ..protocols import Array
from ..theory.mixtures import half_width
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
    s, d = state.number, state.dim
    z = state.features(x)
    score, gaussian = matmul(z, state.vector.theta), s.family == GAUSSIAN
    score = score + s.origin
    h = forms(z, state.matrix.inverse)
    common = s.dispersion if gaussian else 1.0
    if state.count == 0 or not common > 0:
        half = np.full(len(x), math.inf if gaussian else 0.0) + _mixed(h, 1.0, 1.0, delta)
        return score - half, score + half
    r = clear_correlation(s.lag_products, s.lag_squares, s.since_restart)
    more = (1 + r) / (1 - r)
    parts, sure = state.rows[: int(s.stored), -1], gaussian and s.sds_given == 0
    if sure and len(parts) > d + 1 and parts.min() < 1:
        centre, h, phi = _plain_fit(state, z)
        half = _mixed(h, more * phi, 1.0, delta)
        return np.minimum(centre - half, score), np.maximum(centre + half, score)
    u, phi = s.information * h / (d + 1), np.full(len(h), common)
    if sure and s.novelty > 0:
        novel = s.novel_residuals / s.novelty
        phi = common + max(novel - common, 0.0) * u / (1 + u)
        own = np.divide(forms(z, state.matrix.sandwich), h, np.zeros_like(h), where=h > 0)
        phi = np.maximum(phi, (own + h * phi) / (1 + h))
    half = _mixed(h, more * phi, s.information / max(state.effective_count, 1), delta)
    return score - half, score + half


def _plain_fit(state: SelfTunedUCBState, z: Array) -> tuple[Array, Array, Array]:
    """Return score, h and phi of each arm with all rewards that are kept counted in full.

    phi is the larger of the mean squared residual and the arm's own, by a sandwich. Older rewards
    count less where they are discounted.
    """
    n, penalty, count = state.stored, state.matrix.penalty, 0.0
    gram, moment, noise, total = penalty.copy(), np.zeros(len(penalty)), np.zeros_like(penalty), 0.0
    for first in range(0, n, CHUNK):
        a, y = state.history(first, first + CHUNK)
        w = state.counted(first, first + CHUNK)
        gram, moment = gram + matmul(a.T * w, a), moment + matmul(a.T * w, y)
    inverse = invert(factor(gram))
    theta = matmul(inverse, moment)
    for first in range(0, n, CHUNK):
        a, y = state.history(first, first + CHUNK)
        w = state.counted(first, first + CHUNK)
        square = w * (y - matmul(a, theta)) ** 2
        noise, total = noise + matmul(a.T * (w * square), a), total + square.sum()
        count += w.sum()
    h, pz = forms(z, inverse), matmul(z, inverse)
    own = np.divide(forms(pz, noise), h, np.zeros_like(h), where=h > 0)
    phi = np.maximum(total / (count - 1), own)
    return matmul(z, theta) + state.number.origin, h, phi


def _mixed(h: Array, phi: float | Array, w: float, delta: float) -> Array:
    with np.errstate(divide="ignore"):
        return half_width(phi * h, math.inf, delta, w / phi)


def learnt(state: SelfTunedUCBState) -> dict[str, float]:
    """Return what was learnt on the way, by name."""
    s = state.number
    known: dict[str, float] = {
        "rewards learnt": state.count,
        "rewards pending": state.pending,
        "restarts": state.restarts,
    }
    if state.restarts:
        known["last restart, after reward"] = state.last_restart
    if s.condensed:
        known["rewards condensed"] = int(s.condensed)
    if s.forget_after:
        known["rewards count together as"] = round(state.effective_count, 1)
    if s.arms > 0 and not s.blocks:
        known["typical norm of an arm"] = math.sqrt(s.norms / s.arms)
    if s.family == GAUSSIAN and state.dispersion > 0:
        known["typical sd of a reward"] = math.sqrt(state.dispersion / s.typical_weight)
        if s.sds_given:
            known["dispersion (variance over that given)"] = state.dispersion
            known["trust in given sds, 0 to 1"] = 1 - s.distrust
    return known
