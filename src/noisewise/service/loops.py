"""Loops: the settings of a decision problem, checked, and the agent they ask for."""

from __future__ import annotations

import json
import re
import secrets
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ..agent.actions.action_features import Arms
from ..agent.agent import Agent
from .log.store import Connection, Doubled, Record

NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"
PENDING = 100_000  # decisions that the agent counts; rewards of older ones are learnt all the same
UNIFORM = "uniform"
LARGEST_CHOICE = 2e7  # K d^2 of a decision
FIXED = ("context", "interactions", "reserve", "rewards", "holdout", "baseline")

Name = Annotated[str, StringConstraints(pattern=NAME)]
Share = Annotated[float, Field(ge=0, le=1)]
Features = dict[str, float | str] | list[float]
Kind = Literal["number"] | list[str] | Annotated[int, Field(ge=1, le=1024)]


class Strict(BaseModel):
    """A body whose unknown fields and infinite numbers are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Among(Strict):
    """What a loop decides among."""

    actions: list[str] | dict[str, Features] = Field(
        description="names, or the features of each by name", min_length=1, max_length=10_000
    )


class Settings(Among):
    """What a loop decides about, and how."""

    context: dict[str, Kind] = Field(
        default_factory=dict,
        description='each field is "number", a list of words, or in how many columns it is hashed',
    )
    interactions: Literal["full", "shared"] | None = Field(
        default="full", description="how the context acts on actions, as `Arms` takes it"
    )
    reserve: int = Field(
        default=0, ge=0, le=10_000, description="how many actions can be added later"
    )
    rewards: Literal["binary", "share", "continuous"] = Field(
        default="binary", description="0 or 1; within [0, 1]; or any numbers"
    )
    explore: Share = Field(
        default=0.05, description="share of decisions drawn at random among all actions"
    )
    holdout: float = Field(
        default=0.05, ge=0, lt=1, description="share of decisions that get the baseline"
    )
    baseline: str = Field(default=UNIFORM, description='an action, or "uniform"')
    reward_wait: float = Field(
        default=3600.0, gt=0, le=1e9, description="seconds after which a reward comes too late"
    )
    default_reward: float | None = Field(
        default=None, description="learnt where no reward came in time; by default nothing is"
    )
    aggregate: Literal["earliest", "sum"] = Field(
        default="earliest", description="which is learnt where a decision has several rewards"
    )
    retain_days: float | None = Field(
        default=None, gt=0, le=1e5, description="days after which rows of the log are deleted"
    )

    @model_validator(mode="after")
    def _together(self) -> Settings:
        names = self.arms.actions
        if self.baseline != UNIFORM and self.baseline not in names:
            raise ValueError(f"baseline is {self.baseline!r}; pass an action, or {UNIFORM!r}")
        if self.rewards != "continuous":
            if self.aggregate == "sum":
                raise ValueError("aggregate is 'sum', which needs rewards 'continuous'")
            if self.default_reward is not None and not 0 <= self.default_reward <= 1:
                raise ValueError(f"default_reward is {self.default_reward:g}; pass one in [0, 1]")
        if self.retain_days is not None and self.retain_days * 86400 <= self.reward_wait:
            raise ValueError("retain_days is shorter than reward_wait; pass a longer one")
        if (work := len(names) * self.arms.dim**2) > LARGEST_CHOICE:
            raise ValueError(
                f"a decision among {len(names)} actions with {self.arms.dim} columns costs "
                f"{work:.1g}, above {LARGEST_CHOICE:.0e}; pass fewer, or features of actions with "
                "interactions 'shared'"
            )
        return self

    @property
    def arms(self) -> Arms:
        """Actions and context as columns."""
        kinds = {name: float if kind == "number" else kind for name, kind in self.context.items()}
        return Arms(
            self.actions, self.interactions, kinds if self.interactions else None, self.reserve
        )

    def agent(self, salt: str = "0") -> Agent:
        """Return an agent that has learnt nothing."""
        make = Agent.for_continuous_rewards
        if self.rewards != "continuous":
            make = Agent.for_binary_rewards
        baseline = self.baseline if self.holdout else None
        return make(
            arms=self.arms, capacity=PENDING, record=0, seed=int(salt, 16), holdout=self.holdout,
            baseline=baseline,
        )  # fmt: skip

    def changed(self, given: dict[str, object]) -> Settings:
        """Return settings with some changed; of what the state is made, actions can only be more.

        >>> Settings(actions=["a"], reserve=2).changed({"actions": ["b", "a"]}).actions
        ['a', 'b']
        """
        held = self.model_dump()
        for name in FIXED:
            if name in given and given[name] != held[name]:
                raise ValueError(
                    f"{name} can't be changed, since what was learnt rests on it; create a loop"
                )
        actions = given.get("actions")
        if not isinstance(actions, list | dict) or actions == held["actions"]:
            return Settings.model_validate({**held, **given})
        more = len({*Among(actions=actions).actions} - {*self.actions})
        blocks = more if self.interactions == "full" or isinstance(self.actions, list) else 0
        if blocks > self.reserve:
            raise ValueError(
                f"actions has {more} more, and reserve is {self.reserve}, the actions for which "
                "columns are kept free; create a loop with a larger reserve"
            )
        changed = Settings.model_validate({**held, **given, "reserve": self.reserve - blocks})
        now, then = _described(self.actions), _described(changed.actions)
        if lost := [name for name in now if name not in then or then[name] != now[name]]:
            raise ValueError(
                f"actions lacks or changes {lost[0]!r}, of which was learnt; pass all that there "
                "are, as they are, and new ones (`actions` of a decision are those on offer)"
            )
        ordered = {**now, **then}  # so that no column moves
        actions = [*ordered] if isinstance(changed.actions, list) else ordered
        changed = changed.model_copy(update={"actions": actions})
        if changed.arms.fields != self.arms.fields:
            raise ValueError(
                "actions has a word among features that no action had before, and so no column; "
                "pass words that are known, or create a loop"
            )
        return changed


def _described(actions: list[str] | dict[str, Features]) -> dict[str, Features | None]:
    return dict.fromkeys(actions) if isinstance(actions, list) else {**actions}


@dataclass(frozen=True)
class Loop:
    """A loop as its row in the database says."""

    id: int
    name: str
    salt: str
    settings: Settings
    paused: bool
    seq: int
    base: int  # the number of the last row that retention has deleted
    created: float

    @cached_property
    def arms(self) -> Arms:
        """Actions and context as columns."""
        return self.settings.arms


COLUMNS = "id, name, salt, settings, paused, seq, base, created"


def loop_of(row: Record) -> Loop:
    """Return the loop that a row of the database holds."""
    number, name, salt, settings, paused, *rest = row
    known = Settings.model_validate_json(settings)
    return Loop(number, name, salt, known, bool(paused), *rest)


def dumped(thing: object) -> str:
    """Return JSON in ASCII, which every database takes."""
    return json.dumps(thing, separators=(",", ":"), allow_nan=False)


def every(connection: Connection) -> list[Loop]:
    """Return all loops."""
    return [loop_of(row) for row in connection.rows(f"SELECT {COLUMNS} FROM loops ORDER BY id")]


def named(connection: Connection, name: str, lock: bool = False) -> Loop:
    """Return a loop by its name; with ``lock`` nobody changes it until the transaction ends."""
    tail = " FOR UPDATE" if lock and not connection.store.embedded else ""
    rows = connection.rows(f"SELECT {COLUMNS} FROM loops WHERE name = ?{tail}", name)
    if not rows:
        raise ValueError(f"there is no loop {name!r}")
    return loop_of(rows[0])


def insert(connection: Connection, name: str, settings: Settings) -> None:
    """Create a loop."""
    if settings.context and settings.interactions is None:
        raise ValueError(
            "context is given, but interactions is null, so that no field would count; leave "
            "context out, or pass interactions 'full' or 'shared'"
        )
    if not re.fullmatch(NAME, name):
        raise ValueError(f"name is {name!r}; pass up to 63 lower-case letters, digits and '-'")
    try:
        connection.change(
            "INSERT INTO loops (name, salt, settings, created) VALUES (?, ?, ?, ?)",
            name, secrets.token_hex(16), dumped(settings.model_dump()), time.time(),
        )  # fmt: skip
    except Doubled:
        raise NameTaken(f"name is {name!r}, which another loop has; choose another") from None


class NameTaken(ValueError):
    """Another loop has the name."""


def update(
    connection: Connection, name: str, settings: dict[str, object], paused: bool | None = None
) -> None:
    """Change some settings, or pause; the log says so, and what was before where actions change."""
    loop = named(connection, name, lock=True)
    changed = loop.settings.changed(settings)
    paused = loop.paused if paused is None else paused
    connection.change(
        "UPDATE loops SET settings = ?, paused = ? WHERE id = ?",
        dumped(changed.model_dump()), int(paused), loop.id,
    )  # fmt: skip
    body = {"settings": changed.model_dump(), "paused": paused}
    if changed.actions != loop.settings.actions:
        body["before"] = loop.settings.model_dump()
    note(connection, loop, "settings", body)


def settings_at(connection: Connection, loop: Loop, version: int) -> Settings:
    """Return settings with the actions after a row of the log: new ones may have come later."""
    now = connection.rows("SELECT settings FROM loops WHERE id = ?", loop.id)  # before the rows
    rows = connection.rows(
        "SELECT body FROM events WHERE loop = ? AND kind = 'settings' "
        "AND (seq > ? OR seq IS NULL) ORDER BY id",
        loop.id, version,
    )  # fmt: skip
    for (text,) in rows:
        if (before := json.loads(text).get("before")) is not None:
            return Settings.model_validate(before)
    return Settings.model_validate_json(now[0][0]) if now else loop.settings


def roll_back(connection: Connection, name: str, version: int) -> None:
    """Let the state be again what it was after so many rows; what comes later is learnt on."""
    loop = named(connection, name, lock=True)
    if not loop.base <= version <= loop.seq:
        raise ValueError(f"version is {version}; pass one from {loop.base} to {loop.seq}")
    note(connection, loop, "rollback", {"version": version})


def note(connection: Connection, loop: Loop, kind: str, body: dict[str, object]) -> None:
    """Insert a row of the log that is about no decision; the owner will number it."""
    connection.change(
        "INSERT INTO events (loop, event_id, kind, at, body) VALUES (?, ?, ?, ?, ?)",
        loop.id, secrets.token_hex(12), kind, time.time(), dumped(body),
    )  # fmt: skip
