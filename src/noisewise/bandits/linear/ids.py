"""Information-directed sampling: regret weighed against what an arm teaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ...inputs import coerce_positive, flag, generator, one_of
from ...numerics.blas import matmul
from ...protocols import Array
from ..arms import candidates, first_best, spreads
from ..checked_policy import check_optimism
from . import linear_state
from .linear_policy import ConfidenceBounds, VarianceWeighted
from .linear_state import LinearState


@dataclass(frozen=True)
class IDS(VarianceWeighted[LinearState], ConfidenceBounds[LinearState]):
    r"""Play the arm of least squared regret per unit of information, at the noise of each arm.

    .. math:: \Psi(x) = \frac{D(x)^2}{I(x)},\qquad D(x) = \max_{x'} u(x') - l(x)

    with u and l the upper and lower bounds of `WeightedLeastSquaresUCB`, whose estimate and set it
    uses, and :math:`\rho = \max(\sigma, \text{floor})`. Randomised, it draws from the law of least
    :math:`(E D)^2 / E I`, which has at most two arms. An arm that is known to be best (D = 0) is
    played at once.

    Use it where the noise of every arm is known before choosing and quiet arms inform about noisy
    ones; ``select`` needs ``sigma``. Costs K d^2 per round, and if randomised at most K^2 more.

    Parameters
    ----------
    information : "ucb" or "full"
        What an arm teaches of the arm a of the largest upper bound,
        :math:`\tfrac12\log(\|a\|_{V^{-1}}^2/\|a\|_{W^{-1}}^2),\ W = V + xx^\top/\rho^2`; or of the
        whole parameter, :math:`\tfrac12\log(1 + \|x\|_{V^{-1}}^2/\rho^2)`, which goes on
        learning what no choice depends on.
    randomised : bool
        Draw between two arms instead of playing the single best one.
    parameter_bound, noise_floor, ridge, delta, radius_scale
        As in `WeightedLeastSquaresUCB`.

    Examples
    --------
    Two arms equally wide, one of a tenth of the noise: it teaches more, so it is played.

    >>> policy = IDS(information="full")
    >>> state = policy.start(dim=2)
    >>> policy.select(state, np.eye(2), np.random.default_rng(0), sigma=[1.0, 0.1])
    1

    References
    ----------
    Kirschner and Krause (2018), "Information directed sampling and bandits with heteroscedastic
    noise": regret of at most beta sqrt(4 (rho^2 + A^2/(2 ridge)) T log det(V/(2 ridge))), rho the
    largest noise and A the longest arm, so never of larger order than that of optimism. This bound
    is recalled and not verified; the formulas above are checked by identities.
    """

    needs_sigma: ClassVar[bool] = True

    information: str = "ucb"
    randomised: bool = False
    parameter_bound: float = 1.0
    noise_floor: float = 0.05
    ridge: float = 0.5
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        one_of("information", self.information, ("ucb", "full"))
        flag("randomised", self.randomised)
        coerce_positive(self, "parameter_bound", "noise_floor", "ridge")
        check_optimism(self)

    def select(
        self, state: LinearState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return the arm of the least ratio, or one drawn from the law of the least ratio."""
        x = candidates(arms, state.dim)
        gap, gain = self.gaps(state, x), self.gains(state, x, spreads(sigma, len(x)))
        if not self.randomised:
            return first_best(-ratio(gap, gain))
        generator(rng)
        i, j, p = mixture(gap, gain)
        return i if rng.random() < p else j

    def gaps(self, state: LinearState, x: Array) -> Array:
        """Return D, the largest regret each arm can have."""
        upper = self.upper(state, x)
        return np.asarray(upper.max() - (2 * matmul(x, state.theta) - upper))

    def gains(self, state: LinearState, x: Array, sigma: Array) -> Array:
        """Return I, the information in a reward of each arm."""
        w2 = linear_state.widths(state, x) ** 2
        rho2 = np.maximum(sigma, self.noise_floor) ** 2
        if self.information == "full":
            return np.asarray(0.5 * np.log1p(w2 / rho2))
        top = first_best(self.upper(state, x))
        if w2[top] == 0:
            return np.zeros(len(x))
        # w^2 times the squared correlation with the top arm, at most w^2 whatever the rounding
        shared = np.minimum(matmul(matmul(x, state.inverse), x[top]) ** 2 / w2[top], w2)
        return np.asarray(0.5 * np.log1p(shared / (rho2 + (w2 - shared))))


def ratio(gap: Array, gain: Array) -> Array:
    """Return D^2/I: 0 where there is nothing to lose, else infinite where nothing is learnt."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(gap > 0, gap**2 / gain, 0.0)


def mixture(gap: Array, gain: Array) -> tuple[int, int, float]:
    """Return arms i, j and the probability of i that make (E D)^2 / E I least.

    On the segment from j to i the ratio is convex in p, so that it is least at an end or where its
    derivative vanishes. Of the two, i has the smaller gap: the draw does not depend on the order
    of the arms. Only arms that no other beats in gap and gain are looked at.

    >>> mixture(np.array([0.2, 1.0]), np.array([0.01, 1.0]))[:2]
    (0, 1)
    """
    front = efficient(gap, gain)
    gap, gain = gap[front], gain[front]
    a, c = gap[None, :], gain[None, :]
    b, e = gap[:, None] - a, gain[:, None] - c
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.clip(np.nan_to_num((e * a - 2 * b * c) / (e * b)), 0.0, 1.0)
    p = np.stack([np.ones_like(b), inner])
    value = ratio(a + b * p, c + e * p)
    value[:, b > 0] = np.inf  # the same pair the other way round
    at = first_best(-value.min(axis=0).ravel())
    i, j = divmod(at, len(gap))
    return int(front[i]), int(front[j]), float(p[int(value[1, i, j] < value[0, i, j]), i, j])


def efficient(gap: Array, gain: Array) -> NDArray[np.intp]:
    """Return the arms, in order, that no other equals or betters in both; of equals the first.

    >>> efficient(np.array([2.0, 1.0, 1.0, 3.0]), np.array([5.0, 4.0, 4.0, 5.0]))
    array([0, 1])
    """
    order = np.lexsort((-gain, gap))  # stable: equals stay in order
    sorted_gain = gain[order]
    more = np.append(True, sorted_gain[1:] > np.maximum.accumulate(sorted_gain)[:-1])
    return np.sort(order[more])
