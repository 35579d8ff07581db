"""What `Agent.gain` and `Agent.compare` say of an experiment, and when they can't."""

from __future__ import annotations

from ...inputs import flag, shown
from ...protocols import Array
from ...support.printing import count_of
from ..actions.context_fields import word
from .difference import ALWAYS, LATER, Difference, notes_of
from .experiment import Experiment
from .group_rewards import Bounds

DRAWN = "the random draw of decisions"
STEADY = "each action earning the same on average at all times"
BOUNDED = "rewards within [{:g}, {:g}]"
FREE = "so many rewards of finite variance that means are about normal"
SUBJECTS = (
    "subjects that do not influence each other, and so many of them that means are about normal"
)

Limits = tuple[float, float] | None


def gain(
    experiment: Experiment | None, baseline: object, limits: Limits, delta: float
) -> Difference:
    """Return how much more the agent earns than its baseline."""
    if experiment is None or not experiment.share:
        raise ValueError(
            "there is no holdout to compare with; create the agent with baseline= (the action "
            "without it, or 'uniform') and holdout=0.05"
        )
    names, bounds = ("the agent", f"the baseline {baseline!r}"), experiment.gain(delta)
    if experiment.subjects is None:
        assert experiment.groups is not None
        counts = [("decisions", _pair(experiment.groups.totals[:, 0]))]
        return _difference(experiment, names, bounds, counts, delta, *_words(DRAWN, limits))
    n = experiment.subjects.powers
    counts = [("decisions", _pair(n[:, 1])), ("subjects", _pair(n[:, 0]))]
    return _difference(experiment, names, bounds, counts, delta, LATER, SUBJECTS)


def compare(
    experiment: Experiment | None,
    actions: tuple[str, ...],
    first: object,
    second: object,
    steady: bool | None,
    all_drawn: bool,
    limits: Limits,
    delta: float,
) -> Difference:
    """Return how much more one of the actions earns than another."""
    if experiment is None or (experiment.plain is None and experiment.drawn is None):
        raise ValueError(
            "actions are compared where they have names, and there is no context or they are "
            "drawn at random; create the agent with arms= and randomise=0.2, among='all'"
        )
    if steady is not None and flag("steady", steady) and experiment.plain is None:
        raise ValueError(
            "steady is True, but what actions earn depends on the context; leave steady out"
        )
    if steady is False and experiment.drawn is None:
        raise ValueError(
            "steady is False, but actions are not drawn at random; create the agent with "
            "randomise=0.2, among='all'"
        )
    if steady is None:
        steady = experiment.plain is not None and (experiment.drawn is None or not all_drawn)
    compared = actions[: experiment.actions]
    a, b = _position("first", first, compared), _position("second", second, compared)
    if a == b:
        raise ValueError(f"second is {shown(second)}, as first is; pass another action")
    bounds, n = experiment.compare(a, b, steady, delta)
    names, counts = (repr(compared[a]), repr(compared[b])), [("decisions", _pair(n))]
    words = _words(STEADY if steady else DRAWN, limits)
    partial = (
        ""
        if steady or not experiment.partial
        else (
            f"{count_of(experiment.partial, 'decision')} not counted: held out, or not all actions "
            "were on offer."
        )
    )
    return _difference(experiment, names, bounds, counts, delta, *words, partial)


def _position(name: str, action: object, compared: tuple[str, ...]) -> int:
    """Return where an action is among those that are compared."""
    called = word(name, action)
    if called not in compared:
        raise ValueError(
            f"{name} is {called!r}; pass one of {shown(list(compared))}, the actions with which "
            "the agent was created"
        )
    return compared.index(called)


def _pair(counts: Array) -> tuple[int, int]:
    return int(counts[0]), int(counts[1])


def _words(first: str, limits: Limits) -> tuple[str, str]:
    """Return what an interval of decisions promises, and what that rests on."""
    if limits is None:
        return LATER, f"{first}, and {FREE}"
    return ALWAYS, f"{first}, and {BOUNDED.format(*limits)}"


def _difference(
    experiment: Experiment, names: tuple[str, str], bounds: Bounds,
    counts: list[tuple[str, tuple[int, int]]], delta: float, promise: str, rests: str,
    partial: str = "",
) -> Difference:  # fmt: skip
    notes = notes_of(experiment.waiting, experiment.given_up, partial)
    return Difference(
        names, bounds.means, tuple(counts), bounds.lower, bounds.upper, delta, promise, rests,
        notes, experiment.given_up,
    )  # fmt: skip
