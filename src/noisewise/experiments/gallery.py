"""Playing the practical worlds: a policy or an agent, each reward learnt when it arrives."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..agent.agent import Agent
from ..environments.practical import Deliveries
from ..protocols import AnyPolicy, Array, trait
from ..theory.regret import bandit_regret


class PolicySeat:
    """A policy with its state and generator.

    A policy may have two verbs more. ``expect(state, arm, sigma)`` is called right after a decision
    whose reward does not come at once, with ``sigma`` None, since the sd comes with the reward;
    ``release(state, arm)`` right before that reward is learnt.
    """

    def __init__(self, policy: AnyPolicy, dim: int, rng: np.random.Generator) -> None:
        self.policy, self.state, self.rng = policy, policy.start(dim), rng
        none: Callable[..., None] | None = None
        self.expect, self.release = trait(policy, "expect", none), trait(policy, "release", none)

    def decide(self, t: int, arms: Array, late: bool) -> int:
        """Return the index of the arm to play in round t."""
        k = self.policy.select(self.state, arms, self.rng)
        if late and self.expect is not None:
            self.expect(self.state, arms[k], None)
        return k

    def learn(self, t: int, arm: Array, reward: float, sigma: float | None, late: bool) -> None:
        """Learn the reward of round t."""
        if late and self.release is not None:
            self.release(self.state, arm)
        self.policy.update(self.state, arm, reward, 1.0 if sigma is None else sigma)


class AgentSeat:
    """An agent, which keeps its decisions under the numbers of their rounds."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def decide(self, t: int, arms: Array, late: bool) -> int:
        """Return the index of the arm to play in round t."""
        return self.agent.choose(arms, key=t)

    def learn(self, t: int, arm: Array, reward: float, sigma: float | None, late: bool) -> None:
        """Learn the reward of round t."""
        self.agent.learn(t, reward, sigma)


def choices(
    player: AnyPolicy | Agent, drawn: Deliveries, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the arms played, (T,), by a policy started afresh or by a fresh agent."""
    if isinstance(player, Agent):
        return play(AgentSeat(player), drawn)
    return play(PolicySeat(player, drawn.rounds.arms.shape[-1], rng), drawn)


def play(seat: AgentSeat | PolicySeat, drawn: Deliveries) -> NDArray[np.int64]:
    """Return the arms played, (T,), each reward learnt when it arrives."""
    table = drawn.rounds
    T, fixed = len(table.means), table.arms.ndim == 2
    queue = np.argsort(drawn.arrival, kind="stable").tolist()
    due, reported, first = drawn.arrival.tolist(), table.sigma.tolist(), 0
    played = np.empty(T, dtype=np.int64)
    for t in range(T):
        arms = table.arms if fixed else table.arms[t]
        played[t] = k = seat.decide(t, arms, due[t] > t)
        while first < T and due[queue[first]] == t:
            s = queue[first]
            k = played.item(s)
            arm, sigma = table.arms[k] if fixed else table.arms[s, k], reported[s]
            given = sigma if drawn.sd_given else None
            seat.learn(s, arm, table.rewards.item(s, k), given, due[s] > s)
            first += 1
    return played


def regret(player: AnyPolicy | Agent, drawn: Deliveries, rng: np.random.Generator) -> float:
    """Return the regret of a policy, or of a fresh agent, on one drawn world."""
    return float(bandit_regret(drawn.rounds, choices(player, drawn, rng))[-1])
