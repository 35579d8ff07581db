"""The regret of policies with a guarantee, on worlds drawn for this test alone."""

from dataclasses import replace

import numpy as np
import pytest

import noisewise as nw

WORLDS = nw.environments.WORLDS
LOUD, QUIET = 0.5, 0.05  # the standard deviations of these worlds

# world, rounds, policy, the largest mean regret of ten seeds
CASES = [
    ("fixed-linear", 3000, lambda glm: nw.FTRLUCB(glm), 30),
    ("fresh-linear", 3000, lambda glm: nw.FTRLUCB(glm), 10),
    ("fixed-logistic", 5000, lambda glm: nw.MORUCB(glm, LOUD, QUIET, noise="sub-gaussian"), 140),
    ("fresh-logistic", 5000, lambda glm: nw.MORUCB(glm, LOUD, QUIET, noise="sub-gaussian"), 16),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "rounds", "make", "most"), CASES, ids=lambda each: str(each)[:14]
)
def test_mean_regret(world, rounds, make, most):
    """Seeds were not looked at before; standard errors are about a twentieth of the mean."""
    spec, found = replace(WORLDS[world], rounds=rounds), []
    for seed in range(10):
        table = spec.draw(np.random.default_rng([1416, seed]))
        played = nw.choices(make(spec.glm), table, np.random.default_rng(seed))
        found.append(nw.theory.bandit_regret(table, played)[-1])
    print(world, np.round(np.mean(found), 1), np.round(np.std(found) / 10**0.5, 1), np.max(found))
    assert np.mean(found) <= most
