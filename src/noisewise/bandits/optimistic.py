"""Optimism over FTRL: a policy that chooses and learns by an index, and repairs its state."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..confidence import Ellipsoid
from ..glm import GLM
from ..inputs import as_contiguous
from ..kernels.policy_params import CURVATURE, PARAMETER
from ..ownership import Owned, refused
from ..protocols import Array, BanditRounds
from ..regression import solver
from ..regression.ftrl import FTRL
from ..regression.moving import rebound
from .arms import block, candidates, first_best, in_form, observation
from .optimism_state import NO_ARMS, FixedArms, OptimismState


class OptimisticIndex:
    """How arms are ranked and weighted rewards learnt: what stands behind FTRLUCB and MORUCB."""

    glm: GLM
    compiled: bool  # whether the kernels know how to learn for it

    @property
    def size(self) -> tuple[int, int]:
        """The number of layers, and of ellipsoids in all."""
        raise NotImplementedError

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        raise NotImplementedError

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the index of every arm, the arms having been checked."""
        raise NotImplementedError

    def choose(self, state: OptimismState, arms: Array, fixed: FixedArms | None = None) -> int:
        """Return the best arm by the kernels; -1 where they do not serve or the arms are bad."""
        raise NotImplementedError

    def teach(
        self, state: OptimismState, place: int, x: Array, y: float, w: float, fixed: FixedArms
    ) -> int:
        """Let a layer learn a reward by the kernels; return their status."""
        raise NotImplementedError

    def renew(self, state: OptimismState, place: int) -> None:
        """Bring what is made of a layer up to date with it."""
        raise NotImplementedError

    def confidence(self, state: OptimismState) -> tuple[Ellipsoid, ...]:
        """Return sets that hold the parameter together."""
        raise NotImplementedError

    def learnt(self, state: OptimismState) -> int:
        """Return how many rewards the layers have learnt."""
        return state.layers[0].count

    def learn(self, state: OptimismState, place: int, x: Array, y: float, w: float) -> None:
        """Let a layer learn a checked reward readably."""
        layer = state.layers[place]
        curvature = w * float(self.glm.slope(x @ layer.views.anchor))
        FTRL(self.glm).update(layer, x, y, w)
        state.numbers[place, CURVATURE] += curvature
        self.renew(state, place)

    def attend(self, state: OptimismState, place: int, fixed: FixedArms) -> None:
        """Do what the kernels have asked for after a reward."""
        with Mending(self, state):
            solver.settle(self.glm, state.layers[place])
            self.renew(state, place)
        each = len(state.forms.radii) // len(state.layers)
        fixed.renew(state, slice(each * place, each * (place + 1)))

    def rebound(self, state: OptimismState) -> None:
        """Let a state of another bound on the parameter follow that of the model."""
        state.numbers[0, PARAMETER] = self.glm.parameter_bound
        rebound(self.glm, state.layers[0])
        self.renew(state, 0)

    def repair(self, state: OptimismState) -> None:
        """Bring a state to rest that was interrupted: layers first, then what is made of them."""
        for layer in state.layers:
            solver.settle(self.glm, layer)
        if state.begun is not None:
            x, y, counts = state.begun
            left = [place for place, n in counts.items() if state.layers[place].count == n]
            for place in left if len(left) < len(counts) else ():  # the others have learnt it
                FTRL(self.glm).update(state.layers[place], x, y)
            state.begun = None
        state.rounds = self.learnt(state)
        for place in range(len(state.layers)):
            self.renew(state, place)


class Mending:
    """A policy's state while it is written outside the kernels: by one thread, and marked stale.

    A kernel learns a reward in one step; all else may be interrupted, and is repaired when the
    state is used next.
    """

    def __init__(self, index: OptimisticIndex, state: OptimismState) -> None:
        self.index, self.state, self.owned = index, state, Owned(state)

    def __enter__(self) -> None:
        self.owned.__enter__()
        try:
            stale, self.state.stale = self.state.stale, True
            if stale:
                self.index.repair(self.state)
        except BaseException:
            self.owned.__exit__()
            raise

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            self.state.stale = error is not None and not refused(error)
        finally:
            self.owned.__exit__()


