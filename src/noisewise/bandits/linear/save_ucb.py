"""SAVE: layers of uncertainty, for unknown variances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ...confidence import Ellipsoid
from ...inputs import coerce_positive, flag, integer
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ...storage.states import COUNT, check_array, check_fields, check_list
from ...support.printing import OneLine
from ..arms import candidates, first_best
from ..checked_policy import CheckedPolicy, check_optimism
from . import linear_state
from .linear_state import LinearState


@dataclass(eq=False, repr=False)
class SAVEState(OneLine):
    """The layers of `SAVE`, from the coarsest.

    ``squares`` holds the sum of w^2 r^2 of each layer, ``changed`` the number of rewards after
    which it last learnt one.
    """

    layers: list[LinearState]
    squares: Array
    changed: NDArray[np.int64]
    count: int = 0

    def __post_init__(self) -> None:
        check_list("SAVEState.layers", self.layers, LinearState)
        L = len(self.layers)
        if L == 0 or len({layer.dim for layer in self.layers}) > 1:
            raise ValueError(f"SAVEState.layers holds {L} layers; one at least, all of one dim")
        check_fields(self, squares=(L,), count=COUNT)
        check_array("SAVEState.changed", self.changed, (L,), np.int64)
        if self.changed.min() < 0 or self.squares.min() < 0:
            raise ValueError("SAVEState holds a count or a sum of squares below 0")

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.layers[0].dim

    @property
    def theta(self) -> Array:
        """The estimate of the coarsest layer."""
        return self.layers[0].theta


@dataclass(frozen=True)
class SAVE(CheckedPolicy[SAVEState]):
    r"""Layers of ever smaller uncertainty, each with a radius from its own residuals.

    Layer l starts with :math:`V_l = 4^{-l} I`. From the first on: if all arms left are narrower
    than :math:`2^{-l}`, those that can't be best are dropped and the next layer is asked; else one
    that is wider is played, and its reward goes to this layer with weight
    :math:`w = 2^{-l}/\|x\|_{V_l^{-1}}`, squared. The radius is

    .. math:: \beta_l = 16\cdot 2^{-l}\sqrt{(8\,\mathrm{Var}_l + 6R^2 q' + 2^{4-2l})\,q}
              + 6\cdot 2^{-l} R\,q + 2^{1-l}

    with :math:`q = \log(4t^2L/\delta)` and :math:`q' = \log(4(t+1)^2L/\delta)` at the t-th reward,
    the last that the layer learnt. Var_l is the weighted sum of squared residuals if
    :math:`2^l \ge 64\sqrt{q'}`, else :math:`R^2` times the number of the layer's rewards.

    **Asymptotic.** Residuals count from layer 9 on, which takes of the order of :math:`4^9 d`
    rounds to reach; before that it plays little better than at random. Use it to look at the
    theory, and `LOSAN` to play. The constants are recalled from the paper and not verified. Rewards
    of rounds in which every arm is narrower than :math:`2^{-L}`, about :math:`T^{-3/2}`, are not
    thrown away as in the paper. Costs up to L K d^2 per round, with L = 1.5 log2 T layers.

    Parameters
    ----------
    noise_bound : float > 0
        R, which bounds every noise. Arms and parameter have norms of at most 1.
    horizon : int
        T, the number of rounds that will be played.
    practical : bool
        Residuals count in every layer, and the wide arm of the largest upper bound is played, not
        the widest. Without guarantee.
    radius_scale : float >= 0
        Multiplies the part of the radius that is due to noise; only 1 is covered by theory.

    Examples
    --------
    In layer 1 an arm of norm 1 has width 2. Its weight (1/4)^2 adds 1/16 to V = 1/4:

    >>> policy = SAVE(horizon=100)
    >>> state = policy.start(dim=1)
    >>> policy.update(state, [1.0], 0.5)
    >>> state.layers[0].V
    array([[0.3125]])

    References
    ----------
    Zhao, He, Zhou, Zhang and Gu (2023), "Variance-dependent regret bounds for linear bandits and
    reinforcement learning": regret of order d sqrt(sum sigma^2) + d, no variance being known.
    """

    not_promised: ClassVar[tuple[str, ...]] = ("late rewards give the same estimate",)
    feature_bound: ClassVar[float] = 1.0
    parameter_bound: ClassVar[float] = 1.0

    noise_bound: float = 1.0
    horizon: int = 10_000
    practical: bool = False
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "noise_bound")
        coerce_positive(self, "horizon", by=integer)
        flag("practical", self.practical)
        check_optimism(self)

    @property
    def depth(self) -> int:
        """L, the number of layers."""
        return max(1, math.ceil(1.5 * math.log2(self.horizon)))

    def start(self, dim: int) -> SAVEState:
        """Make the state of a fresh learner."""
        L = self.depth
        layers = [linear_state.start(dim, 0.5 * 4.0**-level) for level in range(1, L + 1)]
        return SAVEState(layers, np.zeros(L), np.zeros(L, dtype=np.int64))

    def check_state(self, state: SAVEState) -> None:
        """Raise unless the state has all layers."""
        if len(state.layers) != self.depth:
            raise ValueError(f"the state has {len(state.layers)} layers, not {self.depth}")

    def select(
        self, state: SAVEState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return a wide arm of the first layer that has one; nothing is random."""
        x = candidates(arms, state.dim, self.longest_arm)
        left = np.arange(len(x))
        for level, layer in enumerate(state.layers, start=1):
            width, mean = linear_state.widths(layer, x[left]), matmul(x[left], layer.theta)
            beta = self.radius(state, level, self.radius_scale)
            upper, wide = mean + beta * width, width > 2.0**-level
            if wide.any():
                rank = upper if self.practical else width
                return int(left[first_best(np.where(wide, rank, -np.inf))])
            if (width <= 2.0**-self.depth).all():  # in the last layer at the latest
                break
            left = left[mean >= mean.max() - 2.0 ** (1 - level) * beta]
        return int(left[first_best(upper)])

    def learn(self, state: SAVEState, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward in the first layer in which the arm is wide, if there is one."""
        linear_state.refuse_overflow(x, y, 1.0)
        state.count += 1
        for i, layer in enumerate(state.layers):
            width, narrow = linalg.norm(x, layer.inverse), 2.0 ** -(i + 1)
            if width > narrow:
                w = narrow / width
                state.squares[i] += (w * y) ** 2
                state.changed[i] = state.count
                linear_state.learn(layer, x, y, w * w)
                return

    def variance(self, state: SAVEState, level: int) -> float:
        """Return the weighted sum of squared residuals in a layer."""
        layer = state.layers[level - 1]
        theta = layer.theta
        least = float(theta @ layer.b) + 4.0**-level * float(theta @ theta)
        return max(float(state.squares[level - 1]) - least, 0.0)

    def radius(self, state: SAVEState, level: int, scale: float = 1.0) -> float:
        """Return the radius of a layer, its noise part times ``scale``."""
        t, R, noise = int(state.changed[level - 1]), self.noise_bound, 0.0
        if t:
            q = math.log(4 * t * t * self.depth / self.delta)
            next_q = math.log(4 * (t + 1) ** 2 * self.depth / self.delta)
            if self.practical or 2.0**level >= 64 * math.sqrt(next_q):
                spread = self.variance(state, level)
            else:
                spread = R * R * state.layers[level - 1].count
            inside = 8 * spread + 6 * R * R * next_q + 2.0 ** (4 - 2 * level)
            noise = 2.0**-level * (16 * math.sqrt(inside * q) + 6 * R * q)
        return scale * noise + 2.0 ** (1 - level)

    def confidence(self, state: SAVEState) -> tuple[Ellipsoid, ...]:
        """Return the set of every layer, whatever ``radius_scale``; they hold together."""
        return tuple(
            Ellipsoid(layer.theta, layer.inverse.copy(), self.radius(state, level))
            for level, layer in enumerate(state.layers, start=1)
        )
