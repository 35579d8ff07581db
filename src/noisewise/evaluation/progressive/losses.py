"""What a prediction costs once the label is seen."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import xlog1py, xlogy

from ...protocols import Array

LEAST = 1e-15  # probability; and mean of a count


@dataclass(frozen=True)
class Loss:
    """A loss with its name; ``of(means, labels)`` returns one number per row."""

    name: str
    of: Callable[[Array, Array], Array]


def squared_error(means: Array, y: Array) -> Array:
    """Return (y - mean)^2.

    >>> squared_error(np.array([1.0]), np.array([3.0]))
    array([4.])
    """
    return (y - means) ** 2


def log_loss(means: Array, y: Array) -> Array:
    """Return -y ln p - (1 - y) ln(1 - p); y is 0, 1 or a share between.

    >>> log_loss(np.array([0.5]), np.array([1.0])).round(3)
    array([0.693])
    """
    p = np.clip(means, LEAST, 1 - LEAST)
    return -xlogy(y, p) - xlog1py(1 - y, -p)


def class_log_loss(means: Array, y: Array) -> Array:
    """Return -ln p of the class that came; rows of ``y`` are 0 but for a 1.

    >>> class_log_loss(np.array([[0.2, 0.5, 0.3]]), np.array([[0.0, 1.0, 0.0]])).round(3)
    array([0.693])
    """
    return -xlogy(y, np.maximum(means, LEAST)).sum(axis=1)


def poisson_deviance(means: Array, y: Array) -> Array:
    """Return 2 (y ln(y / mean) - y + mean).

    >>> poisson_deviance(np.array([2.0]), np.array([2.0]))
    array([0.])
    """
    m = np.maximum(means, LEAST)
    return 2 * (xlogy(y, y / m) - y + m)


LOSSES = {
    "gaussian": Loss("squared error", squared_error),
    "binomial": Loss("log loss", log_loss),
    "classes": Loss("log loss", class_log_loss),
    "poisson": Loss("Poisson deviance", poisson_deviance),
}
