"""What clients ask for: decisions and rewards, settled against the rows of the same event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, NotRequired, TypedDict

from pydantic import Field, StringConstraints, model_validator

from ..loops import Strict, dumped
from ..web.answers import Answer, Refused
from .writer import Row

Identity = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:@+=~-]{1,128}$")]
Positive = Annotated[float, Field(gt=1e-100, lt=1e100)]


class DecideBody(Strict):
    """A decision that is asked for."""

    context: dict[str, float | str] = Field(
        default_factory=dict, max_length=10_000, description="a value for each field of the loop"
    )
    event_id: Identity | None = Field(
        default=None, description="makes retries safe; by default the service chooses one"
    )
    subject: Annotated[str, Field(max_length=256)] | None = Field(
        default=None, description="who stays in the holdout or out of it, such as a user"
    )
    actions: list[str] | None = Field(
        default=None, min_length=1, max_length=10_000, description="those on offer; all by default"
    )
    top: int | None = Field(
        default=None, ge=1, le=1000, description="how many actions to return, in order"
    )


class RewardBody(Strict):
    """A reward; with ``trials`` the mean of so many, with ``sigma`` of that standard deviation."""

    value: float = Field(ge=-1e100, le=1e100, description="what came of the decision")
    reward_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:@+=~-]{0,128}$")] = Field(
        default="", description="counts once; the earliest is learnt, or the sum of all"
    )
    trials: Positive | None = Field(default=None, description="the value is a mean of so many")
    sigma: Positive | None = Field(
        default=None, description="standard deviation of the noise, for continuous rewards"
    )
    slot: int | None = Field(
        default=None, ge=0, le=999, description="which of several actions, from 0 on"
    )

    @model_validator(mode="after")
    def _one(self) -> RewardBody:
        if self.trials is not None and self.sigma is not None:
            raise ValueError("trials and sigma are given; pass one of them")
        return self


Ranked = tuple[str, float | None, float | None, float | None, float]


class DecisionRow(TypedDict):
    """A decision as the log has it; ``ranking`` has estimate, lower, upper and probability."""

    context: list[float | str]
    chosen: list[str]
    ranking: list[Ranked]
    group: str
    version: int
    top: int | None
    subject: str | None
    asked: str  # what tells one request from another


class RewardRow(TypedDict):
    """A reward as the log has it, of one slot of a decision."""

    value: float
    trials: NotRequired[float]
    sigma: NotRequired[float]
    slot: int
    late: bool
    learn: bool  # at once


class ExpireRow(TypedDict):
    """What is learnt for each slot of a decision once its wait is over."""

    rewards: list[float | None]


@dataclass(frozen=True)
class Decided:
    """A decision that was taken and is to be kept, or was kept before."""

    loop: int
    event_id: str
    at: float
    body: DecisionRow
    paused: bool  # whether only an earlier decision is answered

    def settle(self, found: list[Row]) -> tuple[Answer | Refused, Row | None]:
        """Return this decision, or the one that was kept under the same name."""
        for row in found:
            if row.kind == "decide":
                held: DecisionRow = json.loads(row.body)
                if held["asked"] != self.body["asked"]:
                    message = "another decision has this event_id; pass a new one"
                    return Refused(409, message, "event_id", "event_id_taken"), None
                return Answer(201, answer_of(self.event_id, held)), None
        if self.paused:
            message = "the loop is paused; play the baseline"
            return Refused(409, message, "loop", "paused"), None
        new = Row(self.loop, self.event_id, "decide", "", self.at, dumped(self.body))
        return Answer(201, answer_of(self.event_id, self.body)), new


def answer_of(event_id: str, held: DecisionRow) -> dict[str, object]:
    """Return what a client hears of a decision in the log."""
    answer = {
        "event_id": event_id, "action": held["chosen"][0], "ranking": ranking(held),
        "group": held["group"], "version": held["version"],
    }  # fmt: skip
    return {**answer, "actions": held["chosen"]} if held["top"] else answer


def ranking(held: DecisionRow) -> list[dict[str, object]]:
    """Return what was known of each action, by name."""
    names = ("action", "estimate", "lower", "upper", "probability")
    return [dict(zip(names, each, strict=True)) for each in held["ranking"]]


def fingerprint(body: DecideBody) -> str:
    """Return what tells one request for a decision from another."""
    return sha256(body.model_dump_json(exclude={"event_id"}).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Rewarded:
    """A reward that is to be kept."""

    loop: int
    event_id: str
    at: float
    given: RewardBody
    wait: float
    summed: bool

    def settle(self, found: list[Row]) -> tuple[Answer | Refused, Row | None]:
        """Return whether it is new, known, late or refused.

        The earliest reward of each slot is learnt at once, unless rewards are summed.
        """
        decided = next((row for row in found if row.kind == "decide"), None)
        if decided is None:
            message = "there is no decision with this event_id; it was never taken, or is too old"
            return Refused(404, message, "event_id", "unknown_event"), None
        taken: DecisionRow = json.loads(decided.body)
        slots, slot = len(taken["chosen"]), self.given.slot
        if (slot is None and slots > 1) or (slot or 0) >= slots:
            message = f"the decision has {slots} slots; pass slot, from 0 to {slots - 1}"
            return Refused(422, message, "slot", "slot"), None
        slot = slot or 0
        name = f"{self.given.reward_id}#{slot}" if slot else self.given.reward_id
        value, trials, sigma = self.given.value, self.given.trials, self.given.sigma
        before: dict[str, RewardRow] = {
            row.reward_id: json.loads(row.body) for row in found if row.kind == "reward"
        }
        if (held := before.get(name)) is not None:
            if (held["value"], held.get("trials"), held.get("sigma")) != (value, trials, sigma):
                message = "this reward_id, empty by default, has another value; the first is kept"
                return Refused(409, message, "reward_id", "reward_id_taken"), None
            return kept(held["late"]), None
        late = self.at > decided.at + self.wait or any(row.kind == "expire" for row in found)
        first = not any(each["slot"] == slot and each["learn"] for each in before.values())
        learn = first and not late and not self.summed
        body: RewardRow = {"value": value, "slot": slot, "late": late, "learn": learn}
        if trials is not None:
            body["trials"] = trials
        if sigma is not None:
            body["sigma"] = sigma
        new = Row(self.loop, self.event_id, "reward", name, self.at, dumped(body))
        return kept(late), new


def kept(late: bool) -> Answer:
    """Return the answer to a reward that is in the log."""
    return Answer(202, {"reward": "late"}) if late else Answer(204)
