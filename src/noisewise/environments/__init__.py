"""Worlds: features, parameters, noise and labels, drawn first and played later."""

from .adversary import Adversary
from .draws import ClippedGaussian, Gaussian, Rademacher, Sparse, Uniform
from .features import Ball, Correlated, CyclicBasis, Drifting, GaussianRows, Given, Sphere
from .glm import Family, Noisy
from .parameters import Cube, OnSphere

__all__ = [
    "Adversary",
    "Ball",
    "ClippedGaussian",
    "Correlated",
    "Cube",
    "CyclicBasis",
    "Drifting",
    "Family",
    "Gaussian",
    "GaussianRows",
    "Given",
    "Noisy",
    "OnSphere",
    "Rademacher",
    "Sparse",
    "Sphere",
    "Uniform",
]
