"""The restart test of SelfTunedUCB: how often it errs, and how fast it is."""

from dataclasses import replace

import numpy as np
import pytest

import noisewise as nw
from noisewise.environments import Levels, StudentT
from noisewise.environments.practical import PracticalLinear, PracticalLogistic

WORLDS = {
    "gaussian": PracticalLinear(scales=Levels((0.3,)), sd_given=False),
    "sds given": PracticalLinear(),
    "t3": PracticalLinear(scales=Levels((0.3,)), noise=StudentT(3.0), sd_given=False),
    "bernoulli": PracticalLogistic(norm=3.0),
}


def restarts(world, seed, switch=None):
    """How many rewards had been learnt at the first restart after the switch, None if never."""
    drawn = world.draw(np.random.default_rng([seed, 31]))
    policy, rounds, rng = nw.SelfTunedUCB(drawn.family), drawn.rounds, np.random.default_rng(seed)
    state = policy.start(rounds.arms.shape[-1])
    for t in range(len(rounds.means)):
        k = policy.select(state, rounds.arms, rng)
        policy.update(state, rounds.arms[k], rounds.rewards.item(t, k), rounds.sigma.item(t))
        if state.restarts and state.last_restart > (switch or 0):
            return state.last_restart
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_false_alarms_are_rare(name):
    """At most 2 % of 500 runs of 5000 rounds; at 1 % each that fails with probability .014."""
    world = replace(WORLDS[name], rounds=5000)
    alarms = sum(restarts(world, seed) is not None for seed in range(500))
    print(name, "false alarms in 500 runs:", alarms)
    assert alarms <= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"), [("sds given", 40), ("gaussian", 40), ("t3", 40), ("bernoulli", 130)]
)
def test_a_switch_of_all_effects_is_noticed_soon(name, most):
    """The median delay after a new parameter is drawn, of 200 runs: measured 23, 25, 21, 53."""
    world = replace(WORLDS[name], rounds=2000, switch=1000)
    found = [restarts(world, seed, 1000) for seed in range(200)]
    delays = np.array([np.inf if at is None else at - 1000 for at in found])
    print(name, "median delay:", np.median(delays), "never:", np.isinf(delays).mean())
    assert np.median(delays) <= most
