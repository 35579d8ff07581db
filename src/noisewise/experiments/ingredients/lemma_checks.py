"""Which lemmas fail on a played path, and when the truth leaves an ellipsoid."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...environments import Gaussian, Rademacher
from ...environments.draws import Draw
from ...model.glm import GLM
from ...model.noise import Bounded, SubGaussian
from ...protocols import Array, Rounds
from ...theory import lemmas, radii

WORDS = {
    "decomposition_printed": "decomposition, as printed",
    "decomposition": "decomposition, corrected",
    "decomposition_split": "decomposition, corrected and split",
    "ftrl_identity": "identity of FTRL",
    "azoury_warmuth": "identity of Azoury and Warmuth",
    "bregman_from_scores": "Bregman gap above scores",
    "bregman_from_means": "Bregman gap above means",
    "bregman_above": "Bregman gap below scores",
    "potential": "potential",
    "potential_previous": "potential, matrix before the row",
    "square_root_trick": "square root trick",
    "moment": "moment of noise and its square",
    "hoeffding": "Hoeffding with a random scale (share of walks)",
    "connection": "connection, constants 4 and 8",
    "connection_printed": "connection, constants 4 and 16",
    "noise_sum": "noise sum",
    "ellipsoid_printed": "ellipsoid, as printed (no slope factor)",
    "ellipsoid": "ellipsoid, with the slope factor",
}
FALSE = ("decomposition_printed", "hoeffding", "ellipsoid_printed")  # as printed, and not true
MAY_FAIL = ("connection", "connection_printed", "noise_sum", "ellipsoid")  # with probability delta
ALWAYS = tuple(name for name in WORDS if name not in (*FALSE, *MAY_FAIL))
ONE_SIDED = tuple(name for name in WORDS if name.startswith(("decomp", "bregman", "potential")))
WALKS = 100

Known = SubGaussian | Bounded


def on_path(path: lemmas.Path, noise: Known, delta: float) -> dict[str, bool | None]:
    """Return whether each lemma about a path failed, None where it says nothing."""
    glm = path.glm
    sigma, R = _scales(noise)
    found: dict[str, bool | None]
    found = {name: not vars(lemmas)[name](path).holds for name in ONE_SIDED}
    size = 1 + float(np.abs(path.y).sum())
    found["ftrl_identity"] = _apart(lemmas.ftrl_identity(path), size)
    found["azoury_warmuth"] = _apart(lemmas.azoury_warmuth(path), size) if glm.linear else None
    found["square_root_trick"] = _square_root(path)
    scale = sigma if R is None else R
    for name in ("connection", "connection_printed"):
        found[name] = not vars(lemmas)[name](path, scale, delta).holds
    found["noise_sum"] = not lemmas.noise_sum(path, sigma, delta, R).holds
    return found


def _scales(noise: Known) -> tuple[float, float | None]:
    return noise.sigma, noise.bound if isinstance(noise, Bounded) else None


def _apart(sides: lemmas.Sides, size: float) -> bool:
    return abs(sides.left - sides.right) > 1e-9 * size


def _square_root(path: lemmas.Path) -> bool | None:
    """The step from the Bregman gap to the connection: x^2 = sum e^2 <= 2R/kappa + b x."""
    x, kappa = float(np.linalg.norm(path.errors)), path.glm.min_slope
    if x == 0 or not lemmas.bregman_from_scores(path).holds:
        return None
    a = 2 * path.regret / kappa
    b = 2 * abs(float(path.noise @ path.errors)) / kappa / x
    short = x * (1 - 1e-9)  # where the gap is exact the condition is an equality up to rounding
    if short**2 > a + b * short:
        return None
    return not lemmas.square_root_trick(short, a, b).holds


def of_noise(
    rng: np.random.Generator, draw: Draw, noise: Known, horizon: int, delta: float
) -> dict[str, float | bool]:
    """Return whether the moment bound fails at a random tilt, and a share of failing walks."""
    sigma, R = _scales(noise)
    s = sigma if R is None else R
    alpha, beta = rng.uniform(-2, 2) / s, rng.uniform(0, 0.9) / s**2
    law = _quadrature(draw, sigma, s)
    return {
        "moment": not lemmas.moment(law, alpha, beta, s).holds,
        "hoeffding": lemmas.hoeffding_failure(rng, horizon, WALKS, delta),
    }


def _quadrature(draw: Draw, sigma: float, bound: float) -> Array:
    """Return points of equal weight that stand for the law of the noise."""
    from scipy.special import ndtri

    if isinstance(draw, Gaussian):
        return np.asarray(sigma * ndtri((np.arange(2000) + 0.5) / 2000))
    if isinstance(draw, Rademacher):
        return np.array([-sigma, sigma])
    count = 2 * round((bound / sigma) ** 2)  # sparse: plus and minus once each, else zero
    return np.append([-bound, bound], np.zeros(count - 2))


def first_miss(
    glm: GLM, noise: Known, rounds: Rounds, thetas: Array, delta: float
) -> dict[str, float]:
    """Return the first round at which the parameter left each ellipsoid, infinity if never."""
    x, lam = rounds.x, glm.ridge
    T, d = x.shape
    H = 2 * lam * np.eye(d) + glm.min_slope * np.cumsum(x[:, :, None] * x[:, None, :], axis=0)
    away = thetas[1:] - np.asarray(rounds.theta)
    distance = np.sqrt(np.einsum("ti,tij,tj->t", away, H, away))
    growth = np.linalg.slogdet(H / (2 * lam))[1]
    own = [
        radii.self_normalised(glm, noise, log_det=float(g), ridge=lam, delta=delta) for g in growth
    ]
    found = {"ellipsoid": _first(distance > own)}
    if isinstance(noise, Bounded):
        start = np.sqrt(2 * lam) * glm.parameter_bound
        printed = partial(radii.printed, glm, noise, dim=d, ridge=lam, delta=delta)
        whole = np.array([printed(count=t) for t in range(1, T + 1)])
        without = (whole - start) * np.sqrt(glm.min_slope) + start
        found["ellipsoid_printed"] = _first(distance > without)
    return found


def _first(missed: NDArray[np.bool_]) -> float:
    return float(np.argmax(missed)) + 1 if np.any(missed) else np.inf
