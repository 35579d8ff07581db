"""Confidence sets of FTRL, built from its state."""

import math

from ..blas import one_thread
from ..confidence import Ellipsoid
from ..glm import GLM
from ..noise import Bounded, Likelihood, Noise
from ..protocols import Array
from ..theory import radii
from . import condensed_sets
from .condensed import refuse
from .state import FTRLState


@one_thread
def ellipsoids(
    glm: GLM,
    state: FTRLState,
    noise: Noise,
    delta: float,
    radius: str,
    local: bool,
    bound: float | None = None,
) -> tuple[Ellipsoid, ...]:
    """Return the global ellipsoid and, if asked for and there is one, the local form.

    ``bound`` of the parameter's norm is the model's, unless the estimate contradicts that.
    """
    heaviest = state.head.heaviest
    if isinstance(noise, Bounded) and heaviest > noise.max_weight * (1 + 1e-9):
        raise ValueError(
            f"a row of weight {heaviest:g} was learnt, but noise promises max_weight "
            f"{noise.max_weight:g}; pass Bounded(..., max_weight={heaviest:g})"
        )
    if radius not in ("adaptive", "played"):
        inverse, log_det = state.solver.uniform(glm, state)
        r = fixed_radius(glm, state, noise, delta, radius, log_det) + state.solver.slack(state)
        return (Ellipsoid(state.theta, inverse, r),)
    constant = radii.conversion_constant(glm, noise)
    mixed = radius == "adaptive" and mixes(glm, noise)
    if mixed and state.condensed and condensed_sets.serves(glm):
        return condensed_sets.adaptive(glm, state, constant, delta, local, bound)
    refuse(state, f"radius {radius!r} with {type(noise).__name__} noise")
    return adaptive(glm, state, constant, delta, local, mixed, bound)


def mixes(glm: GLM, noise: Noise) -> bool:
    """Whether fixed parameters may be mixed with what was played.

    Their scores are not bounded, and the slope must be.
    """
    return not isinstance(noise, Bounded) and (glm.extend or glm.linear)


@one_thread
def adaptive(
    glm: GLM,
    state: FTRLState,
    constant: float,
    delta: float,
    local: bool = True,
    mixed: bool = False,
    bound: float | None = None,
) -> tuple[Ellipsoid, ...]:
    """Return the ellipsoids of the adaptive radius, whose price of log(1/delta) is ``constant``.

    The evidence is what was played, or that ``mixed`` with fixed parameters.
    """
    solver, theta = state.solver, state.theta
    inverse = solver.uniform(glm, state)[0]
    level = radii.adaptive_level(
        glm.parameter_bound if bound is None else bound,
        constant,
        ridge=state.ridge,
        excess=solver.excess(state),
        delta=delta,
        mixture=solver.mixture(glm, state, constant) if mixed else math.inf,
    )
    whole = Ellipsoid(theta, inverse, math.sqrt(2 * level) + solver.slack(state))
    near = solver.local(glm, state, level, whole) if local else None
    return (whole,) if near is None else (whole, near)


def refuse_labels(glm: GLM, state: FTRLState, noise: Noise | str) -> None:
    """Refuse the likelihood of a family to which a label that was learnt does not belong."""
    low, high = glm.ends
    h = state.head
    if isinstance(noise, Likelihood) and not (low <= h.lowest and h.highest <= high):
        raise ValueError(
            f"noise is Likelihood, but labels reach from {h.lowest:g} to {h.highest:g} and those "
            f"of the {glm.link.name} link lie in [{low:g}, {high:g}]; learn shares with their "
            "trials as weights, not counts, or pass SubGaussian(sigma)"
        )


def fixed_radius(
    glm: GLM, state: FTRLState, noise: Noise, delta: float, radius: str, log_det: float
) -> float:
    """Return a radius that depends on the rows through their number or log-determinant only."""
    if radius == "self-normalised":
        return radii.self_normalised(glm, noise, log_det=log_det, ridge=state.ridge, delta=delta)
    shape = radii.freedman if radius == "freedman" else radii.printed
    return shape(glm, noise, dim=state.dim, count=state.count, ridge=state.ridge, delta=delta)


@one_thread
def uniform(glm: GLM, state: FTRLState) -> tuple[Array, float]:
    """Return `Solver.uniform`."""
    return state.solver.uniform(glm, state)


def curvature_inverse(glm: GLM, state: FTRLState) -> Array:
    r"""Return the inverse of :math:`2\lambda I + \sum w\varphi'(x\cdot\hat\mu)xx^\top`."""
    return state.solver.curvature_inverse(glm, state)
