"""A share of decisions drawn at random, with the probability of every arm."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...inputs import finite, one_of
from ...protocols import AnyPolicy, Array, trait
from ..explanations.reasons import checked_arms, ranked

AMONG = ("plausible", "all")


class Randomisation(NamedTuple):
    """In a ``share`` of decisions the arm is drawn uniformly, ``among`` "plausible" ones or "all".

    Plausible are those whose index reaches the best estimated mean: arms that may be the best as
    far as the policy knows. The others have probability 0.
    """

    share: float
    among: str

    def draw(
        self, policy: AnyPolicy, state: object, arms: Array, chosen: int, rng: np.random.Generator
    ) -> tuple[int, Array]:
        """Return the arm to play where the policy chose one, and the probability of every arm."""
        if not self.share:
            return chosen, np.eye(len(arms))[chosen]
        p = self.probabilities(policy, state, arms, chosen)
        return int(rng.choice(len(p), p=p)), p

    def probabilities(self, policy: AnyPolicy, state: object, arms: Array, chosen: int) -> Array:
        r"""Return the probability of every arm, given what the policy chose.

        With m arms to draw from, :math:`p = \text{share}/m`, and the rest goes to the policy's.
        Where the policy itself draws, they are given its draw: weights 1/p stay unbiased.
        """
        drawn = self.drawn_from(policy, state, arms, chosen)
        p = np.where(drawn, self.share / drawn.sum(), 0.0)
        p[chosen] += 1 - self.share
        return p

    def drawn_from(
        self, policy: AnyPolicy, state: object, arms: Array, chosen: int | list[int]
    ) -> NDArray[np.bool_]:
        """Return whether each arm may be drawn; those that the policy chose may."""
        x = checked_arms(policy, state, arms)
        drawn = np.ones(len(x), dtype=bool)
        if self.among == "plausible":
            scores, index = ranked(policy, state, x)
            assert scores is not None
            assert index is not None  # asked for when the agent was created
            drawn = index >= scores.max()
            drawn[chosen] = True
        return drawn


def check_share(share: object, among: object) -> Randomisation:
    """Return how decisions are drawn, if that is possible."""
    value = finite("randomise", share, "a share of decisions, from 0 to 1")
    if not 0 <= value <= 1:
        raise ValueError(f"randomise is {share!r}; pass a share of decisions, from 0 to 1")
    return Randomisation(value, one_of("among", among, AMONG))


def randomisation(policy: AnyPolicy, state: object, share: object, among: object) -> Randomisation:
    """Return how an agent randomises, if its policy can."""
    checked = check_share(share, among)
    if checked.among == "all" and not checked.share:
        raise ValueError("among is 'all', but no decision is drawn; pass randomise=0.05, say")
    if checked.share and checked.among == "plausible":
        dim = trait(state, "dim", 0)
        scores, index = ranked(policy, state, np.zeros((1, dim))) if dim else (None, None)
        if scores is None or index is None:
            raise ValueError(f"among is 'plausible', but {policy} has no index; pass among='all'")
    return checked
