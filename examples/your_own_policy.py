"""A policy of your own: explore first, then play the arm whose estimate is best.

noisewise check your_own_policy:EXPLORE
noisewise reproduce bandits --policy your_own_policy:EXPLORE --trials 2
"""

from dataclasses import dataclass

import numpy as np

import noisewise as nw


@dataclass(frozen=True)
class ExploreFirst:
    """Draw arms at random for ``rounds`` rewards, then play greedily on weighted least squares."""

    rounds: int = 50
    not_promised = "permuting arms permutes choices", "ties give the lowest index"

    def start(self, dim):
        return nw.Ridge(0.5).start(dim)

    def select(self, state, arms, rng, sigma=None):
        if np.ndim(arms) != 2:
            raise ValueError(f"arms has shape {np.shape(arms)}; pass a row per arm")
        means = nw.Ridge(0.5).predict(state, arms)
        if state.count < self.rounds:
            return int(rng.integers(len(means)))
        return int(np.argmax(means))

    def update(self, state, arm, reward, sigma=1.0):
        if not 0 <= sigma < np.inf:
            raise ValueError(f"sigma is {sigma}; pass a standard deviation")
        nw.Ridge(0.5).update(state, arm, reward, weight=1 / max(sigma, 0.05) ** 2)


EXPLORE = ExploreFirst()

if __name__ == "__main__":
    world = nw.environments.WORLDS["fixed-linear"].draw(np.random.default_rng(0))
    for policy in (EXPLORE, nw.LinUCB(), nw.FTRLUCB(radius="practical")):
        played = nw.choices(policy, world, np.random.default_rng(1))
        regret = nw.theory.bandit_regret(world, played)[-1]
        print(f"{type(policy).__name__:14} regret {regret:6.1f} after {len(played)} rounds")
