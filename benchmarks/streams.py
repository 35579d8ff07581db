"""The two streams every figure is measured on."""

import numpy as np

import noisewise as nw
from noisewise.environments import Drifting, Sphere

# Uniform on the unit sphere; and a geometric spectrum from 1 to 1/100 in a frame that makes half a
# turn over the horizon, so that long directions become short and back.
isotropic, drifting = Sphere().draw, Drifting(shortest=0.01).draw
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
