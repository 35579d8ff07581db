"""What clients ask for: decisions and rewards, settled against the rows of the same event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from .loops import Strict, dumped
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

    value: Annotated[float, Field(ge=-1e100, le=1e100)]
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


@dataclass(frozen=True)
class Answer:
    """A status, and the body or the cause that goes with it."""

    status: int
    body: dict[str, Any] | None = None
    code: str = ""
    message: str = ""
    where: str = ""


@dataclass(frozen=True)
class Decided:
    """A decision that was taken and is to be kept, or was kept before."""

    loop: int
    event_id: str
    at: float
    asked: str  # what tells one request from another
    body: dict[str, Any]  # the row of the log
    paused: bool  # whether only an earlier decision is answered

    def settle(self, found: list[Row]) -> tuple[Answer, Row | None]:
        """Return this decision, or the one that was kept under the same name."""
        for _, event_id, kind, _, _, text in found:
            if kind == "decide":
                held = json.loads(text)
                if held["asked"] != self.asked:
                    message = "another decision has this event_id; pass a new one"
                    return Answer(409, None, "event_id_taken", message, "event_id"), None
                return Answer(201, answer_of(event_id, held)), None
        if self.paused:
            message = "the loop is paused; play the baseline"
            return Answer(409, None, "paused", message, "loop"), None
        body = {**self.body, "asked": self.asked}
        row = (self.loop, self.event_id, "decide", "", self.at, dumped(body))
        return Answer(201, answer_of(self.event_id, body)), row


def answer_of(event_id: str, held: dict[str, Any]) -> dict[str, Any]:
    """Return what a client hears of a decision in the log."""
    names = ("action", "estimate", "lower", "upper", "probability")
    ranking = [dict(zip(names, each, strict=True)) for each in held["ranking"]]
    answer = {
        "event_id": event_id, "action": held["chosen"][0], "ranking": ranking,
        "group": held["group"], "version": held["version"],
    }  # fmt: skip
    return {**answer, "actions": held["chosen"]} if held["top"] else answer


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

    def settle(self, found: list[Row]) -> tuple[Answer, Row | None]:
        """Return whether it is new, known, late or refused.

        The earliest reward of each slot is learnt at once, unless rewards are summed.
        """
        decided = [row for row in found if row[2] == "decide"]
        if not decided:
            message = "there is no decision with this event_id; it was never taken, or is too old"
            return Answer(404, None, "unknown_event", message, "event_id"), None
        slots = len(json.loads(decided[0][5])["chosen"])
        slot = self.given.slot
        if (slot is None and slots > 1) or (slot or 0) >= slots:
            message = f"the decision has {slots} slots; pass slot, from 0 to {slots - 1}"
            return Answer(422, None, "slot", message, "slot"), None
        slot = slot or 0
        name = f"{self.given.reward_id}#{slot}" if slot else self.given.reward_id
        value = self.given.model_dump(include={"value", "trials", "sigma"}, exclude_none=True)
        others = []
        for _, _, kind, reward_id, _, text in found:
            if kind == "reward":
                held = json.loads(text)
                if reward_id == name:
                    return self._again(held, value), None
                others.append(held)
        late = self.at > decided[0][4] + self.wait or any(row[2] == "expire" for row in found)
        first = not any(each["slot"] == slot and each["learn"] for each in others)
        body = {**value, "slot": slot, "late": late, "learn": not (late or self.summed) and first}
        return _kept(late), (self.loop, self.event_id, "reward", name, self.at, dumped(body))

    def _again(self, held: dict[str, Any], value: dict[str, float]) -> Answer:
        if {name: held.get(name) for name in ("value", "trials", "sigma")} != {
            "value": None, "trials": None, "sigma": None, **value
        }:  # fmt: skip
            message = "this reward_id, empty by default, has another value; the first one is kept"
            return Answer(409, None, "reward_id_taken", message, "reward_id")
        return _kept(held["late"])


def _kept(late: bool) -> Answer:
    return Answer(202, {"reward": "late"}) if late else Answer(204)
