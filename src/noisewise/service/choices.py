"""Decisions from a state: read and checked, drawn, and held with what was known."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from ..bandits.arms import candidates
from ..bandits.self_tuned_ucb import SelfTunedUCB
from ..bandits.self_tuned_ucb_state import SelfTunedUCBState
from ..protocols import Array
from .log.events import DecideBody, Ranked
from .loops import UNIFORM, Loop
from .web.answers import Refused


@dataclass(frozen=True)
class View:
    """The state as it was after ``version`` rows, from which decisions are taken.

    Decisions taken from it count as pending in it, so that a batch does not repeat one.
    """

    policy: SelfTunedUCB
    state: SelfTunedUCBState
    version: int

    def known(self, x: Array) -> Array:
        """Return the estimate and the interval of every arm, rounded, (3, n)."""
        mean, interval = self.policy.mean(self.state, x), self.policy.interval(self.state, x)
        return _short(np.array([mean, *interval]))


@dataclass(frozen=True)
class Choice:
    """A decision: what was played in each slot, and what was known of the arms."""

    chosen: list[str]
    ranking: list[Ranked]
    group: str


class Request:
    """A request for a decision, read and checked before anything is drawn or stored.

    A ValueError says why the context can't be used.
    """

    def __init__(self, loop: Loop, body: DecideBody) -> None:
        arms, declared = loop.arms, loop.settings.context
        self.body, self.top, self.settings = body, body.top or 1, loop.settings
        self.names = arms.actions if body.actions is None else tuple(body.actions)
        if unknown := [name for name in body.actions or () if name not in arms.actions]:
            message = (
                f"actions has {unknown[0]!r}, which is none of this loop's; pass those on offer, "
                "and add a new one to the settings of the loop"
            )
            raise Refused(422, message, "actions")
        if len({*self.names}) < len(self.names):
            raise Refused(422, "actions has one twice; pass different ones", "actions")
        if self.top > len(self.names):
            message = f"top is {body.top}, of {len(self.names)} actions; pass fewer"
            raise Refused(422, message, "top")
        if unused := [name for name in body.context if name not in declared]:
            fields = f"fields {', '.join(declared)}" if declared else "no fields"
            raise ValueError(
                f"context has {unused[0]!r}, which this loop would not use: it has {fields}; "
                "leave it out, or create a loop with this field"
            )
        self.values = arms.read(body.context, clip=True)
        self.x = candidates(arms.matrix(self.values, self.names), arms.dim)

    def decide(self, view: View, known: Array, salt: str, rng: np.random.Generator) -> Choice:
        """Return a decision, and count it as pending in the view; ``known`` is of these arms."""
        index = view.policy.index(view.state, self.x)
        best = np.lexsort((rng.random(len(index)), -index)).tolist()  # equal ones in any order
        group, order, p = self._drawn(best, salt, rng)
        chosen = order[: self.top]
        for k in chosen:
            view.policy.expect(view.state, self.x[k])
        shown = chosen if self.top > 1 else [*chosen, *(k for k in best if k != chosen[0])]
        slots = np.arange(len(shown)) if self.top > 1 else 0
        names = [self.names[k] for k in shown]
        held = known[:, shown].astype(object)
        held[~np.isfinite(known[:, shown])] = None
        columns = held.tolist()
        ranking = list(zip(names, *columns, p[slots, shown].tolist(), strict=True))
        return Choice(names[: self.top], ranking, group)

    def _drawn(
        self, best: list[int], salt: str, rng: np.random.Generator
    ) -> tuple[str, list[int], Array]:
        """Return the group, all arms in the order of play, and the probabilities in each slot.

        A holdout plays the baseline, first, then the others in any order.
        """
        K, s = len(self.names), self.settings
        h = s.holdout if s.baseline == UNIFORM or s.baseline in self.names else 0.0
        whose = self.body.subject
        share = rng.random() if whose is None else _hashed(salt, whose)
        held, explored, order = share < h, rng.random() < s.explore, rng.permutation(K).tolist()
        p = np.full((self.top, K), s.explore / K)
        p[np.arange(self.top), best[: self.top]] += 1 - s.explore
        base = np.full((self.top, K), 1 / K)
        if s.baseline in self.names:
            first = self.names.index(s.baseline)
            base[:], base[:, first] = 1 / max(K - 1, 1), 0.0
            base[0] = np.arange(K) == first
            if held:
                order = [first, *(k for k in order if k != first)]
        p = h * base + (1 - h) * p
        if held:
            return "holdout", order, p
        return ("explore", order, p) if explored else ("agent", best, p)


def decide(
    view: View, requests: list[Request], salt: str, rng: np.random.Generator
) -> list[Choice]:
    """Return decisions, each of which counts as pending for the next."""
    known = view.known(np.concatenate([each.x for each in requests]))
    ends = np.cumsum([len(each.x) for each in requests])[:-1]
    parts = np.split(known, ends, axis=1)
    return [each.decide(view, part, salt, rng) for each, part in zip(requests, parts, strict=True)]


def _hashed(salt: str, subject: str) -> float:
    """Return a number from 0 to 1, the same for a subject each time."""
    text = f"{salt} {subject}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=7).digest(), "big") / 2**56


def _short(values: Array) -> Array:
    """Return numbers with six digits, which is what a row of the log has room for.

    >>> _short(np.array([0.12345678, -12345678.0, np.inf])).tolist()
    [0.123457, -12345700.0, inf]
    """
    with np.errstate(all="ignore"):
        scale = 10.0 ** (5 - np.floor(np.log10(np.abs(values))))
        found = np.where(
            scale > 1, np.rint(values * scale) / scale, np.rint(values * scale) * (1 / scale)
        )
    return np.where(np.isfinite(scale) & np.isfinite(found), found, values)
