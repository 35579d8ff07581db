"""Optimism over FTRL: a policy that chooses and learns by an index, and repairs its state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...confidence import Ellipsoid
from ...inputs import as_contiguous
from ...model.glm import GLM
from ...protocols import Array, BanditRounds
from ...regression.ftrl.ftrl import FTRL
from ...simulate import turns
from ...support.ownership import refused
from ..arms import block, candidates, first_best, in_form, observation
from .guaranteed_index import GuaranteedIndex
from .optimism_state import NO_ARMS, FixedArms, OptimismState
from .reward_weights import RewardWeights


class OptimisticPolicy:
    """What MORUCB and FTRLUCB share; they say what ``ranking`` and ``weights`` are theirs."""

    glm: GLM
    ranking: GuaranteedIndex
    weights: RewardWeights

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
        if state.busy:
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
        layers, each = len(self.ranking.noises), self.ranking.ellipsoids
        found, wanted = (len(state.layers), len(state.forms.radii)), (layers, layers * each)
        if found != wanted:
            raise ValueError(
                f"the state has {found[0]} layers and {found[1]} ellipsoids and {self} has "
                f"{wanted[0]} and {wanted[1]}; pass a state that this policy started"
            )

    def mend(self, state: OptimismState) -> None:
        """Repair a state whose update was interrupted."""
        if state.busy:
            with self.ranking.writing(state):
                pass

    def update(
        self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float = 1.0
    ) -> None:
        """Learn a reward, weighed by its noise."""
        try:
            if not in_form(arm, reward, sigma):
                arm, reward, sigma = self._observed(state, arm, reward, sigma)
            if state.busy or not self._learn_compiled(state, arm, reward, sigma):
                row = self._observed(state, arm, reward, sigma)
                with self.ranking.writing(state):
                    self._learn_in_python(state, *row)
                state.fixed.renew(state)
        except BaseException as error:
            if not refused(error):
                state.busy = 1.0
            raise

    def _observed(
        self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float
    ) -> tuple[Array, float, float]:
        return observation(arm, reward, sigma, state.dim, self.glm.feature_bound)

    def _learn_compiled(self, state: OptimismState, x: Array, y: float, sd: float) -> bool:
        """Learn by the kernels where they serve; return whether that is done."""
        kernels, index, weights = state.kernels, self.ranking, self.weights
        if kernels is None or sd > weights.most:
            return False
        if state.checked_for is not index:
            self.check_state(state)
            if not index.compiled:
                return False
            state.checked_for = index
        w, variance, first = weights.of(state, x, y, sd), state.variance, 0
        if index.split is not None:
            first = index.layer_indices(state, x, y, sd)[0]
            if state.forms.radii[index.ellipsoids * first] == math.inf:  # its first reward
                return False
        before = x if variance is None else state.theta
        status = index.learn_compiled(state, first, x, y, w)
        if status == kernels.BAD:
            return False
        if variance is not None:
            weights.learn(state, x, y, before)
        state.rounds += 1
        if status != kernels.DONE:
            index.handle_request(state, first)
        if index.nested:
            for place in range(first + 1, len(state.layers)):
                status = index.learn_compiled(state, place, x, y, w)
                if status == kernels.BAD:  # though the first layer has learnt it
                    FTRL(self.glm).update(state.layers[place], x, y, w)
                if status != kernels.DONE:
                    index.handle_request(state, place)
            state.begun = None
        return True

    def _learn_in_python(self, state: OptimismState, x: Array, y: float, sd: float) -> None:
        """Learn a checked reward readably, or raise."""
        index, weights = self.ranking, self.weights
        w, before = weights.of(state, x, y, sd), x if state.variance is None else state.theta
        for place in index.layer_indices(state, x, y, sd):
            index.learn_in_python(state, place, x, y, w)
        weights.learn(state, x, y, before)
        state.clipped += sd > weights.most
        state.rounds += 1
        state.begun = None

    def play(
        self, state: OptimismState, rounds: BanditRounds, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Play all rounds; arms that stay have their quadratic forms changed by rank one."""
        self.mend(state)
        if rounds.arms.ndim == 2 and state.kernels is not None:
            arms = candidates(as_contiguous(rounds.arms), state.dim, self.glm.feature_bound)
            rounds = replace(rounds, arms=arms)
            state.fixed = FixedArms(arms, len(state.forms.radii))
            state.fixed.renew(state)
        try:
            played = (k for _, _, k in turns(self, state, rounds, rng))
            return np.fromiter(played, np.int64, len(rounds.means))
        finally:
            state.fixed = NO_ARMS
