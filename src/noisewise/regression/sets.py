"""Confidence sets of FTRL, built from its state."""

import math
from collections.abc import Iterator

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..confidence import Ellipsoid
from ..glm import GLM
from ..kernels import layout as at
from ..kernels.layout import Header
from ..noise import Bounded, Noise
from ..protocols import Array
from ..theory import radii
from .newton import visit
from .state import EPS, FTRLState

LARGEST_GROWTH = 1e6


@one_thread
def ellipsoids(
    glm: GLM, state: FTRLState, noise: Noise, delta: float, radius: str, local: bool
) -> tuple[Ellipsoid, ...]:
    """Return the global ellipsoid and, if asked for and there is one, the local form."""
    heaviest = state.head.heaviest
    if isinstance(noise, Bounded) and heaviest > noise.max_weight * (1 + 1e-9):
        raise ValueError(
            f"a row of weight {heaviest:g} was learnt, but noise promises max_weight "
            f"{noise.max_weight:g}; pass Bounded(..., max_weight={heaviest:g})"
        )
    if radius != "adaptive":
        inverse, log_det = uniform(glm, state)
        r = fixed_radius(glm, state, noise, delta, radius, log_det) + state.gap
        return (Ellipsoid(state.theta, inverse, r),)
    constant = radii.conversion_constant(glm, noise)
    return adaptive(glm, state, constant, delta, local)


@one_thread
def adaptive(
    glm: GLM, state: FTRLState, constant: float, delta: float, local: bool = True
) -> tuple[Ellipsoid, ...]:
    """Return the ellipsoids of the adaptive radius, whose price of log(1/delta) is ``constant``."""
    level = radii.adaptive_level(
        glm, constant, ridge=state.ridge, excess=excess(glm, state), delta=delta
    )
    whole = Ellipsoid(state.theta, uniform(glm, state)[0], math.sqrt(2 * level) + state.gap)
    if not local or glm.linear or glm.self_concordance is None:
        return (whole,)
    return whole, _local(glm, state, level, whole)


def fixed_radius(
    glm: GLM, state: FTRLState, noise: Noise, delta: float, radius: str, log_det: float
) -> float:
    """Return a radius that depends on the rows through their number or log-determinant only."""
    if radius == "self-normalised":
        return radii.self_normalised(glm, noise, log_det=log_det, ridge=state.ridge, delta=delta)
    shape = radii.freedman if radius == "freedman" else radii.printed
    return shape(glm, noise, dim=state.dim, count=state.count, ridge=state.ridge, delta=delta)


def excess(glm: GLM, state: FTRLState) -> float:
    """Return an upper bound of the played loss (scores clipped) less the minimum of F."""
    h = state.head
    played = h.played
    if glm.linear:
        return played  # the step adds up the difference itself
    drop = 0.5 * h.step_norm**2
    if h.code == at.EXACT:
        return played - h.value + drop
    # F(m) - min F <= nu^2 / (2 c), by strong convexity along the segment to the minimiser
    low, M = h.stale_low, glm.self_concordance or 0.0
    growth = math.exp(min(M * h.score_shift, 700.0))
    near = M * _stretch(h) * h.residual * growth / low
    most = h.spread**2
    if near <= 0.1:
        most = min(most, growth * (1 + 1.2 * near) / low)
    return played - h.value + most * drop


