"""Worlds: features, parameters, noise and labels, drawn first and played later."""

from .adversary import Adversary
from .bandits import WORLDS, FamilyBandit, NoisyBandit
from .draws import ClippedGaussian, Gaussian, Rademacher, Sparse, Uniform
from .features import Ball, Correlated, CyclicBasis, Drifting, GaussianRows, Given, Sphere
from .glm import Family, Noisy
from .parameters import Cube, OnSphere
from .scales import LEVELS, FewQuiet, Misreported, PerArm, PerRound

__all__ = [
    "LEVELS",
    "WORLDS",
    "Adversary",
    "Ball",
    "ClippedGaussian",
    "Correlated",
    "Cube",
    "CyclicBasis",
    "Drifting",
    "Family",
    "FamilyBandit",
    "FewQuiet",
    "Gaussian",
    "GaussianRows",
    "Given",
    "Misreported",
    "Noisy",
    "NoisyBandit",
    "OnSphere",
    "PerArm",
    "PerRound",
    "Rademacher",
    "Sparse",
    "Sphere",
    "Uniform",
]
