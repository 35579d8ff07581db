"""Results do not depend on where an input lies in memory: old processors' loops begin elsewhere."""

import copy

import numpy as np
import pytest
from instances import POLICIES, REGRESSORS, sphere

from noisewise.bandits.arms import norm_bound
from noisewise.checks.comparison import same
from noisewise.simulate import started

OFFSETS = 0, 1, 3


def placed(x, offset):
    """Return a copy of ``x`` that begins so many numbers behind a cache line."""
    room = np.empty(x.size + 16)
    first = -room.ctypes.data % 64 // 8 + offset
    room[first : first + x.size] = x.reshape(-1)
    return room[first : first + x.size].reshape(x.shape)


def drawn(spec, dim, count=16):
    rng = np.random.default_rng(dim)
    x = sphere(rng, count, dim, 0.9 * (norm_bound(spec, "feature_bound") or 1.0))
    if getattr(spec, "one_hot", False):
        x = np.eye(dim)[rng.integers(dim, size=count)]
    return x, rng.uniform(size=count), rng.uniform(0.2, 1.0, size=count)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_policies_round_alike_wherever_arms_lie(policy):
    for dim in (3, 5):
        x, y, s = drawn(policy, dim)
        results = []
        for offset in OFFSETS:
            state, rng, chosen = policy.start(dim), np.random.default_rng(1), []
            for i in range(len(x)):
                arms, sds = (placed(np.roll(each, i, axis=0)[:6], offset) for each in (x, s))
                chosen.append(policy.select(state, arms, rng, sds))
                policy.update(state, placed(x[i], offset), float(y[i]), float(s[i]))
            results.append((chosen, state))
        assert same(results[0], results[1])
        assert same(results[0], results[2])


@pytest.mark.parametrize("regressor", REGRESSORS, ids=repr)
def test_regressors_round_alike_wherever_rows_lie(regressor):
    for dim in (3, 5):
        x, y, w = drawn(regressor, dim)
        fresh, results = started(regressor, x, w), []
        for offset in OFFSETS:
            state = copy.deepcopy(fresh)
            for i in range(8):
                regressor.update(state, placed(x[i], offset), float(y[i]), float(w[i]))
            regressor.update(state, *(placed(each[8:], offset) for each in (x, y, w)))
            means = [regressor.predict(state, placed(each, offset)) for each in (x, x[0])]
            results.append((means, state))
        assert same(results[0], results[1])
        assert same(results[0], results[2])
