"""The verbs `gain` and `compare` of an agent, and what of a decision they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any

from ..forking import Inside
from ..inputs import flag, probability, shown
from ..printing import count_of
from ..protocols import Array
from .action_features import Arms
from .context_fields import word
from .difference import ALWAYS, LATER, Difference, notes_of
from .experiment import AGENT, BASELINE, Decision, Experiment
from .group_rewards import Bounds
from .holdout import Holdout
from .offers import Offer
from .randomisation import Randomisation

DRAWN = "the random draw of decisions"
STEADY = "each action earning the same on average at all times"
BOUNDED = "rewards within [{:g}, {:g}]"
FREE = "so many rewards of finite variance that means are about normal"
SUBJECTS = (
    "subjects that do not influence each other, and so many of them that means are about normal"
)


class Comparing:
    """The part of an `Agent` that compares it with its holdout, and actions with each other."""

    arms: Arms | None
    rewards: tuple[float, float] | None
    holdout: Holdout
    experiment: Experiment | None
    randomisation: Randomisation
    _lock: RLock

    def gain(self, delta: float = 0.05) -> Difference:
        r"""Return how much more the agent earns per decision than its baseline.

        Where the agent was created with ``baseline=`` and ``holdout=``, the holdout says what would
        be earned without it. Its interval holds at all times at once: look as often as you like,
        and stop when you have seen enough. It covers the average gain over the decisions so far,
        whatever the agent has learnt and however rates have moved meanwhile. For rewards with a
        known range it is proved, by betting; for others, and where decisions have a ``subject``, it
        is approximate. With subjects the interval is over subjects.

        Parameters
        ----------
        delta : float, in (0, 1)
            The probability that the interval ever misses.

        Returns
        -------
        Difference
            Prints as a sentence and a table.

        References
        ----------
        Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2024), Anytime-valid off-policy
        inference for contextual bandits.
        """
        delta = probability("delta", delta)
        if not self.holdout.share or self.experiment is None:
            raise ValueError(
                "there is no holdout to compare with; create the agent with baseline= (the action "
                "without it, or 'uniform') and holdout=0.05"
            )
        with self._lock, Inside(self):
            kept = self.experiment
            found = kept.gain(delta)
            if kept.subjects is not None:
                n = kept.subjects.powers[:, :2]
                decisions, rests = n[:, 1], SUBJECTS
                counts = [("decisions", _pair(decisions)), ("subjects", _pair(n[:, 0]))]
                promise = LATER
            else:
                assert kept.groups is not None
                decisions = kept.groups.totals[:, 0]
                counts = [("decisions", _pair(decisions))]
                promise, rests = _words(DRAWN, self.rewards)
            notes = notes_of(kept.waiting, kept.given_up)
        names = "the agent", f"the baseline {self.holdout.baseline!r}"
        return _difference(names, found, counts, delta, promise, rests, notes, kept.given_up)

    def compare(
        self, first: object, second: object, *, steady: bool | None = None, delta: float = 0.05
    ) -> Difference:
        r"""Return how much more one action earns per decision than another.

        The interval holds at all times at once, though the agent prefers what it believes in.
        Decide on ``steady`` before you see rewards. Rows of `learn_table` do not count.

        Parameters
        ----------
        first, second : names of actions
        steady : bool, optional
            Whether what each action earns on average stays the same, as it may without a context.
            Then the interval comes from the actions' own rewards; this is the default without a
            context, unless all decisions are drawn at random, as in an A/B test. If not, it comes
            from rewards divided by the probabilities with which actions were drawn, and is of the
            average difference over the decisions so far, whatever contexts and rates do. The agent
            must draw ``among="all"`` for that. It is wider where the agent prefers one action for a
            while and then another.
        delta : float, in (0, 1)
            The probability that the interval ever misses: 0.05 for a 95 % interval. Divide it by
            the number of comparisons if all of them are to hold together.

        Returns
        -------
        Difference
            Prints as a sentence and a table.

        Examples
        --------
        >>> from noisewise import Agent, Arms
        >>> arms = Arms(["A", "B"], interactions=None)
        >>> agent = Agent.for_binary_rewards(arms=arms, randomise=0.2, among="all")
        >>> for visit in range(400):
        ...     shown = agent.choose()
        ...     agent.learn(None, float(shown == "A"))
        >>> agent.compare("A", "B").lower > 0
        True
        """
        delta = probability("delta", delta)
        kept = self._compared(steady)
        if steady is None:
            steady = kept.plain is not None and (kept.drawn is None or self.randomisation.share < 1)
        a, b = self._position("first", first), self._position("second", second)
        if a == b:
            raise ValueError(f"second is {shown(second)}, as first is; pass another action")
        with self._lock, Inside(self):
            found, counts = kept.compare(a, b, steady, delta)
            partial = "" if steady else _partial(kept.partial)
            notes = notes_of(kept.waiting, kept.given_up, partial)
        promise, rests = _words(STEADY if steady else DRAWN, self.rewards)
        names = repr(word("first", first)), repr(word("second", second))
        counted = [("decisions", _pair(counts))]
        return _difference(names, found, counted, delta, promise, rests, notes, kept.given_up)

    def _compared(self, steady: bool | None) -> Experiment:
        """Return what compares actions, or raise where that can't be."""
        kept = self.experiment
        if kept is None or (kept.plain is None and kept.drawn is None):
            raise ValueError(
                "actions are compared where they have names, and there is no context or they are "
                "drawn at random; create the agent with arms= and randomise=0.2, among='all'"
            )
        if steady is not None and flag("steady", steady) and kept.plain is None:
            raise ValueError(
                "steady is True, but what actions earn depends on the context; leave steady out"
            )
        if steady is False and kept.drawn is None:
            raise ValueError(
                "steady is False, but actions are not drawn at random; create the agent with "
                "randomise=0.2, among='all'"
            )
        return kept

    def _position(self, name: str, action: object) -> int:
        """Return where an action is, of those that are compared."""
        assert self.arms is not None
        assert self.experiment is not None
        known = self.arms.actions[: self.experiment.known]
        called = word(name, action)
        if called not in known:
            raise ValueError(
                f"{name} is {called!r}; pass one of {shown(list(known))}, the actions with which "
                "the agent was created"
            )
        return known.index(called)

    def _check_holdout(
        self, offers: Iterable[Offer], subjects: Sequence[int | None], top: int | None
    ) -> None:
        """Raise where the baseline is not on offer, or only some decisions have a subject.

        Several actions chosen together are assigned together, as those of a subject.
        """
        if not self.holdout.share or self.experiment is None:
            return
        for offer in offers:
            if self.holdout.place(offer) is not None and top is not None:
                raise ValueError(
                    f"top is {top}, but the baseline is one action; create the agent with "
                    "baseline='uniform' for several"
                )
        if len({each is None for each in subjects}) > 1:
            raise ValueError("subjects holds None beside others; pass one with every decision")
        self.experiment.check_subject(subjects[0] if top is None else subjects[0] or 0)

    def _note_decision(
        self, key: Any, offer: Offer | None, k: int, p: Array | None, subject: int | None,
        baseline: bool = False,
    ) -> None:  # fmt: skip
        """Keep what comparisons need of a decision; ``p`` are probabilities of the agent's own."""
        kept = self.experiment
        if kept is None:
            return
        action, share = -1, 0.0
        if offer is not None and offer.names and offer.positions[k] < kept.known:
            action = offer.positions[k]
            if p is not None and not baseline and {*offer.positions} == {*range(kept.known)}:
                share = float(p[k])
        kept.decide(key, Decision(BASELINE if baseline else AGENT, action, share, subject))


def _pair(counts: Array) -> tuple[int, int]:
    return int(counts[0]), int(counts[1])


def _words(first: str, limits: tuple[float, float] | None) -> tuple[str, str]:
    """Return what an interval of decisions promises, and what that rests on."""
    if limits is None:
        return LATER, f"{first}, and {FREE}"
    return ALWAYS, f"{first}, and {BOUNDED.format(*limits)}"


def _partial(count: int) -> str:
    if not count:
        return ""
    few = count_of(count, "decision")
    return f"{few} not counted: held out, or not all actions were on offer."


def _difference(
    names: tuple[str, str], found: Bounds, counts: list[tuple[str, tuple[int, int]]], delta: float,
    promise: str, rests: str, notes: tuple[str, ...], given_up: int,
) -> Difference:  # fmt: skip
    ends, counted = (found.lower, found.upper), tuple(counts)
    return Difference(names, found.means, counted, *ends, delta, promise, rests, notes, given_up)
