"""What `SelfTunedUCB` can say of its state: intervals of means, and what it has learnt."""

import math

import numpy as np

from ..blas import matmul
from ..kernels import self_tuned_ucb_layout as at
from ..protocols import Array
from .self_tuned_ucb_state import SelfTunedUCBState


def half_widths(state: SelfTunedUCBState, x: Array, delta: float) -> Array:
    r"""Return how far the score of each arm may be from its estimate.

    .. math:: \phi h\,(1 + wh)\,\bigl(\log(1 + 1/wh) + 2\log(1/\delta)\bigr)

    is its square, w the mean weight of a reward: the interval for all times of a normal mixture
    whose precision is that of one reward, as if 1/h were the information about the arm.
    """
    s, d = state.numbers, state.dim
    z = np.hstack([x, np.ones((len(x), 1))])
    h = np.maximum(np.einsum("ij,ij->i", matmul(z, state.matrices[at.INVERSE]), z), 0.0)
    gaussian = s[at.FAMILY] == at.GAUSSIAN
    phi = s[at.DISPERSION] if gaussian else 1.0
    if state.count == 0 or not phi > 0:
        return np.full(len(x), math.inf if gaussian else 0.0) + _mixed(h, 1.0, 1.0, delta)
    u = s[at.WEIGHT] * h / (d + 1)
    if gaussian and s[at.GIVEN] == 0 and s[at.NOVELTY] > 0:
        novel = s[at.NOVEL_RESIDUALS] / s[at.NOVELTY]
        phi = phi + max(novel - phi, 0.0) * u / (1 + u)
        f = np.einsum("ij,ij->i", matmul(z, state.matrices[at.SANDWICH]), z)
        own = np.divide(f, h, out=np.zeros_like(h), where=h > 0)
        phi = np.maximum(phi, (own + h * phi) / (1 + h))
    rows = max(s[at.STORED], 1.0)
    return _mixed(h, phi, float(s[at.WEIGHT] / rows), delta)


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
    if s[at.LENGTH_COUNT] > 0:
        known["typical norm of an arm"] = math.sqrt(s[at.LENGTHS] / s[at.LENGTH_COUNT])
    if s[at.FAMILY] == at.GAUSSIAN and state.dispersion > 0:
        known["typical sd of a reward"] = math.sqrt(state.dispersion / s[at.TYPICAL])
        if s[at.GIVEN]:
            known["dispersion (variance over that given)"] = state.dispersion
            known["trust in given sds, 0 to 1"] = 1 - float(s[at.DISTRUST])
    return known
