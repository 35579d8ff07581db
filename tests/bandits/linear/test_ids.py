"""IDS: information, the best law over arms, what it plays."""

import dataclasses
import itertools

import numpy as np
import pytest
from instances import learnt, sphere
from scipy.optimize import minimize

import noisewise as nw
from noisewise import environments as env
from noisewise.bandits.linear import ids

RNG = np.random.default_rng


def numbers(policy, seed, arms=7):
    """A learnt state with arms, their noise, gaps and gains."""
    state, rng = learnt(policy, seed)[0], RNG([seed, 1])
    x, sigma = sphere(rng, arms, 3), rng.uniform(0.0, 1.0, size=arms)
    return state, x, sigma, policy.gaps(state, x), policy.gains(state, x, sigma)


@pytest.mark.parametrize("seed", range(5))
def test_information_of_ids_is_what_the_determinant_gains(seed):
    """Half the gain of log det V; and half the log of how much the top arm's variance falls."""
    full, ucb = nw.IDS(information="full"), nw.IDS()
    state, x, sigma, gap, gain = numbers(full, seed)
    rho = np.maximum(sigma, 0.05)
    more = [state.V + np.outer(a, a) / r**2 for a, r in zip(x, rho, strict=True)]
    log_dets = np.array([np.linalg.slogdet(M)[1] for M in more]) - np.linalg.slogdet(state.V)[1]
    np.testing.assert_allclose(gain, log_dets / 2, rtol=1e-9)
    (disc,) = full.confidence(state)
    top = int(np.argmax(disc.upper(x)))
    after = np.array([x[top] @ np.linalg.solve(M, x[top]) for M in more])
    told = ucb.gains(state, x, sigma)
    now = x[top] @ np.linalg.solve(state.V, x[top])
    np.testing.assert_allclose(told, np.log(now / after) / 2, rtol=1e-9, atol=1e-14)
    assert (told <= gain * (1 + 1e-12)).all()
    assert told[top] == pytest.approx(gain[top], rel=1e-12)
    np.testing.assert_allclose(gap, disc.upper(x).max() - disc.lower(x), rtol=1e-12)


@pytest.mark.parametrize("information", ["full", "ucb"])
@pytest.mark.parametrize("seed", range(5))
def test_two_arms_are_the_best_law(seed, information):
    """Randomised <= deterministic <= the UCB arm; no mixture of 2000, nor SLSQP, does better."""
    policy = nw.IDS(information=information)
    state, x, sigma, gap, gain = numbers(policy, seed)
    i, j, p = ids.mixture(gap, gain)
    best = (p * gap[i] + (1 - p) * gap[j]) ** 2 / (p * gain[i] + (1 - p) * gain[j])
    single = policy.select(state, x, RNG(0), sigma)
    assert single == np.argmin(gap**2 / gain)
    top = int(np.argmax(policy.confidence(state)[0].upper(x)))
    slack = 1 + 1e-12
    assert best <= slack * gap[single] ** 2 / gain[single] <= slack**2 * gap[top] ** 2 / gain[top]
    rng = RNG([seed, 2])
    laws = np.concatenate([rng.dirichlet(np.full(7, a), size=1000) for a in (1.0, 0.1)])
    ratios = (laws @ gap) ** 2 / (laws @ gain)
    assert best <= slack * ratios.min()
    found = minimize(
        lambda q: (q @ gap) ** 2 / (q @ gain),
        laws[np.argmin(ratios)],
        bounds=[(0, 1)] * 7,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        method="SLSQP",
    )
    assert best <= found.fun + 1e-6


def test_the_law_of_two_arms_equals_a_fine_grid():
    """Both proper mixtures and single arms come up among 50 random pairs."""
    grid, rng, proper = np.linspace(0, 1, 20_001), RNG(3), 0
    for _ in range(50):
        gap, gain = 10 ** rng.uniform(-2, 0, size=2), 10 ** rng.uniform(-4, 0, size=2)
        i, j, p = ids.mixture(gap, gain)
        mine = (p * gap[i] + (1 - p) * gap[j]) ** 2 / (p * gain[i] + (1 - p) * gain[j])
        mixed = (grid * gap[0] + (1 - grid) * gap[1]) ** 2 / (grid * gain[0] + (1 - grid) * gain[1])
        assert mixed.min() * (1 - 1e-7) <= mine <= mixed.min() * (1 + 1e-12)
        proper += i != j and 0 < p < 1
    assert 5 < proper < 45


