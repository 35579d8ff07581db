"""Rewards learnt once, and whole or not at all, though errors and interrupts come."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..bandits.arms import observation, observations
from ..bandits.self_tuned_ucb_state import SelfTunedUCBState
from ..forking import Inside
from ..ownership import Interrupted, refused
from ..progress import steps
from ..protocols import Policy, trait
from .action_features import Arms
from .decision_log import DecisionLog
from .experiment import Experiment
from .kinds import is_optimistic, is_theirs
from .observations import (
    Observations,
    is_key,
    parse,
    refuse_keys_as_features,
    refuse_unknown,
)
from .past_decisions import LearntTable, Names, Reader
from .pending import Batching, Pending
from .residuals import ResidualScale
from .reward_scale import Known, Row, prepare
from .slates import rewards_of

TOGETHER, WORK = 10_000, 2e8  # rows of a table in one call, and these times features^2
PATIENCE = 1.0  # seconds until a progress bar is shown


class Learning:
    """The half of an `Agent` that learns: its policy, the state, and how large rewards are."""

    policy: Policy[Any]
    state: Any
    dim: int
    sigma: float  # of a reward that comes without one
    scale: ResidualScale | None
    unit: float | None  # the largest reward, where it stands in for norm bounds
    rewards: tuple[float, float] | None
    arms: Arms | None
    record: DecisionLog
    experiment: Experiment | None
    _pending: Pending
    _longest: float
    _clips: bool  # whether the policy finds units of contexts, so that no number is too large
    _unfinished: str | None = None  # a `learn` that was interrupted once all was learnt
    _next: Known | None = None  # what is known once the reward in hand is learnt
    _lock: RLock

    def learn(
        self,
        arm_or_key: object,
        reward: ArrayLike,
        sigma: ArrayLike | None = None,
        trials: ArrayLike | None = None,
    ) -> None:
        """Learn the reward of a decision, once, or of an arm.

        Parameters
        ----------
        arm_or_key : key of a decision (None: the last one without a key), or features (dim,)
            Many at once: a list of keys, or features (n, dim), with ``reward`` of shape (n,). If
            any of them is refused, none is learnt.
        reward : float
            Of several actions, chosen by ``top``: a list of rewards in their order, None where one
            is still to come, or a dictionary by action. Each is learnt as a reward of its own.
        sigma : float >= 0, optional
            The standard deviation of the reward's noise. For binary rewards and shares, whose
            variance follows from their mean, it is relative to that of one trial: 1/sqrt(n) for n,
            so pass ``trials`` there and not a standard error.
        trials : float > 0, optional
            Instead: how many trials the reward is the mean of. One trial has the agent's sigma,
            that is 1 or the estimated one, and n have 1/sqrt(n) of it.
        """
        whose, y, sd, n = arm_or_key, reward, sigma, trials
        if self._pending.slates or self._pending.last[1]:
            each = rewards_of(self._pending, arm_or_key, reward, sigma, trials)
            whose, y, sd, n = each or (whose, y, sd, n)
        given = parse(whose, y, sd, n, self.rewards, self.dim)
        finished: list[bool] = []
        try:
            with self._lock, Inside(self):
                if given.single and isinstance(arm_or_key, list | tuple) and not given.keys:
                    refuse_keys_as_features(arm_or_key, self._pending.arms)
                self._learn(given, finished)
        except BaseException:
            if finished:  # an interrupt on the way out
                self._unfinished = given.content
            raise

    def learn_table(
        self,
        table: object,
        *,
        action: str = "action",
        reward: str = "reward",
        context: Sequence[str] | None = None,
        probability: str | None = None,
        sigma: str | None = None,
        trials: str | None = None,
        progress: bool | None = None,
    ) -> LearntTable:
        """Learn a table of past decisions, a row each, in order: a warm start.

        The agent is then what it would be had it taken these decisions itself and learnt each
        reward at once. Rows that can't be used are left out, counted by reason, with a warning. If
        an error or an interrupt comes, nothing was learnt. `compare` and `gain` do not count these
        rows, as the agent did not draw their actions.

        Parameters
        ----------
        table : data frame of pandas or polars, Arrow table, or dictionary of columns
            Such as a `log`.
        action, reward : names of columns
            Actions are those of the agent's `Arms`.
        context : names of columns, optional
            The fields of the context that were declared, in their order; by default the columns of
            their names. Without `Arms`: the features of the arm that was played, by default all
            other columns, or a column ``arms`` with the matrices on offer, as `log` has it.
        probability : name of a column, optional
            With which the action was taken, for agents that keep a record: the last decisions then
            enter it. Of more than two actions a column ``probabilities`` has those of all, as
            in `log`. Estimates do not depend on it.
        sigma, trials : names of columns, optional
            As for `learn`.
        progress : bool, optional
            Show a progress bar; by default on a terminal where tqdm is installed, after a second.

        Returns
        -------
        LearntTable
            How many rows were learnt, and how many were left out for which reason.

        Examples
        --------
        >>> import noisewise as nw
        >>> agent = nw.Agent.for_binary_rewards(arms=nw.Arms(["a", "b"], interactions=None))
        >>> agent.learn_table({"action": ["a", "b", "a", "b"] * 9, "reward": [0, 1, 0, 1] * 9})
        learnt 36 of 36 rows
        >>> agent.choose(None)
        'b'
        """
        if probability is not None and not self.record.capacity:
            raise ValueError(
                f"probability is {probability!r}, but decisions are not recorded; pass "
                "record=10_000 to the agent, or leave probability out: learning does without"
            )
        context = [context] if isinstance(context, str) else context
        past = Reader(
            table, Names(action, reward, context, probability, sigma, trials), self.arms, self.dim,
            clip=self._clips, rewards=self.rewards, longest=self._longest, sigma=self.sigma,
        )  # fmt: skip
        found, size = past.found, min(TOGETHER, 10 + int(WORK / self.dim**2))
        starts = steps(len(past.usable), size, progress, PATIENCE)
        with self._lock, Inside(self):
            self._count()  # which repairs what an interrupt has left
            if self.scale or self.unit is not None or not isinstance(self.policy, Batching):
                self._learn_on_copy((row, row[0]) for row in past.rows(starts, size))
                state = self.state
            else:
                state = self._copied_state()
                for x, y, sd, at in past.blocks(starts, size):
                    self.policy.update_many(state, x, y, sd, np.zeros(len(at), np.int64))
            vars(self).update(state=state, record=self.record.with_past(past.decisions))
        if found.rows and not found.learnt:
            raise ValueError(f"table has no row that can be learnt: {found}")
        if found.left_out:
            warnings.warn(str(found), stacklevel=2)
        return found

    def _learn(self, given: Observations, finished: list[bool]) -> None:
        if self._unfinished is not None and self._unfinished == given.content:
            finished.append(True)
            self._settle(given)
            self._unfinished = None
            return  # the same call was interrupted after all was learnt
        named = self.arms is not None
        remedy = "pass a pending key" if named else "pass the features of the arm"
        refuse_unknown(given.keys, self._pending.arms, remedy)
        before, self._next = self._count(), None
        try:
            if given.single:
                (row,) = self._rows(given)
                self._learn_row(row)
            else:
                self._learn_batch(given)
            self._settle(given)
            self._unfinished = None
            finished.append(True)
        except BaseException as error:
            lost = refused(error) or isinstance(self.state, Interrupted)
            if not lost and self._count() > before:  # the interrupt came later
                vars(self).update(self._next._asdict() if self._next else {})
                self._unfinished = given.content
                self._settle(given)
            raise

    def _rows(self, given: Observations) -> list[Row]:
        """Return features, reward, sd or None, and trials of each reward.

        They are checked, but for those that `update` checks: rewards of arms that were chosen.
        """
        arms = self._pending.arms
        if given.single and given.keys and self.scale is None and self.unit is None:
            return [(arms[given.keys[0]], given.rewards[0], given.sds[0], given.trials[0])]
        return [
            (*observation(x, y, 1.0, self.dim, self._longest)[:2], sd, n)
            for x, y, sd, n in given.rows(arms)
        ]

    def _settle(self, given: Observations) -> None:
        """Take decisions that have their rewards out of the pending ones; again is the same."""
        if self.record.capacity:
            for key, reward in zip(given.whose, given.rewards, strict=True):
                if is_key(key):
                    self.record.settle(key, reward)
        if self.experiment is not None:
            for key, reward in zip(given.whose, given.rewards, strict=True):
                if is_key(key):
                    self.experiment.settle(key, reward)
        if not given.single:  # each was released when its reward was learnt
            self._pending.drop(given.keys)
            return
        for key in given.keys:
            self._pending.remove(self.policy, self.state, key)

    def _learn_row(self, row: Row) -> None:
        """Learn one reward, and what follows from it for unit and scale."""
        if self.scale is None and self.unit is None:
            x, y, sd, n = row
            self.policy.update(self.state, x, y, self.sigma / math.sqrt(n) if sd is None else sd)
            return
        prepared = prepare(self.policy, self.state, row, self.sigma, self.unit, self.scale)
        if prepared is None:  # its past is reweighted
            self._learn_on_copy([(row, None)])
            return
        self._next, sigma = prepared
        self._next.policy.update(self.state, row[0], row[1], sigma)
        vars(self).update(self._next._asdict())

    def _learn_batch(self, given: Observations) -> None:
        """Learn many rewards in one call of the policy, where that can be."""
        if self.scale or self.unit is not None or not isinstance(self.policy, Batching):
            self._learn_on_copy(zip(self._rows(given), given.whose, strict=True))
            return
        y, new = np.array(given.rewards), self._pending.newest
        x = observations(given.features(self._pending.arms), y, self.dim, self._longest)
        counted = np.array([is_key(each) and each not in new for each in given.whose], np.int64)
        self.policy.update_many(self.state, x, y, given.spreads(self.sigma), counted)

    def _learn_on_copy(self, rows: Iterable[tuple[Row, Any]]) -> None:
        """Learn rewards on a copy of the state, which takes its place in one step."""
        state = self._copied_state()
        known = Known(self.policy, self.unit, self.scale)
        for row, key in rows:
            prepared = prepare(known.policy, state, row, self.sigma, *known[1:], copied=True)
            assert prepared is not None
            known, sigma = prepared
            known.policy.update(state, row[0], row[1], sigma)
            if is_key(key) and self._pending.counts(key):
                self.policy.release(state, row[0])  # type: ignore[attr-defined]
        vars(self).update(known._asdict(), state=state)

    def _copied_state(self) -> Any:
        cheap = is_theirs(self.state) or isinstance(self.state, SelfTunedUCBState)
        return self.state.copy() if cheap else copy.deepcopy(self.state)

    def _count(self) -> int:
        """Return how many rewards the policy has learnt, repaired first if it was interrupted."""
        if isinstance(self.state, SelfTunedUCBState):
            count: int = self.state.count
            return count
        if is_optimistic(self.policy):
            self.policy.mend(self.state)
        return trait(self.state, "count", 0)
