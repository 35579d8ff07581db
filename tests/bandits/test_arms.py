"""Arms as input: what is refused, in any memory, and their kernels written out."""

from importlib import import_module

import numpy as np
import pytest
from instances import POLICIES as INSTANCES
from instances import sphere

import noisewise as nw
from noisewise.bandits.arms import candidates, observation

RNG = np.random.default_rng


@pytest.mark.parametrize(
    "policy", [nw.WeightedOFUL(), nw.WeightedOFULPlus(), nw.GLMUCB(), nw.Greedy()], ids=repr
)
def test_arms_beyond_the_bound_are_refused(policy):
    state = policy.start(2)
    with pytest.raises(ValueError, match="feature_bound"):
        policy.select(state, [[1.1, 0.0]], RNG(0))
    with pytest.raises(ValueError, match="feature_bound"):
        policy.update(state, [1.1, 0.0], 1.0)
    assert state.count == 0


def test_numbers_too_large_to_compute_with_are_refused():
    policy = nw.OFUL()
    state = policy.start(1)
    with pytest.raises(ValueError, match="rescale"):
        policy.select(state, [[1e160]], RNG(0))
    with pytest.raises(ValueError, match="rescale"):
        policy.update(state, [1e51], 1.0)
    with pytest.raises(ValueError, match="rescale"):
        policy.update(state, [1.0], 1e51)
    assert state.count == 0


def locked(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def strided(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


@pytest.mark.parametrize("policy", INSTANCES, ids=repr)
@pytest.mark.parametrize("seen", [np.asfortranarray, locked, np.ndarray.tolist, strided])
def test_memory_of_arms_does_not_matter(policy, seen):
    """Fortran blocks, read-only ones, lists and strided views serve as plain arrays do."""
    rng, plain, other = RNG(3), policy.start(4), policy.start(4)
    for t in range(12):
        arms = np.eye(4) if hasattr(policy, "one_hot") else sphere(rng, 5, 4)
        reward, sigma = float(rng.random() < 0.5), rng.uniform(0.2, 0.5, size=len(arms))
        k = policy.select(plain, arms, RNG(t), sigma)
        assert policy.select(other, seen(arms), RNG(t), sigma) == k
        policy.update(plain, arms[k], reward, float(sigma[k]))
        policy.update(other, seen(arms[k]), reward, float(sigma[k]))
    if hasattr(plain, "theta"):
        np.testing.assert_allclose(other.theta, plain.theta, rtol=1e-9, atol=1e-12)


def test_kernels_for_arms_written_out():
    kernels = import_module("noisewise.kernels.policies.arm_forms")
    rng = RNG(4)
    x, P = rng.normal(size=(300, 3)), np.diag([1.0, 2.0, 3.0])
    assert kernels.longest(x) == pytest.approx((x**2).sum(axis=1).max())
    for bad in (np.nan, np.inf, 1e200):
        worse = x.copy()
        worse[rng.integers(300), 1] = bad
        assert not kernels.longest(worse) < 1e300
    quads = np.empty(300)
    kernels.forms_of(x, P, quads)
    np.testing.assert_allclose(quads, (x**2) @ np.array([1.0, 2.0, 3.0]))
    V, inverse, b = 2 * np.eye(3), np.eye(3) / 2, np.zeros(3)
    growth = kernels.add_row(V, inverse, b, x[0], 0.5, 4.0, np.inf)
    assert growth == pytest.approx(2 * x[0] @ x[0])
    np.testing.assert_allclose(V, 2 * np.eye(3) + 4 * np.outer(x[0], x[0]))
    np.testing.assert_allclose(inverse @ V, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(b, 2 * x[0])
    before = inverse.copy()
    assert kernels.add_row(V, inverse, b, x[1], 0.5, 4.0, 1e-9) > 0  # too steep: left as it was
    np.testing.assert_array_equal(inverse, before)


@pytest.mark.parametrize("arms", [np.array(3.0), 3.0, np.empty(0), np.empty((0, 2)), np.ones(2)])
@pytest.mark.parametrize("policy", [nw.OFUL(), nw.FTRLUCB(radius="practical"), nw.Uniform()])
def test_what_is_no_table_of_arms_is_refused(policy, arms):
    with pytest.raises(ValueError, match="arms has shape"):
        policy.select(policy.start(2), arms, np.random.default_rng(0))


@pytest.mark.parametrize("kind", [np.array, np.ndarray.tolist], ids=["array", "list"])
def test_what_lies_just_beyond_is_refused(kind):
    """The bound passes with what single precision adds, a thousandth more does not."""
    for x in (np.array([1.0, 0.0]), np.array([1 + 5e-7, 0.0])):
        assert len(candidates(kind(x[None]), 2, 1.0)) == 1
        assert observation(kind(x), 1e50, 0.0, 2, 1.0)[1:] == (1e50, 0.0)
    long = np.array([1.001, 0.0])
    with pytest.raises(ValueError, match="arms holds a vector of norm"):
        candidates(kind(long[None]), 2, 1.0)
    with pytest.raises(ValueError, match="arm holds a vector of norm"):
        observation(kind(long), 1.0, 1.0, 2, 1.0)
    for reward, sigma, word in [
        (1.1e50, 1.0, "reward"),
        (1.0, np.inf, "sigma"),
        (1.0, -1.0, "sigma"),
    ]:
        with pytest.raises(ValueError, match=word):
            observation(kind(x), reward, sigma, 2, 1.0)
