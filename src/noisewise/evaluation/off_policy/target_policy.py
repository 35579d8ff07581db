"""What a policy would have done at each decision of a log: the probability of every action."""

import copy
from collections.abc import Callable, Mapping

import numpy as np

from ...agent.actions import context_fields
from ...agent.agent import Agent
from ...inputs import numbers, shown
from ...protocols import Array, Policy, State
from .decision_table import DecisionTable

KINDS = (
    "pass the name of an action, probabilities (K,) or (n, K), a function of the context, an "
    "Agent, or a policy with its state"
)


def target(policy: object, table: DecisionTable) -> Array:
    """Return the probability of every action at every decision, (n, K)."""
    n, K = len(table), len(table.actions)
    if isinstance(policy, Agent):
        return np.eye(K)[_choices(policy, table)]
    if isinstance(policy, tuple) and len(policy) == 2 and isinstance(policy[0], Policy):
        return np.eye(K)[_selected(*policy, table)]
    if isinstance(policy, str | int | np.integer) and not isinstance(policy, bool):
        return np.tile(np.eye(K)[_place(policy, table)], (n, 1))
    if callable(policy):
        return _answers(policy, table)
    return _checked(policy, n, K)


def _checked(policy: object, n: int, K: int) -> Array:
    if isinstance(policy, Mapping) or np.ndim(policy) not in (1, 2):  # type: ignore[arg-type]
        raise ValueError(f"policy is {shown(policy)}; {KINDS}")
    p = numbers("policy", policy)
    if p.shape not in ((K,), (n, K)):
        raise ValueError(
            f"policy has shape {p.shape}; pass probabilities of shape ({K},) or ({n}, {K}), in the "
            "order of the result's actions"
        )
    if p.min() < 0 or np.abs(p.sum(axis=-1) - 1).max() > 1e-6:
        raise ValueError("policy holds a row that is no distribution; pass probabilities >= 0 that "
                         "sum to 1")  # fmt: skip
    return np.broadcast_to(p, (n, K))


def _place(action: object, table: DecisionTable) -> int:
    name = context_fields.word("policy", action)
    if name not in table.actions:
        raise ValueError(
            f"policy is {shown(action)}, no action of the log, which has "
            f"{shown(list(table.actions))}; pass actions= if it was never taken"
        )
    return table.actions.index(name)


def _answers(policy: Callable[..., object], table: DecisionTable) -> Array:
    """Ask a function at every decision."""
    K = len(table.actions)
    p = np.zeros((len(table), K))
    given = table.rows() if table.arms is None else table.arms
    for row, context in zip(p, given, strict=True):
        answer = policy(context)
        if isinstance(answer, Mapping):
            for action, share in answer.items():
                row[_place(action, table)] = share
        elif isinstance(answer, str) or np.ndim(answer) == 0:  # type: ignore[arg-type]
            row[_place(answer, table)] = 1.0
        else:
            row[:] = numbers("what policy returned", answer)
    return _checked(p, len(table), K)


def _choices(agent: Agent, table: DecisionTable) -> list[int]:
    """Return what an agent would choose now, without randomising."""
    if agent.arms is None:
        return _selected(agent.policy, agent.state, table, agent.rng)
    rng = copy.deepcopy(agent.rng)
    names = agent.arms.actions
    return [
        _place(names[agent.policy.select(agent.state, agent.arms(row), rng)], table)
        for row in table.rows()
    ]


def _selected(
    policy: Policy[State],
    state: State,
    table: DecisionTable,
    rng: np.random.Generator | None = None,
) -> list[int]:
    if table.arms is None:
        raise ValueError(
            "policy needs the features of arms, and the log has no column 'arms'; pass an Agent "
            "with Arms, or a function of the context"
        )
    rng = np.random.default_rng(0) if rng is None else copy.deepcopy(rng)
    return [policy.select(state, arms, rng) for arms in table.arms]
