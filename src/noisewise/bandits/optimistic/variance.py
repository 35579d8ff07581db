"""A model of the variance of rewards, learnt from squared one-step-ahead residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import coerce_positive, column, dimension, features, short_rows
from ...model.glm import GLM
from ...numerics.blas import matmul
from ...protocols import Array, FloatOrArray
from ...regression.ftrl.ftrl import FTRL
from ...regression.ftrl.state import FTRLState

INFLATION = 2.0
RIDGE = 0.5
RANGE = 1000.0


@dataclass(frozen=True)
class VarianceModel:
    r"""The variance of a reward as a log-linear function of its arm, without guarantee.

    .. math:: v(x) = R^2 e^{\gamma\cdot(x/A, 1)},\qquad \hat\gamma = \arg\min_\gamma
              \tfrac12\|\gamma\|^2 + \sum_s \frac{e_s^2}{v(x_s)} + \log v(x_s)

    e is the reward less the mean predicted before it. The loss is the gamma deviance, which for
    Gaussian noise is twice the negative log-likelihood. In the log precision :math:`-\gamma` it is
    that of an exponential link with label :math:`R^2/e^2` and weight :math:`e^2/R^2`, so the
    streaming `FTRL` fits it. A residual pulls by :math:`e^2/v`, in units of its own variance: an
    outlier k times its sd moves log v by the order of log k, and noisy arms do not drown quiet ones
    as they would with squared residuals as Poisson labels.

    A residual holds the error of the estimate besides the noise, so v is too large at first;
    nothing is subtracted. What a reward counts with is twice v, held within floor and bound; before
    the first residual that is the bound.

    Parameters
    ----------
    noise_bound, noise_floor : float > 0
        R and the least standard deviation: what is given out lies between them.
    feature_bound : float > 0
        A, the norm of the longest arm.

    Examples
    --------
    One residual of a tenth of the bound moves the log precision c of its own row by the root of
    1 - e^c/100 = c/2, as the row (1, 1) has squared norm 2:

    >>> model = VarianceModel(noise_bound=1.0, noise_floor=0.1)
    >>> state = model.start(dim=1)
    >>> model.sigma(state, [1.0])
    1.0
    >>> model.update(state, [1.0], residual=0.1)
    >>> c = -math.log(model.variance(state, [1.0]))
    >>> round(c, 2), round(1 - math.exp(1.87) / 100, 2), 1.87 / 2
    (1.87, 0.94, 0.935)
    """

    noise_bound: float = 1.0
    noise_floor: float = 0.05
    feature_bound: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "noise_bound", "noise_floor", "feature_bound")
        if not self.noise_floor < self.noise_bound:
            raise ValueError(
                f"noise_floor is {self.noise_floor:g}, not below noise_bound "
                f"{self.noise_bound:g}; a variance is estimated between them"
            )

    @cached_property
    def _ftrl(self) -> FTRL:
        """The learner of log precisions, curved as far as those between floor and bound reach."""
        S = 2 * math.log(self.noise_bound / self.noise_floor)
        return FTRL(GLM("exponential", math.sqrt(2), S / math.sqrt(2)), RIDGE)

    def start(self, dim: int) -> FTRLState:
        """Make the state of a fresh learner: the variance of every arm is the largest."""
        return self._ftrl.start(dimension(dim) + 1)

    def variance(self, state: FTRLState, x: ArrayLike) -> FloatOrArray:
        """Return the fitted variance at each row of ``x``."""
        rows, single = features(x, state.dim - 1)
        v = np.exp(2 * math.log(self.noise_bound) - matmul(self._row(rows), state.theta))
        return float(v[0]) if single else v

    def sigma(self, state: FTRLState, x: ArrayLike) -> FloatOrArray:
        """Return the standard deviation that a reward of each row of ``x`` counts with."""
        rows, single = features(x, state.dim - 1)
        sds = [self.of_row(state, row) for row in rows]
        return sds[0] if single else np.array(sds)

    def of_row(self, state: FTRLState, x: Array) -> float:
        """Return `sigma` of one row that was checked."""
        log = 0.5 * (math.log(INFLATION) - float(self._row(x) @ state.theta))
        return max(self.noise_floor, self.noise_bound * math.exp(min(log, 0.0)))

    def update(self, state: FTRLState, x: ArrayLike, residual: float) -> None:
        """Learn the residual of a reward, taken before the estimate has learnt it."""
        rows, single = features(x, state.dim - 1)
        short_rows(rows, self.feature_bound)
        share = abs(float(column("residual", residual, 1, single)[0])) / self.noise_bound
        least = self.noise_floor / self.noise_bound / RANGE  # a residual of zero has no label
        square = min(max(share, least), RANGE) ** 2
        self._ftrl.update(state, self._row(rows[0]), 1 / square, square)

    def _row(self, x: Array) -> Array:
        """Return features in units of their bound, and a constant one."""
        row = np.empty((*x.shape[:-1], x.shape[-1] + 1))
        row[..., :-1], row[..., -1] = x / self.feature_bound, 1.0
        return row
