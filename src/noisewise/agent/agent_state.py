"""What an agent writes to a file, beside its policy, and how it is read again."""

import json
import os
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..inputs import integer
from ..model.links import Link
from ..protocols import Array, trait
from ..storage import archive
from ..storage.states import (
    COUNT,
    NONNEGATIVE,
    POSITIVE,
    check_array,
    check_fields,
    check_generator,
    check_rows,
)
from ..support.printing import OneLine
from .actions.action_features import Arms
from .actions.randomisation import AMONG, check_share
from .comparison.experiment import ExperimentState, restored
from .explanations.health import Watch
from .record.decision_log import Decision, DecisionLog
from .rewards.observations import Action, Key, PendingKey, is_key, is_slot, limits_of
from .rewards.pending import Pending
from .rewards.residuals import ResidualScale

if TYPE_CHECKING:
    from .agent import Agent


@dataclass(eq=False, repr=False)
class AgentState(OneLine):
    """What an agent writes to a file, beside its policy."""

    state: object
    generator: str
    keys: list[PendingKey]
    features: Array
    sigma: float
    scale: ResidualScale | None
    capacity: int
    dropped: int
    rewards: tuple[float, float] | None = None
    unit: float | None = None
    arms: Arms | None = None
    randomise: float = 0.0
    among: str = AMONG[0]
    record: tuple[int, list[Decision]] = field(default_factory=lambda: (0, []))
    slates: list[tuple[Key, tuple[Action, ...]]] = field(default_factory=list)
    holdout: tuple[float, str | int | None, str] = (0.0, None, "0")
    experiment: ExperimentState | None = None
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        keys, x = self.keys, self.features
        check_fields(self, keys=list, features=np.ndarray, sigma=POSITIVE, dropped=COUNT)
        if not all(is_key(key) for key in keys) or len(set(keys)) < len(keys):
            raise ValueError("AgentState.keys holds what is no key, or one twice")
        check_array("AgentState.features", x, (len(keys), x.shape[1] if x.ndim == 2 else 0))
        check_rows("AgentState", x)
        if trait(self.state, "dim", x.shape[1]) != x.shape[1]:
            raise ValueError("AgentState.state has another dim than its features")
        if integer("AgentState.capacity", self.capacity) < len(keys):
            raise ValueError(f"AgentState.keys holds more than its capacity {self.capacity}")
        if self.scale is not None:
            check_fields(self, scale=ResidualScale)
        if self.rewards is not None and self.rewards != limits_of(self.rewards):
            raise ValueError("AgentState.rewards is no pair of floats")
        if self.unit is not None:
            check_fields(self, unit=NONNEGATIVE)
        check_generator(self.generator)
        if self.arms is not None:
            check_fields(self, arms=Arms)
        check_share(self.randomise, self.among)
        pair: object = self.record
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], list):
            raise ValueError("AgentState.record is no pair of a capacity and decisions")
        _check_slates(self.slates, keys)
        three: object = self.holdout
        fits = isinstance(three, tuple) and len(three) == 3 and isinstance(three[2], str)
        if not fits or not self.holdout[2].isdecimal():
            raise ValueError("AgentState.holdout is no share, baseline and salt")
        if self.experiment is not None:
            check_fields(self, experiment=ExperimentState)
        check_fields(self, watch=Watch)


def _check_slates(slates: list[tuple[Key, tuple[Action, ...]]], keys: list[PendingKey]) -> None:
    """Raise unless slots are pending of these slates, and of each some."""
    pending: dict[Key, int] = {}
    for key in filter(is_slot, keys):
        pending[key[0][0]] = max(key[1], pending.get(key[0][0], 0))
    fits = isinstance(slates, list) and all(
        isinstance(each, tuple) and len(each) == 2 and is_key(each[0])
        and isinstance(each[1], tuple) and all(isinstance(part, str | int) for part in each[1])
        for each in slates
    )  # fmt: skip
    actions_of = dict(slates) if fits else {}
    last = {key: len(actions) - 1 for key, actions in actions_of.items()}
    if not fits or last.keys() != pending.keys() or any(last[k] < pending[k] for k in last):
        raise ValueError("AgentState.slates holds other slates than those that are pending")


def snapshot(agent: "Agent") -> AgentState:
    """Return what a file is to hold, as it is now: the agent may go on meanwhile.

    Decisions of the record are never changed, but replaced, so their list is copied alone.
    """
    pending, holdout = agent._learner.pending, agent.holdout
    x = np.array(list(pending.arms.values())).reshape(-1, agent.dim)
    return AgentState(
        deepcopy(agent.state), json.dumps(agent.rng.bit_generator.state), list(pending.arms), x,
        agent.sigma, agent.scale, agent.capacity, agent.dropped, agent.rewards, agent.unit,
        agent.arms, *agent.randomisation, agent.record.saved(), list(pending.slates.items()),
        (holdout.share, holdout.baseline, str(holdout.salt)),
        None if agent.experiment is None else agent.experiment.saved(), agent.watch.copy(),
    )  # fmt: skip


def load_agent(
    kind: "type[Agent]",
    path: str | os.PathLike[str],
    link: Link | None,
    types: tuple[type, ...],
) -> "Agent":
    """Return an agent that was saved."""
    parts = archive.load(path, link, types)
    policy, saved = parts if isinstance(parts, tuple) else (parts, None)  # an estimator has none
    if not isinstance(saved, AgentState):
        raise ValueError(f"{str(path)!r} holds no agent; open it with noisewise.load")
    dim, (share, baseline, salt) = saved.features.shape[1], saved.holdout
    try:
        agent = kind(
            policy, dim, sigma=saved.sigma, rewards=saved.rewards, capacity=saved.capacity,
            arms=saved.arms, randomise=saved.randomise, among=saved.among, record=0,
            baseline=baseline, holdout=share, seed=int(salt[:40]),
        )  # fmt: skip
        agent.experiment = restored(agent.experiment, saved.experiment)
        agent.record = DecisionLog(*saved.record)
        agent.record.check_offers(saved.arms, dim)
        # copies, as `choose` makes them: the product of a view may round differently
        rows = [row.copy() for row in saved.features]
        pending = Pending(dict(zip(saved.keys, rows, strict=True)), saved.slates)
        agent._learner.restore(saved.state, pending, saved.unit, saved.scale)
    except ValueError as error:
        raise archive.damaged(path, error) from None
    agent.dropped, agent.watch = saved.dropped, saved.watch
    agent.rng.bit_generator.state = json.loads(saved.generator)
    return agent
