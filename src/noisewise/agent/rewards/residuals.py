"""The standard deviation of rewards whose noise nobody knows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ...storage.states import COUNT, NONNEGATIVE, POSITIVE, check_fields

DRIFT = 1.1  # of the sd, before past rewards are reweighted


@dataclass
class ResidualScale:
    r"""A running sd of one-step-ahead residuals, later ones weighing more.

    .. math:: s_t^2 = s_{t-1}^2 + \frac{2}{t + 2}(n_t r_t^2 - s_{t-1}^2),\qquad s_0 = 1

    for the residual r of a mean of n trials, s being the sd of one. Residual t has weight
    proportional to t + 1, so the first ones, taken while the estimate was poor, are forgotten like
    1/t^2. The sd is at least ``floor``. It includes the reward it is used for, and is one for all
    arms; `VarianceModel` is of before the reward and a function of the arm.

    A first residual that is small by accident would let its reward count for ever as an exact one.
    So ``counted`` is the sd of all rewards so far, 0 before the first, and `settled` says what
    their weights are to be multiplied with once it is a tenth off; None where some rewards came
    with an sd of their own.

    >>> scale = ResidualScale()
    >>> scale = scale.after(2.0)  # 1 + 2/3 (4 - 1)
    >>> scale.square, round(scale.sd, 4), scale.count
    (3.0, 1.7321, 1)
    """

    square: float = 1.0
    count: int = 0
    floor: float = 1e-3
    counted: float | None = 0.0

    def __post_init__(self) -> None:
        check_fields(self, square=NONNEGATIVE, count=COUNT, floor=POSITIVE)
        if self.counted is not None:
            check_fields(self, counted=NONNEGATIVE)

    @property
    def sd(self) -> float:
        """The standard deviation now."""
        return max(math.sqrt(self.square), self.floor)

    def after(self, residual: float, trials: float = 1.0) -> ResidualScale:
        """Return what is known after one more residual."""
        count = self.count + 1
        step = 2 / (count + 2)
        square = self.square + step * (trials * residual**2 - self.square)
        return replace(self, square=square, count=count)

    def settled(self) -> tuple[ResidualScale, float]:
        """Return what is known once past rewards count with the sd of now, and by what factor."""
        if self.counted is None:
            return self, 1.0
        ratio = self.counted / self.sd
        if 1 / DRIFT < ratio < DRIFT:
            return self, 1.0
        return replace(self, counted=self.sd), ratio * ratio or 1.0

    def mixed(self) -> ResidualScale:
        """Return what is known after a reward with an sd of its own."""
        return self if self.counted is None else replace(self, counted=None)
