"""The minimax adversary of Bartlett et al. for online least squares on a known design."""

from dataclasses import dataclass

import numpy as np

from ..inputs import positive
from ..linalg import minimax_directions
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

    def label(self, rng: np.random.Generator, x: Array) -> tuple[Array, int]:
        """Draw the labels of a design; return them and how often a probability was clipped."""
        Y = positive("label_bound", self.label_bound)
        directions, _ = minimax_directions(x)
        s, y, clipped = np.zeros(x.shape[1]), np.empty(len(x)), 0
        for t, direction in enumerate(directions):
            lean = float(direction @ s) / Y
            clipped += abs(lean) > 1 + 1e-12
            y[t] = Y if rng.random() < 0.5 + 0.5 * lean else -Y
            s += y[t] * x[t]
        return y, clipped

    def value(self, x: Array) -> float:
        """Return the minimax regret, half loss: 1/2 Y^2 sum x'Px."""
        return 0.5 * self.label_bound**2 * float(minimax_directions(x)[1].sum())
