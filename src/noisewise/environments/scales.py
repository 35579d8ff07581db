"""How noise varies from round to round: specs with ``draw(rng, rounds) -> (rounds,)`` of sds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..inputs import positive, probability
from ..protocols import Array


@dataclass(frozen=True)
class Levels:
    """One of ``sds``, equally often; a single one is constant noise."""

    sds: tuple[float, ...] = (1.0,)

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        """Draw the sd of every round."""
        sds = np.array([positive("sds", sd) for sd in self.sds])
        if not len(sds):
            raise ValueError("sds is empty; pass at least one standard deviation")
        return sds[rng.integers(0, len(sds), size=rounds)]


def geometric(low: float, high: float, count: int) -> Levels:
    """Return ``count`` levels in equal ratios from ``low`` to ``high``.

    >>> geometric(0.25, 1.0, 3)
    Levels(sds=(0.25, 0.5, 1.0))
    """
    ends = positive("low", low), positive("high", high)
    return Levels(tuple(map(float, np.geomspace(*ends, count))))


@dataclass(frozen=True)
class LogUniform:
    """Every order of magnitude between ``low`` and ``high`` equally often."""

    low: float = 0.05
    high: float = 0.5

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        """Draw the sd of every round."""
        low, high = positive("low", self.low), positive("high", self.high)
        return np.exp(rng.uniform(np.log(low), np.log(high), size=rounds))


@dataclass(frozen=True)
class MostlyHigh:
    """Sd ``high``, but ``low`` in a ``share`` of the rounds."""

    low: float = 0.01
    high: float = 1.0
    share: float = 0.05

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        """Draw the sd of every round."""
        calm = rng.random(rounds) < probability("share", self.share, zero=True)
        return np.where(calm, positive("low", self.low), positive("high", self.high))


Scales = Levels | LogUniform | MostlyHigh
