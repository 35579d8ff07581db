"""SelfTunedUCB over 100,000 rounds of fixed arms: it neither restarts by chance nor gives up."""

from importlib import import_module

import numpy as np
import pytest
from places import ROOT

import noisewise as nw


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_regret_of_long_runs_flattens(family, monkeypatch):
    """Twenty seeds, worlds in turn: regret is no straight line, and the best arm is found."""
    monkeypatch.syspath_prepend(ROOT)
    runs = import_module("benchmarks.long_runs")
    names = list(runs.WORLDS[family])
    found = [runs.play(family, names[i % len(names)], 100_000, 100 + i) for i in range(20)]
    print(runs.line(family, found))
    _, second, half, worse, _ = np.transpose(found)
    assert second.mean() < 1 or half.mean() <= 1.6 * second.mean()
    assert (worse > runs.WORSE).sum() <= 1


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_an_arm_that_was_left_long_ago_gains(family):
    """Beyond 3000 rewards without a change the bonus of such an arm grows, not that of others."""
    policy, rng = nw.SelfTunedUCB(family), np.random.default_rng(3)
    state = policy.start(2)
    for y in rng.integers(2, size=40).tolist():
        policy.update(state, [1.0, 0.0], float(y))
    policy.update(state, [0.0, 1.0], 0.0)
    bonuses = []
    for since in (41.0, 3000.0, 30_000.0):
        state.number.since_restart = since
        bonuses.append(policy.index(state, np.eye(2)) - policy.scores(state, np.eye(2)))
    np.testing.assert_array_equal(bonuses[0], bonuses[1])
    known, left = np.square(bonuses[2]) - np.square(bonuses[1])
    assert 0 < known < left / 10
