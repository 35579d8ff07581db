"""The checks of a link."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..model.glm import GLM
from ..model.links import Link, integrate
from ..protocols import Array
from .comparison import Check, close, named


def link_checks(link: Link, S: float) -> Iterator[tuple[str, Check]]:
    """Yield the checks on ``[-S, S]`` and beyond."""
    yield from named(
        _mean_increases,
        _slope_is_derivative_of_mean,
        _potential_is_integral_of_mean,
        _slopes_stay_within_bounds,
        _extension_is_smooth,
        _score_inverts_mean,
        _self_concordance_holds,
        args=(link, S),
    )


def _grid(S: float, beyond: float = 1.0) -> Array:
    return np.linspace(-beyond * S, beyond * S, 4001)


def _mean_increases(link: Link, S: float) -> None:
    assert (np.diff(link.mean(_grid(S))) > 0).all(), f"{link!r}: mean does not increase"


def _slope_is_derivative_of_mean(link: Link, S: float) -> None:
    z = _grid(S)
    area = integrate(link.slope, z[:-1], z[1:])
    close(np.diff(link.mean(z)), area, 1e-7, f"{link!r}: mean is not the integral of slope")


def _potential_is_integral_of_mean(link: Link, S: float) -> None:
    glm, z = GLM(link, 1.0, S), _grid(S, 3.0)
    area = integrate(glm.mean, z[:-1], z[1:])
    close(np.diff(glm.potential(z)), area, 1e-6, f"{link!r}: potential is not that of mean")


def _slopes_stay_within_bounds(link: Link, S: float) -> None:
    glm = GLM(link, 1.0, S)
    slopes = glm.slope(_grid(S, 3.0))
    low, high = glm.min_slope * (1 - 1e-12), glm.max_slope * (1 + 1e-12)
    assert low <= slopes.min(), f"{link!r}: slope falls to {slopes.min()}, below {glm.min_slope}"
    assert slopes.max() <= high, f"{link!r}: slope rises to {slopes.max()}, above {glm.max_slope}"


def _extension_is_smooth(link: Link, S: float) -> None:
    glm, h = GLM(link, 1.0, S), 1e-7 * S
    for edge in (-S, S):
        for part in (glm.mean, glm.slope, glm.potential):
            jump = abs(part(edge + h) - part(edge - h))
            assert jump <= 1e-5 * (1 + abs(part(edge))), f"{link!r}: a jump at score {edge}"


def _score_inverts_mean(link: Link, S: float) -> None:
    glm, z = GLM(link, 1.0, S), np.linspace(-2 * S, 2 * S, 41)
    close(glm.score(glm.mean(z)), z, 1e-7, f"{link!r}: score does not invert mean")


def _self_concordance_holds(link: Link, S: float) -> None:
    M = GLM(link, 1.0, S).self_concordance
    if M is None:
        return
    z = _grid(S)
    bend = np.abs(np.diff(np.log(link.slope(z)))) / np.diff(z)
    assert bend.max() <= M * (1 + 1e-6) + 1e-8, (
        f"{link!r}: |phi''|/phi' reaches {bend.max():.6g}, above self_concordance {M:g}"
    )
