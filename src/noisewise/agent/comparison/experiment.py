"""What an agent keeps of its decisions to compare groups of them: few sums, whatever their number.

Decisions count in the order in which they were taken, not in that of their rewards: successes often
come sooner than failures. So a decision counts once it and all earlier ones have their reward, or
were forgotten.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...inputs import finite
from ...protocols import Array
from ...storage.states import COUNT, check_fields
from ...support.printing import OneLine
from ..actions.action_features import Arms
from ..actions.offers import Offer
from ..actions.randomisation import AMONG, Randomisation
from ..rewards.observations import PendingKey, is_key
from .group_rewards import Bounds, GroupRewards
from .subject_rewards import SubjectRewards

BATCH = 1024  # rewards that are kept until they are summed
AGENT, BASELINE = 0, 1


class Assignment(NamedTuple):
    """Who decided, for which action with which probability, and the subject's hash.

    The action is -1 where it is none that is compared, and the probability 0 where the action was
    not drawn from all of these.
    """

    group: int
    action: int
    probability: float
    subject: int | None


@dataclass(eq=False, repr=False)
class ExperimentState(OneLine):
    """What a file holds: sums, and decisions from the first pending one on."""

    plain: GroupRewards | None
    drawn: GroupRewards | None
    groups: GroupRewards | None
    subjects: SubjectRewards | None
    waiting: list[tuple[PendingKey, int, int, float, int | None, float | None]]
    given_up: int
    partial: int

    def __post_init__(self) -> None:
        check_fields(self, waiting=list, given_up=COUNT, partial=COUNT)
        for name in ("plain", "drawn", "groups", "subjects"):
            if vars(self)[name] is not None:
                kind = SubjectRewards if name == "subjects" else GroupRewards
                check_fields(self, **{name: kind})
        if not all(map(self._fits, self.waiting)):
            raise ValueError("ExperimentState.waiting holds what is no decision")

    def _fits(self, each: object) -> bool:
        if not isinstance(each, tuple) or len(each) != 6:
            return False
        key, group, action, p, subject, reward = each
        whole = all(type(n) is int for n in (group, action, subject or 0))
        fits = whole and is_key(key) and group in (0, 1) and 0 <= finite("probability", p) <= 1
        kept = self.plain or self.drawn
        fits = fits and -1 <= action < (len(kept.totals) if kept else 0)
        fits = fits and (subject is None or -(2**63) <= subject < 2**63)
        return fits and (reward is None or finite("reward", reward) is not None)


class Experiment:
    """Compares actions, and the agent with its holdout, where these are not None.

    Actions are compared by their own rewards (``plain``), without a context, and by weighted ones
    (``drawn``). The agent and its holdout are ``groups`` of decisions, or of ``subjects`` once a
    decision has one.
    """

    def __init__(self, state: ExperimentState, share: float, capacity: int) -> None:
        self.plain, self.drawn = state.plain, state.drawn
        self.groups, self.subjects = state.groups, state.subjects
        self.share, self.capacity = share, capacity
        self.given_up, self.partial = state.given_up, state.partial
        self._waiting: dict[int, tuple[Assignment, float | None] | None] = {}
        self._keys: dict[PendingKey, int] = {}
        # decisions are numbered: up to `_summed` in the sums, then counted ones, which have their
        # reward or None, then the first without a reward, and up to `_next` all others
        self._next = self._first = self._summed = 0
        for key, group, action, p, subject, reward in state.waiting:
            if reward is None:
                self._keys[key] = self._next
            self._waiting[self._next] = Assignment(group, action, p, subject), reward
            self._next += 1

    @classmethod
    def of(
        cls, arms: Arms | None, randomisation: Randomisation, share: float,
        limits: tuple[float, float] | None, capacity: int,
    ) -> "Experiment | None":  # fmt: skip
        """Return an experiment without decisions, None where there is nothing to compare."""
        plain = drawn = groups = None
        if arms is not None and not (arms.interactions and arms.context):
            plain = GroupRewards.of(len(arms.actions), 0.0, limits)
        if arms is not None and randomisation.share and randomisation.among == AMONG[1]:
            K = len(arms.actions)
            drawn = GroupRewards.of(K, randomisation.share / K, limits)
        if share:
            groups = GroupRewards.of(2, min(share, 1 - share), limits)
        if plain is drawn is groups is None:
            return None
        return cls(ExperimentState(plain, drawn, groups, None, [], 0, 0), share, capacity)

    def check_subjects(self, subjects: Sequence[int | None], slates: bool) -> None:
        """Raise where some decisions have a subject and others none.

        Several actions chosen together are assigned together, as those of a subject.
        """
        if not self.share:
            return
        if len({each is None for each in subjects}) > 1:
            raise ValueError("subjects holds None beside others; pass one with every decision")
        missing = subjects[0] is None and not slates
        begun = self._next or self.groups is None or self.groups.count
        if begun and missing != (self.subjects is None):
            raise ValueError(
                f"subject is {'None' if missing else 'given'}, but earlier decisions "
                f"have {'one' if missing else 'none'}; pass one with every decision, or "
                "with none"
            )

    @property
    def actions(self) -> int:
        """The number of actions that are compared."""
        sums = self.plain or self.drawn
        return len(sums.totals) if sums else 0

    def decide(
        self,
        key: PendingKey,
        offer: Offer,
        k: int,
        p: Array | None,
        subject: int | None,
        baseline: bool = False,
    ) -> None:
        """Keep that arm ``k`` is played, where the agent's own probabilities were ``p``."""
        action, probability = -1, 0.0
        if offer.names and offer.positions[k] < self.actions:
            action = offer.positions[k]
            if p is not None and not baseline and {*offer.positions} == {*range(self.actions)}:
                probability = float(p[k])
        self.assign(key, baseline, subject, action, probability)

    def assign(
        self,
        key: PendingKey,
        baseline: bool,
        subject: int | None,
        action: int = -1,
        probability: float = 0.0,
    ) -> None:
        """Keep a decision; one that is pending under the same key never gets its reward."""
        self.forget(key)
        if subject is not None and self.groups is not None:
            self.groups, self.subjects = None, SubjectRewards.empty()
        group = BASELINE if baseline else AGENT
        self._keys[key] = self._next
        self._waiting[self._next] = Assignment(group, action, probability, subject), None
        self._next += 1
        if self._next - self._first > self.capacity:
            self._pass(self._first)

    def record_reward(self, key: PendingKey, reward: float) -> None:
        """Keep the reward of a decision; again is the same."""
        at = self._keys.get(key, -1)
        entry = self._waiting.get(at)
        if entry is not None:
            self._waiting[at] = entry[0], reward
        self._keys.pop(key, None)
        self._advance()  # also where an interrupted call is repeated

    def forget(self, key: PendingKey) -> None:
        """Count no decision that never gets its reward."""
        at = self._keys.get(key, -1)
        if self._waiting.get(at) is not None:
            self._pass(at)
        self._keys.pop(key, None)

    def _pass(self, at: int) -> None:
        self.given_up += 1
        self._waiting[at] = None
        self._next = max(self._next, at + 1)  # where `assign` was interrupted
        self._advance()

    def _advance(self) -> None:
        """Count decisions up to the first that waits for its reward."""
        while self._first < self._next:
            entry = self._waiting[self._first]
            if entry is not None and entry[1] is None:
                break
            self._first += 1
        if self._first - self._summed >= BATCH:
            self._sum()

    def _sum(self) -> None:
        """Add rewards to the sums, all at once."""
        first = self._first
        if self._summed == first:
            return
        counted = filter(None, (self._waiting[at] for at in range(self._summed, first)))
        rows = [(assignment, float(r)) for assignment, r in counted if r is not None]
        plain, drawn, groups, subjects = self.plain, self.drawn, self.groups, self.subjects
        partial = self.partial
        actions = np.array([d.action for d, _ in rows], dtype=np.int64)
        p = np.array([d.probability for d, _ in rows])
        rewards = np.array([r for _, r in rows])
        if plain is not None:
            own = actions >= 0
            plain = plain.after(actions[own], p[own], rewards[own])
        if drawn is not None:
            own = p > 0
            drawn = drawn.after(actions[own], p[own], rewards[own])
            partial += len(rows) - int(own.sum())
        if groups is not None:
            group = np.array([d.group for d, _ in rows], dtype=np.int64)
            p = np.where(group == BASELINE, self.share, 1 - self.share)
            groups = groups.after(group, p, rewards)
        if subjects is not None:
            subjects = subjects.after((d.subject or 0, d.group, r) for d, r in rows)
        left = {at: each for at, each in self._waiting.items() if at >= first}
        vars(self).update(
            plain=plain, drawn=drawn, groups=groups, subjects=subjects, partial=partial,
            _waiting=left, _summed=first,
        )  # fmt: skip

    def compare(self, a: int, b: int, steady: bool, delta: float) -> tuple[Bounds, Array]:
        """Return the means of two actions, an interval of the difference, and decisions of each."""
        self._sum()
        kept = self.plain if steady else self.drawn
        assert kept is not None
        return kept.bounds(a, b, delta), kept.totals[[a, b], 0]

    def gain(self, delta: float) -> Bounds:
        """Return the means of agent and holdout, and an interval of their difference."""
        self._sum()
        if self.subjects is not None:
            return self.subjects.bounds(delta)
        assert self.groups is not None
        return self.groups.bounds(AGENT, BASELINE, delta)

    @property
    def waiting(self) -> tuple[int, int]:
        """Numbers of decisions without a reward, and of rewards that wait for an earlier one."""
        kept = [each for at, each in self._waiting.items() if at >= self._first]
        rewards = [each[1] for each in kept if each is not None]
        return rewards.count(None), sum(each is not None for each in rewards)

    def saved(self) -> ExperimentState:
        """Return what a file holds."""
        self._sum()
        names = {at: key for key, at in self._keys.items()}
        waiting = [
            (names.get(at), *each[0], each[1])
            for at, each in self._waiting.items()
            if each is not None
        ]
        return ExperimentState(
            self.plain,
            self.drawn,
            self.groups,
            self.subjects,
            waiting,
            self.given_up,
            self.partial,
        )


def restored(fresh: Experiment | None, state: ExperimentState | None) -> Experiment | None:
    """Return the experiment of a file, if it is of an agent whose own would be ``fresh``."""
    if fresh is None or state is None:
        if (fresh is None) != (state is None):
            raise ValueError("its experiment does not belong to its agent")
        return None
    same = _alike(fresh.plain, state.plain) and _alike(fresh.drawn, state.drawn)
    if state.subjects is None:
        same = same and _alike(fresh.groups, state.groups)
    elif state.groups is not None or fresh.groups is None:
        same = False
    if not same:
        raise ValueError("its experiment does not belong to its agent")
    return Experiment(state, fresh.share, fresh.capacity)


def _alike(one: GroupRewards | None, two: GroupRewards | None) -> bool:
    """Whether two compare in the same way; actions may have come later."""
    if one is None or two is None:
        return one is two
    fits = len(two.totals) <= len(one.totals) and one.limits == two.limits
    return fits and (not one.least) == (not two.least)
