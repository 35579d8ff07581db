"""Layers of noise: rewards of similar standard deviation are learnt together."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from ..noise import Bounded, Noise, SubGaussian


@dataclass(frozen=True)
class NoiseLayers:
    """Layer l holds the standard deviations from ``2^l floor`` to ``2^(l+1) floor``.

    Noise lies within ``bound``, or is ``sub_gaussian`` of its layer's largest.
    """

    bound: float
    floor: float
    sub_gaussian: bool = False

    @cached_property
    def count(self) -> int:
        """How many layers there are."""
        return max(1, self._doublings(self.bound))

    def _doublings(self, sigma: float) -> int:
        return math.ceil(math.log2(sigma / self.floor) - 1e-12)

    @cached_property
    def _ends(self) -> list[float]:
        """The largest standard deviation of each layer but the last, with room for rounding."""
        return [self.floor * 2.0 ** (place + 1 + 1e-12) for place in range(self.count - 1)]

    def layer(self, sigma: float) -> int:
        """Return the layer of a standard deviation."""
        return bisect_left(self._ends, sigma)

    def scale(self, layer: int) -> float:
        """Return the largest standard deviation of a layer."""
        return float(min(self.bound, 2.0 ** (layer + 1) * self.floor))

    def noise(self, layer: int) -> Noise:
        """Return what is assumed of the rewards of a layer."""
        sigma = self.scale(layer)
        return SubGaussian(sigma) if self.sub_gaussian else Bounded(self.bound, sigma)
