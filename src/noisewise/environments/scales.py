"""How noisy each reward of a bandit is: specs with ``draw(rng, rounds, arms) -> (told, true)``.

Both are standard deviations, ``(rounds,)`` or ``(rounds, arms)``: what the learner is told, and
what the noise is drawn with.
"""

from dataclasses import dataclass

import numpy as np

from ..inputs import positive, probability
from ..protocols import Array

LEVELS = tuple(float(level) for level in np.geomspace(0.05, 0.5, 7))


@dataclass(frozen=True)
class PerRound:
    """One of ``levels`` a round, equally often, told with the reward."""

    levels: tuple[float, ...] = LEVELS

    def draw(self, rng: np.random.Generator, rounds: int, arms: int) -> tuple[Array, Array]:
        """Draw the standard deviations of all rounds."""
        sd = _pick(rng, self.levels, rounds)
        return sd, sd


@dataclass(frozen=True)
class PerArm:
    """One of ``levels`` an arm, the same in all rounds, told before choosing."""

    levels: tuple[float, ...] = LEVELS

    def draw(self, rng: np.random.Generator, rounds: int, arms: int) -> tuple[Array, Array]:
        """Draw the standard deviations of all arms."""
        sd = np.tile(_pick(rng, self.levels, arms), (rounds, 1))
        return sd, sd


@dataclass(frozen=True)
class FewQuiet:
    """Every round is ``quiet`` with probability ``share``, else ``loud``."""

    share: float = 0.05
    quiet: float = 0.05
    loud: float = 0.5

    def draw(self, rng: np.random.Generator, rounds: int, arms: int) -> tuple[Array, Array]:
        """Draw the standard deviations of all rounds."""
        hit = rng.random(rounds) < probability("share", self.share)
        sd = np.where(hit, positive("quiet", self.quiet), positive("loud", self.loud))
        return sd, sd


@dataclass(frozen=True)
class Misreported:
    """As `PerRound`, but a ``share`` of the rounds has the largest level and tells the smallest."""

    share: float = 0.1
    levels: tuple[float, ...] = LEVELS

    def draw(self, rng: np.random.Generator, rounds: int, arms: int) -> tuple[Array, Array]:
        """Draw the standard deviations of all rounds."""
        sd = _pick(rng, self.levels, rounds)
        lie = rng.random(rounds) < probability("share", self.share)
        return np.where(lie, min(self.levels), sd), np.where(lie, max(self.levels), sd)


Scales = PerRound | PerArm | FewQuiet | Misreported


def _pick(rng: np.random.Generator, levels: tuple[float, ...], count: int) -> Array:
    values = np.array([positive("levels", level) for level in levels])
    if values.size == 0:
        raise ValueError("levels is empty; pass at least one standard deviation")
    return values[rng.integers(0, len(values), size=count)]
