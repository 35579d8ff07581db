"""Worlds: features, parameters, noise and labels, drawn first and played later."""

from .adversary import Adversary
from .bandits import WORLDS, FamilyBandit, LogLinearBandit, NoisyBandit
from .draws import ClippedGaussian, Gaussian, Rademacher, Sparse, Uniform
from .features import Ball, Correlated, CyclicBasis, Drifting, GaussianRows, Given, Sphere
from .glm import Family, Noisy, Stream
from .hard import Hard, HardPrior
from .parameters import Cube, OnSphere
from .scales import Levels, LogUniform, MostlyLoud, geometric

__all__ = [
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
    "Gaussian",
    "GaussianRows",
    "Given",
    "Hard",
    "HardPrior",
    "Levels",
    "LogLinearBandit",
    "LogUniform",
    "MostlyLoud",
    "Noisy",
    "NoisyBandit",
    "OnSphere",
    "Rademacher",
    "Sparse",
    "Sphere",
    "Stream",
    "Uniform",
    "geometric",
]
