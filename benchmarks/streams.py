"""The two streams every figure is measured on."""

import numpy as np

import noisewise as nw


def isotropic(rng, rounds, dim):
    """Uniform on the unit sphere."""
    x = rng.normal(size=(rounds, dim))
    x /= np.sqrt(np.einsum("ij,ij->i", x, x))[:, None]
    return x


def drifting(rng, rounds, dim):
    """A geometric spectrum from 1 to 1/100 in a frame that makes half a turn over the horizon.

    Coordinate i turns with coordinate d-1-i, so that long directions become short and back.
    """
    x = isotropic(rng, rounds, dim) * np.geomspace(1, 0.01, dim)
    angle = np.linspace(0, np.pi, rounds)
    c, s = np.cos(angle), np.sin(angle)
    for i in range(dim // 2):
        a, b = x[:, i].copy(), x[:, dim - 1 - i].copy()
        x[:, i], x[:, dim - 1 - i] = c * a + s * b, c * b - s * a
    return x


STREAMS = {"isotropic": isotropic, "drifting": drifting}


def labels(rng, x, link="logistic", bound=3.0):
    """Labels that fit the link, for a parameter of length ``bound``."""
    truth = rng.normal(size=x.shape[1])
    mean = nw.GLM(link, 1.0, bound).mean(x @ (truth * bound / np.linalg.norm(truth)))
    if link in ("logistic", "probit"):
        return (rng.random(len(x)) < mean).astype(float)
    if link == "exponential":
        return rng.poisson(mean).astype(float)
    if link == "tanh":
        return np.where(rng.random(len(x)) < (1 + mean) / 2, 1.0, -1.0)
    return mean + (1.0 if link == "identity" else 0.5) * rng.normal(size=len(x))
