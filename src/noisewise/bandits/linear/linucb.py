"""LinUCB: upper bounds of constant width."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...inputs import coerce_positive
from ...protocols import Array
from ..checked_policy import IndexPolicy, check_optimism
from .linear_policy import LinearPolicy
from .linear_state import LinearState, upper_bounds


@dataclass(frozen=True)
class LinUCB(LinearPolicy[LinearState], IndexPolicy[LinearState]):
    r"""Play :math:`\arg\max_x x\cdot\hat\theta + \alpha\|x\|_{V^{-1}}` with a constant width.

    By default :math:`\alpha = 1 + \sqrt{\log(2/\delta)/2}`, recalled from the paper and not
    verified. Nothing is proved for a constant width, so there is no confidence set. The disjoint
    form, one parameter an arm, is this one on block one-hot features.

    Use it as the yardstick of practice, or with a ``width`` tuned on past data. Costs K d^2 per
    round.

    Parameters
    ----------
    width : float >= 0, optional
        alpha.

    Examples
    --------
    >>> round(LinUCB().alpha, 4)
    2.3581

    References
    ----------
    Li, Chu, Langford and Schapire (2010), "A contextual-bandit approach to personalized news
    article recommendation".
    """

    width: float | None = None
    ridge: float = 0.5
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "ridge")
        check_optimism(self)
        if self.width is not None:
            coerce_positive(self, "width", zero=True)

    @property
    def alpha(self) -> float:
        """The width in use."""
        width = 1 + math.sqrt(math.log(2 / self.delta) / 2) if self.width is None else self.width
        return self.radius_scale * width

    def index(self, state: LinearState, x: Array) -> Array:
        """Return the index of every arm."""
        return upper_bounds(state, x, self.alpha)
