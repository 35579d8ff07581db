"""What a learner may assume of the noise. A weight w promises a scale smaller by sqrt(w)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..inputs import coerce_positive


@dataclass(frozen=True)
class SubGaussian:
    r"""Noise with :math:`E e^{s\epsilon} \le e^{s^2\sigma^2/(2w)}` for a row of weight w.

    Gaussian noise of standard deviation ``sigma / sqrt(w)`` is the standard case.

    >>> SubGaussian(sigma=0.5)
    SubGaussian(sigma=0.5)
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "sigma")


@dataclass(frozen=True)
class Bounded:
    r"""Noise with :math:`|\epsilon| \le` ``bound`` and sd at most ``sigma / sqrt(w)``.

    ``max_weight`` is the largest weight any row will carry; it must be known in advance.
    """

    bound: float = 1.0
    sigma: float = 0.3
    max_weight: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "bound", "sigma", "max_weight")
        if self.sigma > self.bound * math.sqrt(self.max_weight) * (1 + 1e-9):
            raise ValueError(
                f"sigma is {self.sigma:g}, above bound {self.bound:g}; noise within a bound has no "
                "larger standard deviation, pass one of at most that"
            )


@dataclass(frozen=True)
class Likelihood:
    r"""Labels drawn from the exponential family whose mean is the link.

    Gaussian for identity, Bernoulli (or means of n trials with weight n) for logistic, Poisson for
    exponential, +-1 for tanh. Over-dispersed labels with only a matching variance are not covered.
    ``dispersion`` multiplies the family's variance; it is the variance at weight 1 for identity.
    """

    dispersion: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "dispersion")


Noise = SubGaussian | Bounded | Likelihood