def test_no_law_of_three_arms_is_better_than_that_of_two():
    """Six arms, every triple, weights on a grid of steps 1/60; every pair to 1e-4 as well."""
    steps = np.arange(61) / 60
    p, q = (each.ravel() for each in np.meshgrid(steps, steps))
    triple = np.column_stack([p, q, 1 - p - q])[p + q <= 1 + 1e-12]
    fine = np.column_stack([np.linspace(0, 1, 10_001), np.linspace(1, 0, 10_001)])
    for seed in range(4):
        rng = RNG([seed, 8])
        gap, gain = 10 ** rng.uniform(-2, 0, size=6), 10 ** rng.uniform(-4, 0, size=6)
        i, j, p = ids.mixture(gap, gain)
        mine = (p * gap[i] + (1 - p) * gap[j]) ** 2 / (p * gain[i] + (1 - p) * gain[j])
        pairs, triples = (
            min(
                ((law @ gap[list(at)]) ** 2 / (law @ gain[list(at)])).min()
                for at in itertools.combinations(range(6), law.shape[1])
            )
            for law in (fine, triple)
        )
        assert pairs * (1 - 1e-6) <= mine <= pairs * (1 + 1e-12)
        assert mine <= triples * (1 + 1e-12)


def test_ids_uses_every_number_of_its_set():
    policy = nw.IDS("full", False, 2.0, 0.1, 0.3, 0.2, 0.7)
    state, x, *_ = learnt(policy)
    beta = 0.7 * np.sqrt(2 * np.log(5) + np.linalg.slogdet(state.V / 0.6)[1]) + np.sqrt(0.6) * 2
    wide = beta * np.sqrt(np.einsum("ij,ij->i", x, np.linalg.solve(state.V, x.T).T))
    mean = x @ state.theta
    np.testing.assert_allclose(policy.gaps(state, x), (mean + wide).max() - mean + wide, rtol=1e-9)


def test_parallel_arms_without_noise_teach_a_finite_amount():
    """Their correlation is 1 to rounding, which must not exceed the noise floor."""
    policy = nw.IDS(noise_floor=1e-9)
    for seed in range(20):
        state = policy.start(3)
        policy.update(state, sphere(RNG([seed, 3]), 1, 3)[0], 0.5, 0.3)
        arms = np.outer([1.0, 0.7, -0.3], sphere(RNG(seed), 1, 3)[0])
        gain = policy.gains(state, arms, np.zeros(3))
        full = dataclasses.replace(policy, information="full").gains(state, arms, np.zeros(3))
        np.testing.assert_allclose(gain, full, rtol=0.25)  # the log of an eps that was 1e-18


def test_ids_draws_with_the_probability_it_found():
    """4,000 draws; the frequency is within six standard errors, false alarm below 1e-8."""
    policy = nw.IDS(information="full", randomised=True)
    state = policy.start(2)
    policy.update(state, [1.0, 0.0], 1.0, 0.1)
    x, sigma = np.eye(2), np.array([1.0, 0.05])
    i, j, p = ids.mixture(policy.gaps(state, x), policy.gains(state, x, sigma))
    assert {i, j} == {0, 1}
    assert 0.05 < p < 0.95
    rng = RNG(4)
    share = np.mean([policy.select(state, x, rng, sigma) == i for _ in range(4000)])
    assert abs(share - p) < 6 * np.sqrt(p * (1 - p) / 4000)


@pytest.mark.parametrize("information", ["full", "ucb"])
@pytest.mark.parametrize("randomised", [False, True])
def test_ids_is_ucb_where_all_arms_teach_the_same(information, randomised):
    """Equal widths and noise; and the arms +1, -1 in one dimension."""
    policy = nw.IDS(information=information, randomised=randomised)
    one = policy.start(1)
    for reward in (0.3, -0.9, -0.4):
        policy.update(one, [1.0], reward, 0.5)
    assert policy.select(one, [[1.0], [-1.0]], RNG(0), [0.5, 0.5]) == 1
    if information == "full":  # of one known width, but directions differ
        state = policy.start(4)
        for arm, reward in zip(np.eye(4), (0.1, 0.2, 0.7, 0.3), strict=True):
            policy.update(state, arm, reward, 0.5)
        best = nw.WeightedLeastSquaresUCB().select(state, np.eye(4), RNG(0))
        assert policy.select(state, np.eye(4), RNG(0), np.full(4, 0.5)) == best == 2


@pytest.mark.parametrize("information", ["full", "ucb"])
@pytest.mark.parametrize("randomised", [False, True])
def test_ids_plays_what_is_known_to_be_best(information, randomised):
    """The zero arm teaches nothing, but the only other one is surely worse."""
    policy = nw.IDS(information=information, randomised=randomised)
    state = policy.start(1)
    for _ in range(2000):
        policy.update(state, [1.0], -1.0, 0.1)
    arms = [[1.0], [0.0], [0.0]]
    assert all(policy.select(state, arms, RNG(i), np.full(3, 0.1)) == 1 for i in range(20))


def test_ids_asks_for_the_noise_of_every_arm():
    policy = nw.IDS()
    with pytest.raises(ValueError, match="sigma is None"):
        policy.select(policy.start(2), np.eye(2), RNG(0))
    rounds = env.NoisyBandit(dim=2, arms=3, rounds=2).draw(RNG(0))
    with pytest.raises(ValueError, match="sigma is None"):
        nw.choices(policy, rounds, RNG(0))
