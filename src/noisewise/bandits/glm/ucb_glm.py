"""UCB-GLM: maximum likelihood after a warm-up, one width for all links."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from numpy.random import Generator
from numpy.typing import ArrayLike

from ...inputs import coerce_positive, generator, integer
from ...model.glm import GLM
from ...numerics import linalg
from ...numerics.blas import matmul
from ...protocols import Array
from ...storage.states import FLAG, check_fields
from ..arms import candidates, first_best
from ..linear import linear_state
from .glm_ucb import EstimateAndDesign, GLMUCBState


@dataclass(eq=False, repr=False)
class UCBGLMState(GLMUCBState):
    """The estimate, and the arms played, of `UCBGLM`.

    ``warm`` says whether the least eigenvalue of V has reached A^2, without which there is no
    guarantee.
    """

    warm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, warm=FLAG)


@dataclass(frozen=True)
class UCBGLM(EstimateAndDesign[UCBGLMState]):
    r"""Play at random until the arms span, then :math:`\arg\max x\cdot\hat\theta +
    \alpha\|x\|_{V^{-1}}`.

    .. math:: V = \sum xx^\top,\qquad
              \alpha = \frac\sigma\kappa\sqrt{\frac d2\log(1 + 2T/d) + \log(1/\delta)}

    The estimate is that of maximum likelihood, by `FTRL`. The warm-up ends when the least
    eigenvalue of V is A^2 (``state.warm``), or after ``warmup`` rounds. Two things differ from the
    paper: the link is extended linearly, so that its slope stays above kappa, and a tiny ridge
    keeps V invertible. So kappa is the least slope on [-S, S], and not near the truth. The
    constants of alpha are recalled from the paper and not verified: once warm, 2 alpha is proved
    here (V is at least half of V + A^2 I), so ``radius_scale=2`` is safe. The reward's ``sigma`` is
    not used.

    Use it as the classical yardstick. Costs K d^2 per round, and the update of `FTRL`.

    Parameters
    ----------
    glm : GLM
    sigma : float > 0
        The sub-Gaussian scale of every reward; 1/2 for rewards in [0, 1].
    horizon : int
        T, the number of rounds that will be played.
    warmup : int, optional
        The most rounds played at random; 10 d by default.
    radius_scale : float >= 0
        Multiplies alpha.

    Examples
    --------
    One arm along each axis makes the least eigenvalue 1, and the warm-up is over:

    >>> policy = UCBGLM(GLM("logistic"), sigma=0.5)
    >>> state = policy.start(dim=2)
    >>> policy.update(state, [1.0, 0.0], 1.0)
    >>> state.warm
    False
    >>> policy.update(state, [0.0, 1.0], 0.0)
    >>> state.warm
    True

    References
    ----------
    Li, Lu and Zhou (2017), "Provably optimal algorithms for generalized linear contextual
    bandits": regret of order (K sigma/kappa) d sqrt(T) log T for independent contexts.
    """

    not_promised: ClassVar[tuple[str, ...]] = (
        "permuting arms permutes choices",
        "ties give the lowest index",
    )

    glm: GLM = field(default_factory=GLM)
    sigma: float = 1.0
    horizon: int = 10_000
    warmup: int | None = None
    ridge: float = 1e-6
    delta: float = 0.05
    radius_scale: float = 1.0

    def __post_init__(self) -> None:
        coerce_positive(self, "sigma")
        if self.warmup is not None:
            coerce_positive(self, "warmup", by=integer)
        super().__post_init__()

    def start(self, dim: int) -> UCBGLMState:
        """Make the state of a fresh learner."""
        return UCBGLMState(self.ftrl.start(dim), linear_state.start(dim, self.ridge))

    def radius(self, state: UCBGLMState) -> float:
        """Return alpha times ``radius_scale``, the same in all rounds."""
        d = state.dim
        inside = d / 2 * math.log1p(2 * self.horizon / d) + math.log(1 / self.delta)
        return self.radius_scale * self.sigma / self.glm.min_slope * math.sqrt(inside)

    def select(
        self, state: UCBGLMState, arms: ArrayLike, rng: Generator, sigma: ArrayLike | None = None
    ) -> int:
        """Return a random arm while cold, then that of the largest upper bound."""
        x = candidates(arms, state.dim, self.longest_arm)
        if not state.warm and state.count < (self.warmup or 10 * state.dim):
            generator(rng)
            return int(rng.integers(len(x)))
        return first_best(
            matmul(x, state.theta) + self.radius(state) * linear_state.widths(state.design, x)
        )

    def learn(self, state: UCBGLMState, x: Array, y: float, sigma: float) -> None:
        """Learn a checked reward, and whether the arms span by now."""
        super().learn(state, x, y, sigma)
        if not state.warm:
            least = linalg.smallest_eigenvalue(state.design.V) - 2 * self.ridge
            state.warm = least >= self.glm.feature_bound**2