class OptimisticPolicy:
    """What MORUCB and FTRLUCB share: by the kernels where these serve, else readably."""

    glm: GLM

    @property
    def ranking(self) -> OptimisticIndex:
        """The index that is maximised."""
        raise NotImplementedError

    def start(self, dim: int) -> OptimismState:
        """Make the state of a fresh learner."""
        return self.ranking.start(dim)

    def select(
        self,
        state: OptimismState,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Return the arm of the largest index; nothing is random."""
        if state.stale:
            self.mend(state)
        if block(arms, state.shape[0]):
            k = self.ranking.choose(state, arms)
            if k >= 0:
                return k
        return first_best(self.index(state, candidates(arms, state.dim, self.glm.feature_bound)))

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the index of every arm."""
        return self.ranking.index(state, x)

    def confidence(self, state: OptimismState) -> tuple[Ellipsoid, ...]:
        """Return sets that hold the parameter together, for all rounds, with 1 - delta."""
        return self.ranking.confidence(state)

    def check_state(self, state: OptimismState) -> None:
        """Raise unless the state has as many layers and ellipsoids as the policy writes."""
        found, wanted = (len(state.layers), len(state.forms.radii)), self.ranking.size
        if found != wanted:
            raise ValueError(
                f"the state has {found[0]} layers and {found[1]} ellipsoids and {self} has "
                f"{wanted[0]} and {wanted[1]}; pass a state that this policy started"
            )
        state.suits = self.ranking

    def mend(self, state: OptimismState) -> None:
        """Repair a state whose update was interrupted."""
        if state.stale:
            with Mending(self.ranking, state):
                pass

    def update(
        self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float = 1.0
    ) -> None:
        """Learn a reward, weighed by its noise."""
        try:
            if not in_form(arm, reward, sigma, state.shape):
                arm, reward, sigma = self._observed(state, arm, reward, sigma)
            if state.stale or not self._teach(state, arm, reward, sigma):
                row = self._observed(state, arm, reward, sigma)
                with Mending(self.ranking, state):
                    self._learn(state, *row)
        except BaseException as error:
            if not refused(error):
                state.stale = True
            raise

    def _observed(
        self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float
    ) -> tuple[Array, float, float]:
        return observation(arm, reward, sigma, state.dim, self.glm.feature_bound)

    def _learn(self, state: OptimismState, x: Array, y: float, sd: float) -> None:
        """Learn a checked reward readably, or raise."""
        raise NotImplementedError

    def _teach(
        self, state: OptimismState, x: Array, y: float, sd: float, fixed: FixedArms = NO_ARMS
    ) -> bool:
        """Learn by the kernels where they serve; return whether that is done."""
        raise NotImplementedError

    def play(
        self, state: OptimismState, rounds: BanditRounds, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Play all rounds; arms that stay have their quadratic forms changed by rank one."""
        self.mend(state)
        try:
            return self._play(state, rounds, rng)
        except BaseException as error:
            if not refused(error):
                state.stale = True
            raise

    def _play(
        self, state: OptimismState, rounds: BanditRounds, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        played = np.empty(len(rounds.means), dtype=np.int64)
        fixed, choose = None, self.ranking.choose
        if rounds.arms.ndim == 2 and state.kernels is not None:
            arms = candidates(as_contiguous(rounds.arms), state.dim, self.glm.feature_bound)
            fixed = FixedArms(arms, len(state.forms.radii))
            fixed.renew(state)
        for t, rewards in enumerate(rounds.rewards.tolist()):
            if fixed is not None:
                arms = fixed.arms
            else:
                arms = rounds.arms if rounds.arms.ndim == 2 else rounds.arms[t]
            k = -1 if fixed is None else choose(state, arms, fixed)
            if k < 0:
                k = self.select(state, arms, rng)
            sigma = float(rounds.sigma[t] if rounds.sigma.ndim == 1 else rounds.sigma[t, k])
            if fixed is None or not self._teach(state, arms[k], rewards[k], sigma, fixed):
                self.update(state, arms[k], rewards[k], sigma)
                if fixed is not None:
                    fixed.renew(state)
            played[t] = k
        return played
