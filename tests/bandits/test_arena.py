"""Regret on the named worlds, at full length. Seeds are 0, 1, 2, ... in every world."""

import numpy as np
import pytest

import noisewise as nw
from noisewise.environments import WORLDS
from noisewise.theory import bandit_regret

pytestmark = pytest.mark.slow


def regrets(name, policy, seeds):
    world, found = WORLDS[name], []
    for seed in range(seeds):
        rounds = world.draw(np.random.default_rng(seed))
        played = nw.choices(policy, rounds, np.random.default_rng(seed))
        found.append(bandit_regret(rounds, played)[-1])
    return np.array(found)


@pytest.mark.parametrize(
    ("name", "seeds", "mean", "worst"),
    [
        ("fresh-linear", 20, 8.5, 30),
        ("fresh-logistic", 20, 10.5, 30),
        ("fresh-binomial", 20, 10.0, 30),
        ("fixed-linear", 100, 10.0, 45),
        ("fixed-logistic", 100, 11.5, 60),
        ("fixed-binomial", 100, 10.0, 40),
        ("sparse-linear", 100, 33.0, 232),
    ],
)
def test_practical_index(name, seeds, mean, worst):
    """Means lie two to five standard errors below these bars: false alarm at most a few per cent
    for other seeds, none for these unless the numbers change. The worst run of a hundred has a
    heavy tail: on fixed logistic arms it was 60.4 for another hundred seeds.
    """
    kinds = {"binomial": "likelihood", "sparse": "bounded"}
    noise = next((kinds[word] for word in name.split("-") if word in kinds), "sub-gaussian")
    found = regrets(name, nw.FTRLUCB(WORLDS[name].glm, noise, 1.0, radius="practical"), seeds)
    print(f"{name}: mean {found.mean():.2f}, worst {found.max():.1f}")
    assert found.mean() <= mean
    assert found.max() <= worst


@pytest.mark.parametrize("name", ["fresh-linear", "fresh-logistic"])
def test_adaptive_radius_against_the_printed_one(name):
    glm = WORLDS[name].glm
    ours = regrets(name, nw.MORUCB(glm, 1.0, 0.1), 3).mean()
    printed = regrets(name, nw.MORUCB(glm, 1.0, 0.1, radius="printed"), 3).mean()
    print(f"{name}: {ours:.1f} against {printed:.1f}")
    assert ours <= 0.1 * printed
