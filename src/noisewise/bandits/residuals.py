"""The standard deviation of rewards whose noise nobody knows."""

import math
from dataclasses import dataclass, replace


@dataclass
class ResidualScale:
    r"""A running sd of one-step-ahead residuals, later ones weighing more.

    .. math:: s_t^2 = s_{t-1}^2 + \frac{2}{t + 2}(n_t r_t^2 - s_{t-1}^2),\qquad s_0 = 1

    for the residual r of a mean of n trials, s being the sd of one. Residual t has weight
    proportional to t + 1, so the first ones, taken while the estimate was poor, are forgotten like
    1/t^2. The sd is at least ``floor``. It includes the reward it is used for, and is one for all
    arms; `VarianceModel` is of before the reward and a function of the arm.

    >>> scale = ResidualScale()
    >>> scale = scale.after(2.0)  # 1 + 2/3 (4 - 1)
    >>> scale.square, round(scale.sd, 4), scale.count
    (3.0, 1.7321, 1)
    """

    square: float = 1.0
    count: int = 0
    floor: float = 1e-3

    @property
    def sd(self) -> float:
        """The standard deviation now."""
        return max(math.sqrt(self.square), self.floor)

    def after(self, residual: float, trials: float = 1.0) -> "ResidualScale":
        """Return what is known after one more residual."""
        count = self.count + 1
        step = 2 / (count + 2)
        square = self.square + step * (trials * residual**2 - self.square)
        return replace(self, square=square, count=count)
