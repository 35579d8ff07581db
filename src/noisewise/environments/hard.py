"""The worlds of the lower bounds: a basis design and the prior that is hardest to learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..inputs import dimension, integer, one_of, positive
from ..model.glm import GLM
from ..numerics.bessel import PRIORS, bessel_zero
from ..protocols import Array, Rounds
from .features import CyclicBasis, unit_rows
from .scales import Levels
from .streams import Noisy


@dataclass(frozen=True)
class HardPrior:
    r"""The prior of least Fisher information on a set, for which Van Trees' bound is largest.

    "ball": the squared ground state of the ball of radius B, whose length has density
    proportional to :math:`r J_\nu(jr/B)^2`, :math:`\nu = d/2-1`, j the first zero. "cube":
    coordinates of density :math:`\cos^2(\pi u/2h)/h` on [-h, h], :math:`h = B/\sqrt d`.
    "gaussian": coordinates of variance :math:`B^2/d`.
    """

    bound: float = 1.0
    prior: str = "ball"

    def draw(self, rng: np.random.Generator, dim: int) -> Array:
        """Draw the parameter."""
        d, B = dimension(dim), positive("bound", self.bound)
        prior = one_of("prior", self.prior, PRIORS)
        if prior == "gaussian":
            return B / np.sqrt(d) * rng.normal(size=d)
        if prior == "cube":
            u = np.linspace(-1, 1, 4097)
            below = (u + 1) / 2 + np.sin(np.pi * u) / (2 * np.pi)
            return B / np.sqrt(d) * np.interp(rng.random(d), below, u)
        return B * np.interp(rng.random(), *_ground_state(d)) * unit_rows(rng, 1, d)[0]


@lru_cache
def _ground_state(dim: int) -> tuple[Array, Array]:
    """Return the distribution function of the length in the unit ball, and its argument."""
    from scipy.special import jv

    nu, r = dim / 2 - 1, np.linspace(0, 1, 4097)
    z = bessel_zero(nu) * r[1:]
    # the integral of r J^2 is r^2/2 (J_nu^2 - J_{nu-1} J_{nu+1})
    below = r[1:] ** 2 * (jv(nu, z) ** 2 - jv(nu - 1, z) * jv(nu + 1, z))
    return np.append(0.0, below / below[-1]), r


@dataclass(frozen=True)
class Hard:
    """The lower bound's world: basis vectors in turn, a hard prior, Gaussian noise."""

    sigma: float = 1.0
    parameter_bound: float = 1.0
    prior: str = "ball"

    def draw(self, rng: np.random.Generator, rounds: int, dim: int) -> Rounds:
        """Draw a table of rounds."""
        x = CyclicBasis().draw(rng, integer("rounds", rounds), dimension(dim))
        theta = HardPrior(self.parameter_bound, self.prior).draw(rng, dim)
        return Noisy(GLM(), scales=Levels((self.sigma,))).label(rng, x, theta)
