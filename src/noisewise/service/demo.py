"""A simulated shop of known truth, whose visitors ask the service what to show them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from math import exp
from threading import Event
from typing import TypedDict

import numpy as np

from ..client import Client, ServiceError

LOOP = "shop"
BASELINE = "nothing"
SETTINGS: dict[str, object] = {
    "actions": ["discount", "free-shipping", "newsletter", BASELINE],
    "context": {"age": "number", "country": ["de", "fr", "it"], "returning": ["yes", "no"]},
    "baseline": BASELINE,
    "holdout": 0.1,
}
FIRST, BATCH, SECONDS = 1500, 20, 0.4  # visitors at once, then so many every so many seconds


class Visitor(TypedDict):
    """What the shop knows of a visitor."""

    age: float
    country: str
    returning: str


def rate(visitor: Visitor, action: str) -> float:
    """Return the share of such visitors who buy when they are shown an action."""
    young, back = (45 - visitor["age"]) / 25, visitor["returning"] == "yes"
    liking = {
        "discount": 0.9 + 0.9 * young,
        "free-shipping": 0.7 + (0.5 if visitor["country"] == "fr" else -0.2),
        "newsletter": 0.8 if back else -0.6,
        BASELINE: 0.0,
    }[action]
    return 1 / (1 + exp(1.8 - liking - 0.3 * back))


@dataclass
class Visitors:
    """Those who visit the shop, and what is true of them."""

    address: str
    seed: int | None = None
    more: list[float] = field(default_factory=list)  # rates of the agent less the baseline's

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.client = Client(self.address, timeout=10)

    def come(self, count: int) -> bool:
        """Let some visitors come, and reward what they are shown; return whether it was served."""
        visitors = [self._draw() for _ in range(count)]
        asked = [{"context": each, "event_id": uuid.uuid4().hex} for each in visitors]
        decisions = self.client.decide_many(LOOP, asked, BASELINE)
        given = []
        for visitor, decision in zip(visitors, decisions, strict=True):
            if decision.group == "fallback":
                return False
            p = rate(visitor, decision.action)
            if decision.group != "holdout":
                self.more.append(p - rate(visitor, BASELINE))
            bought = int(self.rng.random() < p)
            given.append({"event_id": decision.event_id, "value": bought})
        self.client.reward_many(LOOP, given)
        return True

    def keep_coming(self, ended: Event) -> None:
        """Let visitors come until it has ended, or nobody serves them."""
        try:
            while not ended.is_set() and self.come(BATCH):
                if len(self.more) > FIRST:
                    ended.wait(SECONDS)
        except ServiceError:
            pass  # the service has ended
        self.client.close()

    def _draw(self) -> Visitor:
        rng = self.rng
        return {
            "age": round(float(rng.uniform(18, 75)), 1),
            "country": str(rng.choice(["de", "fr", "it"], p=[0.5, 0.3, 0.2])),
            "returning": "yes" if rng.random() < 0.4 else "no",
        }
