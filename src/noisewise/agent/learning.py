"""Rewards learnt once, and whole or not at all, though errors and interrupts come."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np

from ..bandits.arms import candidates, norm_bound, observation, observations
from ..bandits.self_tuned_ucb import SelfTunedUCB
from ..bandits.self_tuned_ucb_state import SelfTunedUCBState
from ..inputs import positive
from ..protocols import AnyPolicy, Array, trait
from ..support.ownership import Interrupted, refused
from ..support.progress import steps
from .explanations.reasons import means
from .kinds import Anticipating, Batching, is_ftrl_ucb, is_optimism_state, is_optimistic
from .record.past_decisions import Reader
from .rewards.observations import (
    Action,
    Key,
    Observations,
    PendingKey,
    is_key,
    owner,
    refuse_pending,
)
from .rewards.pending import Pending, slots_of
from .rewards.residuals import ResidualScale
from .rewards.reward_scale import RewardScaling, Row

SHARED = 32  # decisions of a batch whose arms share memory, given back with the last of them
TOGETHER, WORK = 10_000, 2e8  # rows of a table in one call, and these times features^2
PATIENCE = 1.0  # seconds until a progress bar is shown


class RewardLearner:
    """A policy with its state and the decisions whose rewards are pending.

    A policy that anticipates hears of a decision when the next one is taken: where rewards come
    at once it never does. So it counts all of them, or all but the newest. If it counts others, a
    call was interrupted, and `announce` repairs that.
    """

    def __init__(self, policy: AnyPolicy, dim: int, sigma: float | str) -> None:
        self.state: object = policy.start(dim)
        self.dim, self.pending = dim, Pending()
        self.longest = norm_bound(policy, "feature_bound") or math.inf
        self.clips = isinstance(policy, SelfTunedUCB) and policy.context > 0  # any large number
        self._anticipating = policy if isinstance(policy, Anticipating) else None
        self.batching = policy if isinstance(policy, Batching) else None
        self._next: RewardScaling | None = None  # once the reward in hand is learnt
        estimated = isinstance(sigma, str) and sigma == "estimated"
        self.sigma = 1.0 if estimated else positive("sigma", sigma)  # of a reward without one
        self.scaling = RewardScaling(policy, None, ResidualScale() if estimated else None)
        if estimated and is_ftrl_ucb(policy) and policy.noise == "estimated":
            raise ValueError(
                f"sigma is 'estimated', but {policy} estimates variances itself; leave sigma out"
            )
        if estimated and not self.predicts:
            raise ValueError(f"sigma is 'estimated', but {policy} predicts nothing; pass a number")

    @property
    def policy(self) -> AnyPolicy:
        """The policy, which may change with the size of rewards."""
        return self.scaling.policy

    @property
    def predicts(self) -> bool:
        """Whether the policy estimates means."""
        return means(self.policy, self.state, np.zeros((1, self.dim))) is not None

    def announce(self, arms: Array | None = None, successor: Key = "") -> None:
        """Let the policy count all pending decisions, unless it would refuse these arms.

        The newest is left out where it has no key, and neither has its ``successor``: then it is
        about to be given up.
        """
        policy, pending = self._anticipating, self.pending
        if arms is not None and pending.newest:
            candidates(arms, self.dim, self.longest)
        if policy is None:
            return
        if self._miscounted():
            self._count_again(policy)
        if successor is None and pending.newest and owner(pending.newest[0]) is None:
            return
        for key in pending.newest:
            if key in pending.arms:
                policy.expect(self.state, pending.arms[key])
            pending.newest = pending.newest[1:]

    def refuse_pending(self, keys: list[Key]) -> None:
        """Raise if a key is pending already, or is there twice."""
        refuse_pending(keys, self.pending.arms)
        if self.pending.slates:
            refuse_pending(keys, self.pending.slates)

    def add(self, key: Key, arm: Array) -> None:
        """Add a decision, of which the policy does not know yet."""
        self.pending.newest = (key,)
        self.pending.arms[key] = arm

    def add_slate(self, key: Key, actions: tuple[Action, ...], arms: list[Array]) -> None:
        """Add the actions of one decision, of which the policy does not know yet."""
        pending = self.pending
        pending.slates[key] = actions
        pending.newest = slots_of(key, actions)
        pending.arms.update(zip(pending.newest, arms, strict=True))

    def add_many(self, keys: list[Key], arms: Array) -> None:
        """Add decisions, of which the policy knows all but the last."""
        parts = (arms[i : i + SHARED].copy() for i in range(0, len(arms), SHARED))
        self.pending.newest = (keys[-1],)
        self.pending.arms.update(zip(keys, chain.from_iterable(parts), strict=True))

    def give_up(self, key: Key) -> list[PendingKey]:
        """Take a decision out whose reward will never come; return what was pending of it."""
        pending = self.pending
        slots = pending.slots(key)
        for slot in slots:
            self._release(slot)
        pending.slates.pop(key, None)
        if pending.newest and owner(pending.newest[0]) == key:
            pending.newest = ()
        return slots

    def _release(self, key: PendingKey) -> None:
        """Take an action out, and let the policy count it no more unless it already does not."""
        policy, pending = self._anticipating, self.pending
        if key not in pending.arms:
            return
        if policy is not None and key not in pending.newest and not self._miscounted():
            policy.release(self.state, pending.arms[key])
        del pending.arms[key]
        if pending.newest == (key,):
            pending.newest = ()

    def _miscounted(self) -> bool:
        """Whether an interrupt has come between a decision and its being counted."""
        state, pending = self.state, self.pending
        if not isinstance(state, SelfTunedUCBState):
            return False
        newest = [key for key in pending.newest if key in pending.arms]
        return state.pending != len(pending.arms) - len(newest)

    def _count_again(self, policy: Anticipating) -> None:
        if isinstance(self.state, SelfTunedUCBState):
            for x in self.state.pending_arms:
                policy.release(self.state, x)
        self.pending.newest = ()
        for x in self.pending.arms.values():
            policy.expect(self.state, x)

    def restore(
        self, state: object, pending: Pending, unit: float | None, scale: ResidualScale | None
    ) -> None:
        """Go on from what a file holds."""
        policy = self.policy
        if unit is not None and not (is_ftrl_ucb(policy) and policy.glm.linear):
            raise ValueError(f"{policy} has no unit of rewards")
        if scale is not None and not self.predicts:
            raise ValueError(f"{policy} predicts nothing, but has a scale of residuals")
        self.state, self.pending = state, pending
        self.scaling = RewardScaling(policy, unit, scale)
        if self._anticipating is not None:
            self.check_pending()

    def check_pending(self) -> None:
        """Raise unless the policy counts all pending decisions and no other."""
        if isinstance(self.state, SelfTunedUCBState):
            counted = self.state.pending_arms
            own = np.array(list(self.pending.arms.values())).reshape(-1, counted.shape[1])
            if not np.array_equal(_sorted(counted), _sorted(own)):
                raise ValueError("the policy counts other decisions than those that are pending")

    def learn(self, observed: Observations, record: Callable[[], None]) -> None:
        """Learn rewards, then ``record`` them, also if an interrupt comes between the two."""
        before, self._next = self._count(), None
        try:
            if observed.single:
                self._learn_row(self._row(observed))
            else:
                self._learn_batch(observed)
            record()
            self.release(observed)
        except BaseException as error:
            lost = refused(error) or isinstance(self.state, Interrupted)
            if not lost and self._count() > before:  # the interrupt came later
                self.scaling = self._next or self.scaling
                record()
                self.release(observed)
            raise

    def release(self, observed: Observations) -> None:
        """Take decisions that have their rewards out of the pending ones; again is the same."""
        if not observed.single:  # each was released when its reward was learnt
            self.pending.drop(observed.keys)
            return
        for key in observed.keys:
            self._release(key)

    def after_table(self, past: Reader, progress: bool | None) -> RewardLearner:
        """Return a learner that has learnt a table, too, with the same pending decisions."""
        self._count()  # which repairs what an interrupt has left
        size = min(TOGETHER, 10 + int(WORK / self.dim**2))
        starts = steps(len(past.usable), size, progress, PATIENCE)
        twin, policy = copy.copy(self), self.batching
        if policy is None or not self.scaling.fixed:
            rows = ((row, row[0]) for row in past.rows(starts, size))
            twin.scaling, twin.state = self._learnt_on_copy(rows)
            return twin
        twin.state = _copied(self.state)
        for x, y, sd, at in past.blocks(starts, size):
            policy.update_many(twin.state, x, y, sd, np.zeros(len(at), np.int64))
        return twin

    def _row(self, observed: Observations) -> Row:
        """Return features, reward, sd or None, and trials of a single reward.

        They are checked, but for those that `update` checks: the reward of an arm that was chosen.
        """
        _, unit, scale = self.scaling
        if observed.keys and unit is None and scale is None:
            key = observed.keys[0]
            return self.pending.arms[key], observed.rewards[0], observed.sds[0], observed.trials[0]
        return self._rows(observed)[0]

    def _rows(self, observed: Observations) -> list[Row]:
        return [
            (*observation(x, y, 1.0, self.dim, self.longest)[:2], sd, n)
            for x, y, sd, n in observed.rows(self.pending.arms)
        ]

    def _learn_row(self, row: Row) -> None:
        """Learn one reward, and what follows from it for unit and scale."""
        policy, unit, scale = self.scaling
        if unit is None and scale is None:
            x, y, sd, n = row
            policy.update(self.state, x, y, self.sigma / math.sqrt(n) if sd is None else sd)
            return
        scaled = self.scaling.after(self.state, row, self.sigma)
        if scaled is None:  # its past is reweighted
            scaling, state = self._learnt_on_copy([(row, row[0])])
            vars(self).update(scaling=scaling, state=state)
            return
        self._next, sigma = scaled
        self._next.policy.update(self.state, row[0], row[1], sigma)
        self.scaling = self._next

    def _learn_batch(self, observed: Observations) -> None:
        """Learn many rewards in one call of the policy, where that can be."""
        policy = self.batching
        if policy is None or not self.scaling.fixed:
            rows = zip(self._rows(observed), observed.whose, strict=True)
            scaling, state = self._learnt_on_copy(rows)
            vars(self).update(scaling=scaling, state=state)
            return
        y, newest = np.array(observed.rewards), self.pending.newest
        x = observations(observed.features(self.pending.arms), y, self.dim, self.longest)
        counted = [is_key(each) and each not in newest for each in observed.whose]
        spreads = observed.spreads(self.sigma)
        policy.update_many(self.state, x, y, spreads, np.array(counted, np.int64))

    def _learnt_on_copy(self, rows: Iterable[tuple[Row, object]]) -> tuple[RewardScaling, object]:
        """Learn rewards, each with its key or features, on a copy of the state; return that."""
        scaling, state = self.scaling, _copied(self.state)
        policy, pending = self._anticipating, self.pending
        for row, whose in rows:
            scaled = scaling.after(state, row, self.sigma, copied=True)
            assert scaled is not None
            scaling, sigma = scaled
            scaling.policy.update(state, row[0], row[1], sigma)
            counted = is_key(whose) and whose in pending.arms and whose not in pending.newest
            if policy is not None and counted:
                policy.release(state, row[0])
        return scaling, state

    def _count(self) -> int:
        """Return how many rewards the policy has learnt, repaired first if it was interrupted."""
        state = self.state
        if isinstance(state, SelfTunedUCBState):
            return state.count
        if is_optimistic(self.policy) and is_optimism_state(state):
            self.policy.mend(state)
        return trait(state, "count", 0)


def _copied(state: object) -> object:
    if is_optimism_state(state) or isinstance(state, SelfTunedUCBState):
        return state.copy()
    return copy.deepcopy(state)


def _sorted(rows: Array) -> Array:
    return rows[np.lexsort(rows.T)]
