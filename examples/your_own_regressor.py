"""A regressor of your own: a frozen dataclass with three verbs, and a dataclass as its state.

Check it with: noisewise check your_own_regressor:Average
See it beside the others: noisewise reproduce regressors --regressor your_own_regressor:Average
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import noisewise as nw
from noisewise.inputs import features, rows


@dataclass
class AverageState:
    dim: int
    total: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True)
class Average:
    """Predicts the weighted average of the labels and ``prior`` rows of label 0."""

    prior: float = 1.0
    # features are ignored, so that a zero row counts too
    not_promised: ClassVar[tuple[str, ...]] = ("a zero row is legal",)

    def start(self, dim):
        return AverageState(dim)

    def predict(self, state, x):
        x, single = features(x, state.dim)
        mean = state.total / (self.prior + state.weight)
        return mean if single else np.full(len(x), mean)

    def update(self, state, x, y, weight=1.0):
        x, y, w, single = rows(x, y, weight, state.dim)  # refuses bad input
        means = np.empty(len(x))
        for i in range(len(x)):
            means[i] = self.predict(state, x[i])
            state.total += float(w[i] * y[i])
            state.weight += float(w[i])
        return float(means[0]) if single else means


if __name__ == "__main__":
    nw.checks.check_regressor(Average())
    x = np.array([[0.1], [0.5], [-0.3], [0.2], [0.4]])
    y = np.array([2.1, 1.9, 2.0, 1.8, 2.2])
    print("average         ", nw.predictions(Average(), x, y).round(2))
    both = nw.Aggregating((Average(), nw.Ridge()), label_bound=3.0)
    print("mixed with ridge", nw.predictions(both, x, y).round(2))
