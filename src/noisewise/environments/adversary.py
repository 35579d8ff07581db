"""The minimax adversary of Bartlett et al. for online least squares on a known design."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..inputs import positive
from ..numerics.linalg import minimax_directions
from ..protocols import Array


@dataclass(frozen=True)
class Adversary:
    r"""Labels +-Y that make every learner pay the minimax price.

    :math:`P_T = (\sum x x^\top)^+,\ P_{t-1} = P_t + P_t x_t x_t^\top P_t`; label +Y has
    probability :math:`\frac12 + x_t^\top P_t s_{t-1}/(2Y)`, :math:`s_{t-1} = \sum_{s<t} y_s x_s`.
    If that never leaves [0, 1], any learner's regret against the best linear predictor is on
    average :math:`\frac12 Y^2\sum q_t + \frac12 E\sum(\hat y_t - x_t^\top P_t s_{t-1})^2`,
    :math:`q_t = x_t^\top P_t x_t`. The paper prints /(2B) for /(2Y).
    """

    label_bound: float = 1.0

    def chances(self, x: Array, y: Array) -> Array:
        """Return the probability of +Y in every round given the labels before it.

        Outside [0, 1] it is none: the design is not `legal`.
        """
        before = np.cumsum(y[:, None] * x, axis=0) - y[:, None] * x
        return self._chance(minimax_directions(x)[0], before)

    def _chance(self, direction: Array, before: Array) -> Array:
        Y = positive("label_bound", self.label_bound)
        return 0.5 + np.vecdot(direction, before) / (2 * Y)

    def legal(self, x: Array) -> bool:
        r"""Return whether every label path keeps the probabilities of this design in [0, 1].

        That is :math:`\sum_{s<t}|x_t^\top P_t x_s| \le 1` for all t.
        """
        sums = np.abs(np.tril(minimax_directions(x)[0] @ x.T, -1)).sum(axis=1)
        return bool(sums.max(initial=0.0) <= 1 + 1e-12)

    def label(self, rng: np.random.Generator, x: Array) -> tuple[Array, int]:
        """Draw the labels of a design; return them and how often a probability was clipped."""
        s, y = np.zeros(x.shape[1]), np.empty(len(x))
        chance = np.empty(len(x))
        for t, direction in enumerate(minimax_directions(x)[0]):
            chance[t] = self._chance(direction, s)
            y[t] = self.label_bound if rng.random() < chance[t] else -self.label_bound
            s += y[t] * x[t]
        return y, int((np.abs(chance - 0.5) > 0.5 + 1e-12).sum())

    def value(self, x: Array) -> float:
        """Return the minimax regret, half loss: 1/2 Y^2 sum x'Px."""
        return 0.5 * self.label_bound**2 * float(minimax_directions(x)[1].sum())
