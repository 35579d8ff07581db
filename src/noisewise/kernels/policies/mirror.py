"""Roots behind a step of mirror descent with the loss itself, compiled."""

import math

from numba import float64, int64, njit

from ..compiling.compile_options import PART, entry
from ..glm.link_values import extended

STEPS = 200


@njit(**PART)
def settle(code, S, g, a, q, y):
    """Return (phi(z) - y)/g and phi'(z)/g at the root of z = a - q (phi(z) - y)/g.

    Newton's method, held between the ends: left less right rises at least as fast as z.
    """
    low, high, z = -math.inf, math.inf, a
    for _ in range(STEPS):
        mean, slope, _, _ = extended(code, S, z)
        r, slope = (mean - y) / g, slope / g
        miss = z - a + q * r
        if miss > 0.0:
            high, low = z, max(low, z - miss)
        else:
            low, high = z, min(high, z - miss)
        new = z - miss / (1.0 + q * slope)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - z) <= 2e-16 * abs(z):
            break
        z = new
    # both are the pull at the root: the first has the rounding of means, the second that of scores
    return (r if q * slope <= 1.0 else (a - z) / q), slope


@entry(float64(int64, float64, float64, float64, float64, float64))
def pull(code, S, g, a, q, y):
    """Return the first number of `settle`; the link is extended linearly beyond scores of S."""
    return settle(code, S, g, a, q, y)[0]


@entry(
    float64(
        int64, float64, float64, float64[::1], float64[::1], float64[::1], float64, float64,
        float64[::1],
    )
)  # fmt: skip
def on_sphere(code, S, g, values, p, q, y, B, u):
    """Write the u of length B with (values + nu) u = q - r p, r the `pull` at p.u; return nu >= 0.

    The length falls in nu. Newton's method on its inverse, held between the ends. With
    W = 1/(values + nu), minus half the derivative of |u|^2 lies between u'Wu / (1 + slope p'Wp)
    and the largest W times |u|^2: rounding may not take it out of there.
    """
    d, low, high, nu = values.shape[0], 0.0, math.inf, 0.0
    for _ in range(STEPS):
        a, s = 0.0, 0.0
        for i in range(d):
            a += p[i] * q[i] / (values[i] + nu)
            s += p[i] * p[i] / (values[i] + nu)
        r, slope = settle(code, S, g, a, s, y)
        square, most, along = 0.0, 0.0, 0.0
        for i in range(d):
            u[i] = (q[i] - r * p[i]) / (values[i] + nu)
            square += u[i] * u[i]
            most += u[i] * u[i] / (values[i] + nu)
            along += p[i] * u[i] / (values[i] + nu)
        fall = max(most - slope * along * along / (1.0 + slope * s), most / (1.0 + slope * s))
        if square > B * B:
            low = nu
        else:
            high = nu
        new = math.inf
        if 0.0 < fall < math.inf and square < math.inf:
            new = nu + (math.sqrt(square) / B - 1.0) * max(square / fall, values[0] + nu)
        if not low < new < high:
            if high == math.inf:
                new = 2.0 * nu + values[d - 1]
            elif low > 0.0:
                new = math.sqrt(low) * math.sqrt(high)
            else:
                new = 0.5 * high
        if abs(new - nu) <= 1e-15 * nu:
            break
        nu = new
    return nu
