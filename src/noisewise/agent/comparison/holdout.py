"""A share of decisions, or of subjects, that gets a baseline instead of what the agent chooses."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from ...inputs import finite, shown
from ...protocols import Array
from ..actions.action_features import Arms
from ..actions.context_fields import word
from ..actions.offers import Offer
from ..rewards.observations import checked_key

UNIFORM = "uniform"


class Holdout(NamedTuple):
    """A ``share`` of decisions gets the ``baseline``: an action, or an even draw of those on offer.

    Decisions are drawn one by one. Those of a subject are all in the holdout or all not, by a hash
    of the subject and the ``salt``, which is that of the agent's seed.
    """

    share: float = 0.0
    baseline: str | int | None = None
    salt: int = 0

    def place(self, offer: Offer) -> int | None:
        """Return where the baseline is on offer, None for an even draw."""
        if self.baseline == UNIFORM and self.baseline not in offer.names:
            return None
        actions: Sequence[object] = offer.names or range(len(np.atleast_1d(offer.x)))
        if self.baseline not in actions:
            raise ValueError(
                f"the baseline {self.baseline!r} is not on offer; offer it in every decision, or "
                "create the agent with baseline='uniform'"
            )
        return actions.index(self.baseline)

    def check(self, offers: Iterable[Offer], top: int | None) -> None:
        """Raise where the baseline is not on offer, or is one action in place of several."""
        for offer in offers if self.share else ():
            if self.place(offer) is not None and top is not None:
                raise ValueError(
                    f"top is {top}, but the baseline is one action; create the agent with "
                    "baseline='uniform' for several"
                )

    def subject(self, subject: object) -> int | None:
        """Return what stands for a subject: a hash, from -2^63 to 2^63."""
        key = checked_key(subject)
        if key is None:
            return None
        digest = blake2b(repr((self.salt, key)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little", signed=True)

    def draw(
        self, chosen: int, p: Array, place: int | None, subject: int | None,
        rng: np.random.Generator,
    ) -> tuple[int, Array, bool]:  # fmt: skip
        """Return what is played where the agent plays ``chosen``, of probabilities ``p``.

        Then the probability of each arm, and whether the baseline took the decision.
        """
        K, h = len(p), self.share
        baseline = np.full(K, 1 / K) if place is None else np.eye(K)[place]
        u = rng.random() if subject is None else subject / 2**64 + 0.5
        mixed = (1 - h) * p + h * baseline
        if u >= h:
            return chosen, mixed, False
        return int(rng.integers(K)) if place is None else place, mixed, True

    def someone(self, rng: np.random.Generator) -> int:
        """Return what stands for a subject that is seen once."""
        return int(rng.integers(-(2**63), 2**63))

    def draw_slate(
        self, best: list[int], p: Array, subject: int, rng: np.random.Generator
    ) -> tuple[list[int], Array, bool]:
        """Return what is played where the agent plays several, probabilities, and whether held.

        The baseline is an even draw: each action is in each slot with probability 1/K.
        """
        top, K = p.shape
        mixed = (1 - self.share) * p + self.share / K
        if subject / 2**64 + 0.5 >= self.share:
            return best, mixed, False
        return rng.permutation(K)[:top].tolist(), mixed, True


def holdout(share: object, baseline: object, arms: Arms | None, seed: int) -> Holdout:
    """Return the holdout of an agent, or raise."""
    value = finite("holdout", share, "a share of decisions, from 0 to 1")
    if not 0 <= value < 1:
        raise ValueError(f"holdout is {share!r}; pass a share of decisions, at least 0 and below 1")
    if value == 0:
        if baseline is not None:
            raise ValueError(
                f"baseline is {shown(baseline)}, but no decision is held out for it; pass "
                "holdout=0.05, say"
            )
        return Holdout()
    if baseline is None:
        raise ValueError(
            f"holdout is {share!r}, but baseline is None; pass the action without the agent, or "
            "baseline='uniform'"
        )
    if arms is None and baseline != UNIFORM:
        if isinstance(baseline, bool) or not isinstance(baseline, int | np.integer) or baseline < 0:
            raise ValueError(
                f"baseline is {shown(baseline)}; pass the index of an arm, or 'uniform'"
            )
        return Holdout(value, int(baseline), seed)
    name = word("baseline", baseline)
    if arms is not None and name != UNIFORM and name not in arms.actions:
        raise ValueError(
            f"baseline is {name!r}, no action; pass one of {shown(list(arms.actions))} or 'uniform'"
        )
    return Holdout(value, name, seed)
