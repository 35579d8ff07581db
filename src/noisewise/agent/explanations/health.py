"""Whether an agent is well: what it has seen of late, and what to do where that is odd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import NamedTuple

import numpy as np

from ...bandits.self_tuned_ucb_state import SelfTunedUCBState
from ...protocols import AnyPolicy, Array, trait
from ...storage.states import COUNT, check_fields
from ...support.printing import count_of
from ..actions.offers import Offer
from ..rewards.observations import Action, Key, PendingKey, is_key, owner
from .reasons import means

RECENT = 1000  # actions that are remembered
EVERY, SAMPLES = 32, 100  # decisions per one that is looked at, and how many of these are kept
ENOUGH = 100  # decisions before a share says anything
ONE_ACTION, UNREWARDED, EXPLORING, CLIPPED, OLD = 0.95, 0.5, 0.5, 0.05, 0.9


class Finding(NamedTuple):
    """A number, what it says in a sentence, and what to do about it; "" where that is nothing."""

    name: str
    value: float
    sentence: str
    advice: str = ""


class Health(list[Finding]):
    """What `Agent.health` finds; prints as a list, with advice where there is any.

    >>> print(Health([Finding("restarts", 2, "2 restarts.", "Look at the data.")]))
    look  2 restarts. Look at the data.
    """

    def of(self, name: str) -> Finding:
        """Return the finding of a name."""
        findings = {each.name: each for each in self}
        if name not in findings:
            raise ValueError(f"name is {name!r}; pass one of {', '.join(findings)}")
        return findings[name]

    @property
    def advice(self) -> list[str]:
        """What to look at, in sentences."""
        return [f"{each.sentence} {each.advice}" for each in self if each.advice]

    def __repr__(self) -> str:
        return "\n".join(
            f"{'look' if each.advice else 'fine'}  {each.sentence} {each.advice}".rstrip()
            for each in self
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


@dataclass
class Watch:
    """What an agent remembers of its decisions beside those that are pending.

    ``taken`` counts actions; ``since`` has, by key, how many were taken before a pending one.
    ``explored`` and ``clipped`` are of samples: whether the policy preferred another action than
    that of the highest estimate, and whether the context was beyond what the policy has seen.
    """

    taken: int = 0
    given_up: int = 0
    refused: int = 0
    recent: list[Action] = field(default_factory=list)
    explored: list[bool] = field(default_factory=list)
    clipped: list[bool] = field(default_factory=list)
    since: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        since: object = self.since  # a file has a list
        pairs = list(since.items()) if isinstance(since, dict) else since
        if (
            not isinstance(pairs, list)
            or not all(isinstance(each, tuple) and len(each) == 2 for each in pairs)
            or not all(is_key(key) and type(n) is int for key, n in pairs)
        ):
            raise ValueError("Watch.since holds what is no key and number")
        self.since = dict(pairs)
        check_fields(self, taken=COUNT, given_up=COUNT, refused=COUNT)
        for each in (self.explored, self.clipped):
            if not isinstance(each, list) or not all(type(part) is bool for part in each):
                raise ValueError("Watch holds a sample that is none")
        fits = isinstance(self.recent, list)
        if not fits or not all(type(each) in (str, int) for each in self.recent):
            raise ValueError("Watch.recent holds what is no action")

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "since": list(self.since.items())}

    def __setstate__(self, parts: dict[str, object]) -> None:
        vars(self).update(parts)
        self.since = dict(self.since)

    def copy(self) -> Watch:
        """Return a watch of its own; lists of samples are replaced, and never changed."""
        return replace(self, recent=self.recent[:], since=dict(self.since))

    def note_many(self, keys: Sequence[Key], actions: Sequence[Action]) -> bool:
        """Remember decisions of one action each; return whether to look at the last of them."""
        before = self.taken
        self.note(keys[-1], actions)
        self.since.update(zip(keys, range(before, self.taken), strict=True))
        return self.taken // EVERY > before // EVERY

    def note(self, key: Key, actions: Sequence[Action]) -> bool:
        """Remember a decision; return whether it is to be looked at."""
        before, self.taken = self.taken, self.taken + len(actions)
        self.since[key] = self.taken - 1
        self.recent += actions
        if len(self.recent) > 2 * RECENT:
            del self.recent[:-RECENT]
        every = EVERY * len(actions)
        return self.taken // every > before // every

    def look(self, policy: AnyPolicy, state: object, offer: Offer, k: int) -> None:
        """Remember whether arm ``k`` is preferred to learn, and whether its context is odd."""
        estimates = means(policy, state, offer.x) if trait(state, "dim", 0) else None
        if estimates is None:
            return
        self.explored = [*self.explored[1 - SAMPLES :], bool(estimates[k] < estimates.max())]
        if isinstance(state, SelfTunedUCBState) and state.number.context and state.count > ENOUGH:
            self.clipped = [*self.clipped[1 - SAMPLES :], beyond(state, offer.x[k])]

    def forget_all_but(self, pending: dict[PendingKey, Array]) -> None:
        """Keep the numbers of pending decisions alone, once others are many."""
        if len(self.since) > 2 * len(pending) + RECENT:
            kept = set(map(owner, pending))
            self.since = {key: n for key, n in self.since.items() if key in kept}


def beyond(state: SelfTunedUCBState, x: Array) -> bool:
    """Return whether the context of an arm is beyond the limits that the policy has learnt."""
    d, v = int(state.number.context), state.vector
    blocks = x[len(x) - int(state.number.blocks) * (d + 1) :].reshape(-1, d + 1)
    head = np.abs(blocks[:, 0]).argmax()
    if not blocks[head, 0]:
        return False
    c = blocks[head, 1:] / blocks[head, 0]
    return bool(((c < v.low[:d]) | (c > v.high[:d])).any())


def health(
    watch: Watch, pending: dict[PendingKey, Array], capacity: int, dropped: int, state: object
) -> Health:
    """Return what there is to say."""
    n, open_ = watch.taken, len(pending)
    findings = [_rewards(watch, open_, n)]
    oldest = next(iter(pending), None)
    age = max(n - 1 - watch.since.get(owner(oldest), n - 1), 0)
    full = open_ >= OLD * capacity or dropped
    findings.append(Finding(
        "oldest pending", age,
        (
            f"{count_of(age, 'decision')} came after the oldest pending one; {open_:,} of at most "
            f"{capacity:,} are pending, {dropped:,} dropped."
            if open_
            else f"No decision is pending, of at most {capacity:,}; {dropped:,} dropped."
        ),
        "Forget what will have no reward, learn 0 where no reward means none, or pass a larger "
        "capacity." if full else "",
    ))  # fmt: skip
    recent = watch.recent[-RECENT:]
    if recent:
        action, most = Counter(recent).most_common(1)[0]
        share, many = most / len(recent), len(recent) >= ENOUGH
        findings.append(Finding(
            "largest share of an action", share,
            f"{action!r} took {100 * share:.0f} % of the last {count_of(len(recent), 'decision')}.",
            "If others may have become better, randomise a share of decisions, such as "
            "randomise=0.02 with among='all'." if many and share > ONE_ACTION else "",
        ))  # fmt: skip
    restarts, count = trait(state, "restarts", None), trait(state, "count", 0)
    if restarts is not None:
        often = restarts > 3 and restarts * 1000 > count
        findings.append(Finding(
            "restarts", restarts,
            f"The agent started over {count_of(restarts, 'time')} in {count_of(count, 'reward')}.",
            "The world changes often, or rewards depend on something that the context lacks: add "
            "it." if often else "",
        ))  # fmt: skip
    findings.append(Finding(
        "refused contexts", watch.refused, f"{count_of(watch.refused, 'context')} refused.",
        "Read the error messages: fields are missing, or of another kind than declared."
        if watch.refused > 0.01 * n else "",
    ))  # fmt: skip
    if watch.clipped:
        share = sum(watch.clipped) / len(watch.clipped)
        findings.append(Finding(
            "clipped contexts", share,
            f"{100 * share:.0f} % of recent contexts were beyond what is usual, and clipped.",
            "A field may have changed its unit or meaning." if share > CLIPPED else "",
        ))  # fmt: skip
    if watch.explored:
        share, late = (
            sum(watch.explored) / len(watch.explored),
            count > 10 * trait(state, "dim", 0) + ENOUGH,
        )
        findings.append(Finding(
            "exploration", share,
            f"The bonus decided {100 * share:.0f} % of recent decisions: without it another action "
            "would have been preferred.",
            "Rewards are few for so many features: leave some out, use interactions='shared', or "
            "hash words into fewer columns." if late and share > EXPLORING else "",
        ))  # fmt: skip
    return Health(findings)


def _rewards(watch: Watch, open_: int, n: int) -> Finding:
    without = open_ + watch.given_up
    share = without / n if n else 0.0
    return Finding(
        "without reward", share,
        f"{without:,} of {n:,} decisions have no reward: {open_:,} pending, "
        f"{watch.given_up:,} given up.",
        "If no reward means none, learn 0 after some time: decisions without a reward teach "
        "nothing, and the agent expects the others to be like those that came."
        if n >= ENOUGH and share > UNREWARDED else "",
    )  # fmt: skip
