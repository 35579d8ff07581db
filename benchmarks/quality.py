"""How good an estimate is: what its state certifies, and how far off it is in truth."""

import numpy as np

from noisewise.regression.ftrl.newton import minimise
from noisewise.regression.ftrl.sets import uniform


def quality(glm, state):
    """Passes, and certificate and true error in units of sqrt(dim), at the end of the stream."""
    inverse, _ = uniform(glm, state)
    exact, _ = minimise(glm, state.ridge, list(state.blocks()), state.theta, inverse)
    away = state.theta - exact.theta
    error = float(np.sqrt(away @ np.linalg.solve(inverse, away)))
    unit = np.sqrt(state.dim)
    return {
        "passes": state.passes,
        "factors": state.factors,
        "certificate": state.gap / unit,
        "error": error / unit,
    }
