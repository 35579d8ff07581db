"""Thompson sampling on weighted ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator
from numpy.typing import ArrayLike

from ...inputs import coerce_positive, generator
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ..arms import candidates, compiled
from .linear_policy import VarianceWeighted
from .linear_state import LinearState


@dataclass(frozen=True)
class LinearThompson(VarianceWeighted[LinearState]):
    r"""Play the best arm of one drawn parameter, :math:`\arg\max_x x\cdot\tilde\theta`.

    .. math:: \tilde\theta \sim N(\hat\theta, \text{scale}^2\,V^{-1}),\quad
              V = 2\lambda I + \sum w x x^\top,\ w = \max(\sigma, \text{floor})^{-2}

    With scale 1 the draw is from the posterior of Gaussian rewards under the prior
    :math:`N(0, I/2\lambda)`. A bound for the worst case needs a scale of order sqrt(d log t).

    Use it for linear rewards where a little luck is fine and speed of learning counts; no set comes
    with it. Costs K d + d^3 per round.

    Parameters
    ----------
    scale : float >= 0
        0 is greedy.
    noise_floor : float > 0
        Smaller standard deviations count as this one.

    References
    ----------
    Agrawal and Goyal (2013), "Thompson sampling for contextual bandits with linear payoffs": regret
    of order d^{3/2} sqrt(T) for the larger scale.
    """

    not_promised: ClassVar[tuple[str, ...]] = ("rotation leaves choices alone",)

    scale: float = 1.0
    ridge: float = 0.5
    noise_floor: float = 1e-3

    def __post_init__(self) -> None:
        coerce_positive(self, "scale", zero=True)
        coerce_positive(self, "ridge", "noise_floor")

    def select(
        self, state: LinearState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the best arm of a drawn parameter, one draw for all arms."""
        x = candidates(arms, state.dim)
        drawn = draw(rng, state.theta, state.inverse, self.scale)
        return int(compiled().best_score(x, drawn))


def draw(rng: Generator, centre: Array, inverse: Array, scale: float) -> Array:
    """Draw from the normal law of mean ``centre`` and covariance scale^2 ``inverse``."""
    generator(rng)
    return centre + scale * matmul(linalg.factor(inverse), rng.normal(size=len(centre)))
