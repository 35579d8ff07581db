"""Confidence sets of FTRL, built from its state."""

import math

from ...confidence import Ellipsoid
from ...kernels.glm import adaptive_set
from ...model.glm import GLM
from ...model.noise import Bounded, Likelihood, Noise
from ...numerics.blas import one_thread
from ...protocols import Array
from ...theory import radii
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
    if isinstance(noise, Bounded) and state.head.heaviest > noise.max_weight * (1 + 1e-9):
        heaviest = state.head.heaviest
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
    if state.condensed and not (mixed and condensed_sets.serves(glm)):
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
    solver, played, mixture, find = state.solver, math.inf, math.inf, state.solver.local
    inverse = solver.uniform(glm, state)[0]
    if state.condensed:
        mixture, find = condensed_sets.mixture(glm, state, constant), condensed_sets.local
    else:
        played = solver.excess(state)
        mixture = solver.mixture(glm, state, constant) if mixed else math.inf
    length = glm.parameter_bound if bound is None else bound
    level = adaptive_level(
        length, constant, ridge=state.ridge, excess=played, delta=delta, mixture=mixture
    )
    whole = Ellipsoid(state.theta, inverse, math.sqrt(2 * level) + solver.slack(state))
    near = find(glm, state, level, whole) if local else None
    return (whole,) if near is None else (whole, near)


def adaptive_level(
    bound: float,
    constant: float,
    *,
    ridge: float,
    excess: float,
    delta: float,
    mixture: float = math.inf,
) -> float:
    r"""Return Q of the event :math:`L_t(\mu^*) - \min L_t \le Q_t` behind the adaptive radius.

    Q = lam B^2 + C log(1/delta) - C log(exp(-excess/C)/2 + exp(-mixture/C)/2). ``excess`` is the
    played loss (scores clipped to [-S, S]) less the minimum of the regularised loss: FTRL's own
    observable regret; ``mixture`` the same for `Solver.mixture`, and without it Q is
    lam B^2 + C log(1/delta) + excess. C is the ``constant`` of `radii.conversion_constant`, or any
    other that was fixed before the first round.
    """
    price = constant * math.log(1 / delta)
    if mixture < math.inf:
        excess = adaptive_set.soft_minimum(excess, mixture, constant)
    return adaptive_set.level(2 * ridge, bound, price, excess)


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
