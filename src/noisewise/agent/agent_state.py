"""What an agent writes to a file, beside its policy, and how it is read again."""

import json
import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from .. import archive
from ..inputs import integer
from ..links import Link
from ..printing import OneLine
from ..protocols import Array
from ..states import (
    COUNT,
    NONNEGATIVE,
    POSITIVE,
    check_array,
    check_fields,
    check_generator,
    check_rows,
)
from .action_features import Arms
from .decision_log import Decision, DecisionLog
from .experiment import ExperimentState, restored
from .health import Watch
from .kinds import is_ftrl_ucb
from .observations import Key, is_key, is_slot, limits_of
from .pending import Pending
from .randomisation import AMONG, check_share
from .reasons import means
from .residuals import ResidualScale

AnyAgent = TypeVar("AnyAgent")


@dataclass(eq=False, repr=False)
class AgentState(OneLine):
    """What an agent writes to a file, beside its policy."""

    state: object
    generator: str
    keys: list[Key]
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
    slates: list[tuple[Key, tuple[Any, ...]]] = field(default_factory=list)
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
        if getattr(self.state, "dim", x.shape[1]) != x.shape[1]:
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


def _check_slates(slates: Any, keys: list[Any]) -> None:
    """Raise unless slots are pending of these slates, and of each some."""
    pending: dict[Key, int] = {}
    for key in filter(is_slot, keys):
        pending[key[0][0]] = max(key[1], pending.get(key[0][0], 0))
    fits = isinstance(slates, list) and all(
        isinstance(each, tuple) and len(each) == 2 and is_key(each[0])
        and isinstance(each[1], tuple) and all(isinstance(part, str | int) for part in each[1])
        for each in slates
    )  # fmt: skip
    known = dict(slates) if fits else {}
    last = {key: len(actions) - 1 for key, actions in known.items()}
    if not fits or last.keys() != pending.keys() or any(last[k] < pending[k] for k in last):
        raise ValueError("AgentState.slates holds other slates than those that are pending")


def snapshot(agent: Any) -> AgentState:
    """Return what a file is to hold, as it is now: the agent may go on meanwhile.

    Decisions of the record are never changed, but replaced, so their list is copied alone.
    """
    pending = agent._pending.arms
    x = np.array(list(pending.values())).reshape(-1, agent.dim)
    return AgentState(
        deepcopy(agent.state), json.dumps(agent.rng.bit_generator.state), list(pending), x,
        agent.sigma, agent.scale, agent.capacity, agent.dropped, agent.rewards, agent.unit,
        agent.arms, agent.randomisation.share, agent.randomisation.among, agent.record.saved(),
        list(agent._pending.slates.items()),
        (*agent.holdout[:2], str(agent.holdout.salt)),
        agent.experiment and agent.experiment.saved(),
        agent.watch.copy(),
    )  # fmt: skip


def load(
    kind: Callable[..., AnyAgent],
    path: str | os.PathLike[str],
    link: Link | None,
    types: tuple[type, ...],
) -> tuple[AnyAgent, Pending]:
    """Return an agent, created by its class ``kind``, and its pending decisions."""
    held = archive.load(path, link, types)
    policy, given = held if isinstance(held, tuple) else (held, None)  # an estimator has no state
    if not isinstance(given, AgentState):
        raise ValueError(f"{str(path)!r} holds no agent; open it with noisewise.load")
    dim = given.features.shape[1]
    try:
        agent: Any = kind(
            policy, dim, sigma=given.sigma, rewards=given.rewards, capacity=given.capacity,
            arms=given.arms, randomise=given.randomise, among=given.among, record=0,
            baseline=given.holdout[1], holdout=given.holdout[0], seed=int(given.holdout[2][:40]),
        )  # fmt: skip
        agent.experiment = restored(agent.experiment, given.experiment)
        agent.record = DecisionLog(*given.record)
        agent.record.check_offers(given.arms, dim)
        if given.unit is not None and not (is_ftrl_ucb(policy) and policy.glm.linear):
            raise ValueError(f"{policy} has no unit of rewards")
        if given.scale and means(policy, agent.state, np.zeros((1, dim))) is None:
            raise ValueError(f"{policy} predicts nothing, but has a scale of residuals")
        # copies, as `choose` makes them: the product of a view may round differently
        rows = [row.copy() for row in given.features]
        arms = dict(zip(given.keys, rows, strict=True))
        pending = Pending(policy, given.state, arms, given.slates)
        pending.check(given.state)
    except ValueError as error:
        raise archive.damaged(path, error) from None
    agent.state, agent.scale, agent.dropped = given.state, given.scale, given.dropped
    agent.unit, agent.watch = given.unit, given.watch
    agent.rng.bit_generator.state = json.loads(given.generator)
    return agent, pending
