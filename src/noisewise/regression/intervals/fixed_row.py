"""Intervals of one mean: for a row fixed in advance, at all times or at one.

The interval is centred at the unregularised estimate, so that no norm bound enters. At all times it
comes from a mixture over the size of the error, whose precision is fixed before the data.
"""

import math
from typing import NamedTuple

import numpy as np

from ...model.glm import GLM
from ...model.links import Link
from ...model.noise import Bounded, Likelihood, Noise, SubGaussian
from ...numerics import linalg
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from ...theory.mixtures import PRECISION, half_width
from ..ftrl.condensed import refuse
from ..ftrl.least_squares import full_gram
from ..ftrl.state import FTRLState
from ..normal_equations import NormalEquations
from .maximum_likelihood import Design, maximise

FEWEST = 25.0  # successes and failures before a curved link's likelihood is nearly quadratic
GAUSSIAN = "gaussian"
LEAST_FEATURE, LEAST_LABEL = 1e-100, 1e-150  # squares of less are too small to divide by


class Estimate(NamedTuple):
    """Scores of rows by the unregularised estimate, their variances, and what these rest on.

    Variances are infinite where the rows learnt say nothing; ``unit`` is that of one label's score.
    ``freedom`` is the degrees of freedom where the noise is estimated, infinite where it is known.
    """

    scores: Array
    variances: Array
    unit: float
    freedom: float
    rests_on: str


def one_direction(
    glm: GLM,
    state: FTRLState,
    x: Array,
    noise: Noise | str,
    delta: float,
    anytime: bool,
) -> tuple[Array, Array, str]:
    """Return lower and upper bounds of the score of each row, and what they rest on."""
    found = estimate(glm, state, x, noise)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.einsum("ij,ij->i", x, x)
        phi = PRECISION * glm.feature_bound**2 / (state.dim * square * found.unit)
    half = half_width(found.variances, found.freedom, delta, phi if anytime else None)
    scores = np.where(np.isfinite(half), found.scores, 0.0)
    exogenous = ", and rows that do not depend on past labels" if anytime else ""
    return scores - half, scores + half, found.rests_on + exogenous


@one_thread
def estimate(glm: GLM, state: FTRLState, x: Array, noise: Noise | str) -> Estimate:
    """Return the unregularised estimate of each row's score."""
    if isinstance(noise, str):
        return _least_squares(state, x, None, _check_gaussian(glm, noise))
    if not isinstance(noise, SubGaussian | Bounded | Likelihood):
        raise ValueError(f"noise is {noise!r}; pass SubGaussian(sigma), Bounded or Likelihood()")
    if glm.linear:
        if isinstance(noise, Likelihood):
            return _least_squares(state, x, math.sqrt(noise.dispersion), "Gaussian noise")
        rests_on = f"Gaussian noise of sd {noise.sigma:g}, sub-Gaussian noise asymptotically"
        if isinstance(noise, Bounded):
            rests_on = f"noise of sd {noise.sigma:g}, asymptotically"
        return _least_squares(state, x, noise.sigma, rests_on)
    return _curved(glm, state, x, noise)


def _check_gaussian(glm: GLM, noise: str) -> str:
    if noise != GAUSSIAN:
        raise ValueError(f"noise is {noise!r}; pass {GAUSSIAN!r} or what is known of the noise")
    if not glm.linear:
        raise ValueError(
            f"noise is {GAUSSIAN!r}, which labels of the {glm.link.name} link are not; pass "
            "Likelihood() or SubGaussian(sigma)"
        )
    return "Gaussian noise of unknown sd"


def _least_squares(state: FTRLState, x: Array, sigma: float | None, rests_on: str) -> Estimate:
    G, b = full_gram(state), -state.views.gradient
    inverse = linalg.scaled_inverse(G)
    theta, rank = inverse @ b, round(float(np.sum(inverse * G)))  # the trace of a projection
    shares = _variances(x, inverse, G)
    if sigma is not None:
        return Estimate(matmul(x, theta), sigma**2 * shares, sigma**2, math.inf, rests_on)
    h = state.head
    size = max(abs(h.lowest), abs(h.highest))
    if 0 < size < LEAST_LABEL:
        raise ValueError(
            f"no label learnt is above {size:.3g} in size, too small to estimate their noise; "
            "rescale the labels, or pass noise=SubGaussian(sigma)"
        )
    freedom = max(state.count - rank, 0)
    left = max(h.squares - float(theta @ b), 0.0)
    variance = left / freedom if freedom else math.inf
    return Estimate(matmul(x, theta), variance * shares, variance, freedom, rests_on)


def _curved(glm: GLM, state: FTRLState, x: Array, noise: Noise) -> Estimate:
    refuse(state, "an interval of one row")
    blocks, family = list(state.blocks()), glm.link.family
    rows = np.concatenate([np.empty((0, state.dim)), *(block.x for block in blocks)])
    rows *= np.abs(rows).max(axis=0, initial=0.0) > LEAST_FEATURE
    w, pull = np.concatenate([np.empty((2, 0)), *([b.weight, b.pull] for b in blocks)], axis=1)
    sums = NormalEquations.start(state.dim, False)
    sums.update(rows, pull / w, w)
    link = Link(glm.link.name, glm.mean, glm.slope, glm.potential)
    fit = maximise(Design.of(link, sums, rows, pull / w, w), matmul(rows, state.theta))
    b, seen = fit.design.project(x)
    if isinstance(noise, Likelihood):
        variance, unit = noise.dispersion, noise.dispersion / float(glm.slope(0.0))
        shares, rests_on = linalg.forms(b, fit.inverse), "the likelihood, asymptotically"
    else:
        variance, unit = noise.sigma**2, noise.sigma**2 / float(glm.slope(0.0)) ** 2
        shares = np.square(matmul(b, fit.inverse)).sum(axis=1)
        kind = "sub-Gaussian" if isinstance(noise, SubGaussian) else "bounded"
        rests_on = f"{kind} noise of sd {noise.sigma:g}, asymptotically"
    known = seen & fit.known(b)
    if isinstance(noise, Likelihood) and family and family.name in ("bernoulli", "signs"):
        low, high = glm.ends
        wins = float((pull - low * w).sum()) / (high - low)
        known &= min(wins, float(w.sum()) - wins) >= FEWEST
    v = np.where(known, variance * shares, math.inf)
    return Estimate(matmul(b, fit.beta), v, unit, math.inf, rests_on)


def _variances(x: Array, inverse: Array, G: Array) -> Array:
    """Return x'G^-1 x, infinite where x is outside the range of G."""
    inside = matmul(matmul(x, inverse), G)
    seen = np.abs(inside - x).max(axis=1) <= 1e-6 * np.abs(x).max(axis=1)
    return np.where(seen, linalg.forms(x, inverse), math.inf)