@one_thread
def uniform(glm: GLM, state: FTRLState) -> tuple[Array, float]:
    r"""Return the inverse of :math:`2\lambda I + \kappa\sum w x x^\top` and log det over 2 lambda.

    The state remembers both for the rows it was last asked about. A few new rows are added by
    rank-one updates, so asking every round stays of order d^2; more are folded by a block product
    and factored, and so is every 512th.
    """
    base = state.dim * math.log(state.head.ridge)
    if glm.linear or state.head.code == at.EXACT:  # the solver keeps this inverse itself
        own = _own_inverse(state)
        try:
            return own, -linalg.log_det(linalg.factor(own)) - base
        except np.linalg.LinAlgError:  # small changes have added up to a loss of all digits
            if not glm.linear:
                raise
            own, log_det = linalg.safe_inverse(state.linear_hessian(), state.head.ridge)
            return own, log_det - base
    gram, folded, P, log_det = state.gram, state.folded, state.uniform, state.log_det
    if state.rows.merge:  # merged rows have no order, but there are few
        gram, folded, P = np.zeros_like(gram), 0, None
    new = list(_unfolded(state, folded))
    count = sum(len(x) for x, _ in new)
    if P is not None and folded % 512 + count < 512 and count <= 2:
        for x, w in (pair for rows, weights in new for pair in zip(rows, weights, strict=True)):
            gram = gram + np.outer(w * x, x)
            if P is None:
                continue
            k = P @ x
            growth = glm.min_slope * w * float(x @ k)
            if 0 <= growth <= LARGEST_GROWTH:
                P = P - np.outer(glm.min_slope * w / (1 + growth) * k, k)
                log_det += math.log1p(growth)
            else:  # too many digits would be lost
                P = None
    elif count:
        P = None
        for x, w in new:
            root = x * np.sqrt(w)[:, None]
            gram = gram + root.T @ root
    if P is None:
        H = glm.min_slope * gram + state.head.ridge * np.eye(state.dim)
        P, log_det = linalg.safe_inverse(H, state.head.ridge)
        log_det -= base
    state.remember(gram=gram, folded=folded + count, uniform=P, log_det=log_det)
    return P.copy(), log_det


def _unfolded(state: FTRLState, folded: int) -> Iterator[tuple[Array, Array]]:
    """Yield features and weights of the rows that are not in the Gram matrix yet."""
    passed = 0
    for x, numbers, n in state.blocks():
        if folded < passed + n:
            new = slice(max(folded - passed, 0), n)
            yield x[new], numbers[0, new]
        passed += n


def _local(glm: GLM, state: FTRLState, level: float, whole: Ellipsoid) -> Ellipsoid:
    """Return the local form: the curvature at the estimate instead of the least slope."""
    h, M = state.head, glm.self_concordance or 0.0
    R = h.longest
    far = R * (glm.parameter_bound + float(np.linalg.norm(whole.centre)))
    if h.code == at.EXACT:
        G = visit(glm, state.ridge, state.blocks(), whole.centre).curvature
        smallest = 1 / linalg.largest_eigenvalue_bound(whole.inverse)
        reach = min(far, R * whole.radius / math.sqrt(smallest))
        c, r = radii.localise(level, state.gap, M, reach, R, state.ridge, G)
        H = c * G + 2 * state.ridge * np.eye(state.dim)
        return Ellipsoid(whole.centre, linalg.invert(linalg.factor(H)), r)
    smallest = max(h.ridge, h.smallest / h.spread**2)
    reach = min(far, R * whole.radius / math.sqrt(smallest))
    shift = h.stale_low * math.exp(-min(M * h.score_shift, 700.0))
    residual = float(h.residual + h.blur)
    r = radii.localise_anchored(level, residual, shift, M, reach, _stretch(h))
    return Ellipsoid(whole.centre, _own_inverse(state), r) if r < math.inf else whole


def curvature_inverse(glm: GLM, state: FTRLState) -> Array:
    r"""Return the inverse of :math:`2\lambda I + \sum w\varphi'(x\cdot\hat\mu)xx^\top`.

    It is the solver's, or anew from all rows where the solver keeps none.
    """
    if state.head.code != at.EXACT:
        return state.inverse()
    H = visit(glm, state.ridge, state.blocks(), state.theta).curvature
    return linalg.invert(linalg.factor(H + 2 * state.ridge * np.eye(state.dim)))


def _own_inverse(state: FTRLState) -> Array:
    """Return the solver's inverse, or that of the ridge where rounding could have spoilt it."""
    h, P = state.head, state.inverse()
    trace = float(h.curved + state.dim * h.ridge)
    doubt = EPS * state.dim * trace * linalg.largest_eigenvalue_bound(P)
    sound = doubt <= 0.1 and np.diag(P).min() > 0
    return P if sound else np.eye(state.dim) / h.ridge


def _stretch(h: Header) -> float:
    """Return the most a score of a row can change over a unit distance in the norm of H."""
    return min(float(h.longest / math.sqrt(h.smallest)), math.sqrt(h.leverage))
