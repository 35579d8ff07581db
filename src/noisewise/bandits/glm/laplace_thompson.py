"""Thompson sampling for generalised linear models by Laplace's approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from ...inputs import coerce_positive
from ...protocols import Array
from ...regression.ftrl.sets import curvature_inverse
from ...regression.ftrl.state import FTRLState
from ..linear.linear_thompson import draw
from .greedy import Greedy


@dataclass(frozen=True)
class LaplaceThompson(Greedy):
    r"""Play the best arm of one drawn parameter, :math:`\arg\max_x x\cdot\tilde\theta`.

    .. math:: \tilde\theta \sim N(\hat\theta, \text{scale}^2 H^{-1}),\quad
              H = 2\lambda I + \sum w\,\varphi'(x\cdot\hat\theta)\,x x^\top,\
              w = \max(\sigma, \text{floor})^{-2}

    The estimate is `FTRL`'s within its tolerance, and H that of its solver: curvatures are renewed
    when passes are due. No regret bound is proved.

    Use it for 0/1 and other curved rewards as `LinearThompson` for linear ones. Costs K d + d^3 per
    round, and the update of `FTRL`.

    Parameters
    ----------
    scale : float >= 0
        1 where ``sigma`` is relative to the family's own standard deviation (1/sqrt(n) for a mean
        of n trials); for additive noise of sd ``sigma``, 1/sqrt(slope at 0): 2 for logistic. 0 is
        greedy.

    References
    ----------
    Chapelle and Li (2011), "An empirical evaluation of Thompson sampling".
    """

    not_promised: ClassVar[tuple[str, ...]] = ("rotation leaves choices alone",)

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        coerce_positive(self, "scale", zero=True)

    def _parameter(self, state: FTRLState, rng: Generator) -> Array:
        """Draw a parameter, one for all arms."""
        return draw(rng, state.theta, curvature_inverse(self.glm, state), self.scale)
