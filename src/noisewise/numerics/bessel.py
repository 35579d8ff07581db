"""What lower bounds and their worlds share: the priors, and the first zero of a Bessel function."""

import math

PRIORS = ("ball", "cube", "gaussian")


def bessel_zero(order: float) -> float:
    """Return the first positive zero of J_order, order >= -1/2, by bracketing.

    >>> round(bessel_zero(0.5) / math.pi, 12)
    1.0

    It lies above sqrt(order (order + 2)), below sqrt(2 (order + 1)(order + 3)) and below
    order + 1.8558 order^(1/3) + 1.0332 order^(-1/3).
    """
    from scipy.optimize import brentq
    from scipy.special import jv

    low = math.sqrt(max(order * (order + 2), 0.0)) + 1e-9
    high = math.sqrt(2 * (order + 1) * (order + 3))
    if order > 0:
        high = min(high, order + 1.8558 * order ** (1 / 3) + 1.0332 * order ** (-1 / 3))
    return float(brentq(lambda z: jv(order, z), low, high))
