"""The loop of rounds: choose, look, learn."""

from collections.abc import Iterator

import numpy as np

from .protocols import Array, BanditRounds, Player, State


def turns(
    player: Player[State], state: State, rounds: BanditRounds, rng: np.random.Generator
) -> Iterator[tuple[int, Array, int]]:
    """Play the rounds of a table one by one.

    Yields round, arms and the index of the chosen one before its reward is learnt, which is done
    when the next round is asked for.
    """
    fixed, known = rounds.arms.ndim == 2, rounds.sigma.ndim == 2
    for t in range(len(rounds.means)):
        arms = rounds.arms if fixed else rounds.arms[t]
        k = player.select(state, arms, rng, rounds.sigma[t] if known else None)
        yield t, arms, k
        sigma = rounds.sigma.item(t, k) if known else rounds.sigma.item(t)
        player.update(state, arms[k], rounds.rewards.item(t, k), sigma)
