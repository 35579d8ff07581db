"""off_policy_value: what a policy would have earned, from a log of another's decisions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...agent.actions.context_fields import word
from ...agent.rewards.observations import limits_of
from ...inputs import flag, numbers, refuse_class, shown
from ...inputs import probability as checked_probability
from ...protocols import AnyRegressor, Array
from . import decision_table, differences, estimates, logging_policy, reward_model
from .decision_table import DecisionTable
from .estimates import Limits
from .target_policy import target
from .value_table import OffPolicyValue

Predictions = ArrayLike | None
PLAYED, GREEDY, ASKED, AGAINST = "played", "greedy", "policy", "against"


def off_policy_value(
    log: object,
    policy: object = None,
    *,
    against: object = None,
    context: Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    probability: str = "probability",
    actions: Sequence[object] | None = None,
    greedy: bool = False,
    predictions: Predictions = None,
    regressor: AnyRegressor | None = None,
    reward_range: Limits = None,
    estimate_probability: bool = False,
    delta: float = 0.05,
) -> OffPolicyValue:
    r"""Estimate what a policy would have earned, from decisions with recorded probabilities.

    With :math:`w = \pi(a \mid x)/p(a \mid x)`, there are three estimates with approximate
    intervals: the mean weighted reward ("ips"), the same divided by the mean weight ("snips"), and
    a doubly robust one ("dr"), which adds :math:`\sum_b \pi(b)q(b) - wq(a)` to the first. The
    reward q expected of an action is predicted from earlier decisions only, so "ips" and "dr" are
    unbiased whatever the model, also where the log's policy learnt on the way. "anytime" is an
    interval that holds at all times at once: for rewards within a range by betting, for weights of
    any size; for others approximately, from an effective sample size of 100 on.

    Approximate intervals need many matched decisions. A line is unreliable where one weight has
    more than 5 % of the sum of squared weights (unless the log has the probabilities of all
    actions, which show larger ones), where its value rests on fewer than 20 rewards that
    differ from the mean (successes, if these are rare), or its standard error on fewer than 10
    decisions. It has no interval then: the result says why, and the anytime interval takes over.

    An action that had probability 0 is never seen in the log. If the policy takes such actions,
    only the anytime interval holds, and the result warns of it. An `Agent` gives probability 0 to
    arms that can no longer be the best, unless it randomises ``among="all"``.

    Parameters
    ----------
    log : data frame, Arrow table, dictionary of columns, or Agent with a record
        In order of time: columns of the context, the action taken, its reward, and the probability
        with which it was taken. A column "probabilities", as of `Agent.log`, has those of all
        actions; without it, actions that had probability 0 may go unnoticed.
    policy : optional
        The name of an action, to take it always; probabilities (K,) or (n, K) in the order of
        ``actions``; a function of the context, a dictionary, that returns an action or
        probabilities; an `Agent` or a pair of policy and state, for what they would choose now
        (they must not have learnt from this log). By default what was played is compared with each
        single action.
    against : optional
        Another policy, in any of these forms: the lines called "gain" say what the policy earns
        more than it. By default they say what it earns more than what was played.
    context, action, reward, probability : names of columns
        The context is by default every other column.
    actions : list, optional
        All actions; by default those of the log.
    greedy : bool
        Also evaluate the policy that takes the action with the largest predicted reward, by a
        model of the first half of the log, on the second half.
    predictions : (n, K), optional
        Your own q, each row computed without the reward of that row.
    regressor : Regressor, optional
        What predicts q, for each action on the context: by default `SelfTuned` without forgetting.
    reward_range : (float, float), optional
        The least and the largest possible reward; (0, 1) where no reward is outside. Without it
        the anytime interval is approximate.
    estimate_probability : bool
        For a log without probabilities: estimate them, by `OnlineGLMClassifier` on the context,
        cross-fitted. That is right if the log's policy was one fixed function of these columns,
        which no log can show. No interval holds at all times then, and ``rests_on`` says so.
    delta : float, in (0, 1)
        The probability that an interval may miss.

    Returns
    -------
    OffPolicyValue
        Prints as a table, in which lines that can't be relied on are marked.

    Examples
    --------
    A fair coin chose between "a", which pays 1 every other time, and "b", which pays 0:

    >>> log = {"action": ["a", "b"] * 50, "reward": [1, 0, 0, 0] * 25, "probability": [0.5] * 100}
    >>> found = off_policy_value(log, "a")
    >>> found.of("played").value, found.of("a", "ips").value, found.of("a", "snips").value
    (0.25, 0.5, 0.5)

    References
    ----------
    Dudík, Langford and Li (2011), Doubly robust policy evaluation and learning; Swaminathan and
    Joachims (2015), the self-normalised estimator; Waudby-Smith, Wu, Ramdas, Karampatziakis and
    Mineiro (2024), Anytime-valid off-policy inference for contextual bandits.
    """
    refuse_class("policy", policy)
    refuse_class("regressor", regressor)
    delta = checked_probability("delta", delta)
    estimated = flag("estimate_probability", estimate_probability)
    table = decision_table.read(
        log, action=action, reward=reward, probability=probability, context=context,
        actions=actions, unrecorded=estimated,
    )  # fmt: skip
    if estimated:
        table = logging_policy.with_probabilities(table)
    if against is not None and policy is None:
        raise ValueError(f"against is {shown(against)}, without a policy; pass one to compare")
    taken = {PLAYED, GREEDY, ASKED, AGAINST, differences.GAIN} & set(table.actions)
    if taken:
        raise ValueError(f"an action is called {min(taken)!r}, as a line of the table; rename it")
    limits = _limits(table.reward, reward_range)
    q = _expected(table, predictions, regressor)
    n, K = q.shape
    targets: dict[str, tuple[int, Array]] = {}
    asked = PLAYED
    if policy is not None:
        asked = _name("policy", policy, ASKED)
        targets[asked] = 0, target(policy, table)
    rival = PLAYED
    if against is not None:
        rival = _name("against", against, AGAINST)
        targets[rival] = 0, target(against, table)
        if rival == asked:
            raise ValueError(f"against is {shown(against)}, as policy is; pass another")
    for k, name in enumerate(table.actions):
        targets.setdefault(name, (0, np.broadcast_to(np.eye(K)[k], (n, K))))
    if greedy:
        targets[GREEDY] = reward_model.greedy(table, regressor)
    played = estimates.played(PLAYED, table.reward)
    known = {PLAYED: differences.Rival(played, None)}
    found, said = played.lines(delta, limits)
    for name, (start, pi) in targets.items():
        judged = estimates.judge(name, pi, table.since(start), q[start:])
        known[name] = differences.Rival(judged, pi)
        values, doubts = judged.lines(delta, limits)
        if policy is not None and name == asked:
            for each in [] if all(e.reliable for e in values) else doubts:
                warnings.warn(each, stacklevel=2)
        found += values
        said += doubts
    if policy is not None:
        values, doubts = differences.lines(known[asked], known[rival], table, q, delta, limits)
        found += values
        said += doubts
    if estimated:
        found = [e if e.policy == PLAYED else logging_policy.restated(e) for e in found]
        said.insert(0, logging_policy.DOUBT)
    return OffPolicyValue(
        asked, tuple(found), table.actions, q, len(table), delta, tuple(said),
        checked=table.probabilities is not None, rival=rival,
    )  # fmt: skip


def _name(argument: str, policy: object, otherwise: str) -> str:
    """Return what a policy is called in the table."""
    named = isinstance(policy, str | int | np.integer) and not isinstance(policy, bool)
    return word(argument, policy) if named else otherwise


def _limits(r: Array, given: Limits) -> Limits:
    if given is None:
        return (0.0, 1.0) if r.min() >= 0 and r.max() <= 1 else None
    low, high = limits_of(given)
    if r.min() < low or r.max() > high or not np.isfinite([low, high]).all():
        raise ValueError(
            f"reward_range is {shown(given)}, but rewards go from {r.min():g} to {r.max():g}; pass "
            "the least and the largest possible reward"
        )
    return low, high


def _expected(
    table: DecisionTable, given: ArrayLike | None, regressor: AnyRegressor | None
) -> Array:
    if given is None:
        return reward_model.predictions(table, regressor)
    q, shape = numbers("predictions", given), (len(table), len(table.actions))
    if q.shape != shape:
        raise ValueError(f"predictions has shape {q.shape}; pass {shape}, one per action")
    return q
