"""The public checks over every instance, and that the checks can fail."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from instances import ENVIRONMENTS, LINKS, POLICIES, REGRESSORS

import noisewise as nw
from noisewise import checks
from noisewise.checks.comparison import same
from noisewise.simulate import started


@pytest.mark.parametrize("link", LINKS, ids=repr)
@pytest.mark.parametrize("bound", [0.3, 1.0, 4.0])
def test_every_link_passes(link, bound):
    checks.check_link(link, bound)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=repr)
def test_every_regressor_passes(regressor):
    checks.check_regressor(regressor)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_every_environment_passes(environment):
    checks.check_environment(environment)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_policy_passes(policy):
    checks.check_policy(policy)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=repr)
def test_an_empty_block_is_nothing(regressor):
    state = started(regressor, np.ones((1, 2)) / 2)
    before = copy.deepcopy(state)
    assert regressor.update(state, np.empty((0, 2)), np.empty(0)).shape == (0,)
    assert same(before, state)


@pytest.mark.parametrize("thing", [*LINKS, *REGRESSORS, *POLICIES, *ENVIRONMENTS], ids=repr)
def test_specs_are_values(thing):
    again = pickle.loads(pickle.dumps(thing))
    assert again == thing
    assert hash(thing) == hash(thing)
    assert type(thing).__name__ in repr(thing)


def _square(z):
    return z + 0.3 * z * z


BROKEN_LINKS = {
    "slope": nw.Link("s", np.tanh, lambda z: 1.01 / np.cosh(z) ** 2),
    "potential": nw.Link("p", np.tanh, lambda z: np.cosh(z) ** -2.0, lambda z: 0.4 * z * z),
    "concordance": nw.Link("c", np.tanh, lambda z: np.cosh(z) ** -2.0, None, 1.0),
    "increasing": nw.Link("i", _square, lambda z: 1 + 0.6 * z),
}


@pytest.mark.parametrize("fault", BROKEN_LINKS)
def test_a_faulty_link_is_found(fault):
    with pytest.raises((AssertionError, ValueError)):
        checks.check_link(BROKEN_LINKS[fault], 2.0)


@dataclasses.dataclass(frozen=True)
class Faulty(nw.FTRL):
    """FTRL with one fault at a time; each must be caught by some check."""

    fault: str = ""

    def predict(self, state, x):
        if self.fault == "predict writes":
            state.folded += 1
        return super().predict(state, x)

    def update(self, state, x, y, weight=1.0):
        if self.fault == "weight ignored":
            weight = np.sign(weight)
        if self.fault == "late mean":
            super().update(state, x, y, weight)
            return self.predict(state, x)
        if self.fault == "changes input" and isinstance(x, np.ndarray):
            x *= 0.5
        if self.fault == "first axis":
            x = np.array(x, dtype=float)
            x[..., 0] *= 0.5
        if self.fault == "touches before checking":
            state.folded += 1
        if self.fault == "block as one" and np.ndim(x) == 2:
            before = self.predict(state, x)
            super().update(state, x, y, weight)
            return before
        return super().update(state, x, y, weight)


@pytest.mark.parametrize(
    "fault",
    [
        "predict writes",
        "weight ignored",
        "late mean",
        "changes input",
        "first axis",
        "touches before checking",
        "block as one",
    ],
)
def test_a_faulty_regressor_is_found(fault):
    with pytest.raises(AssertionError):
        checks.check_regressor(Faulty(nw.GLM(), tolerance=0, fault=fault))


def test_a_faultless_subclass_passes():
    checks.check_regressor(Faulty(nw.GLM(), tolerance=0))


@dataclasses.dataclass(frozen=True)
class FaultyWorld:
    """An environment with one fault at a time; each must be caught by some check."""

    fault: str = ""

    def draw(self, rng, rounds, dim):
        if self.fault == "global generator":
            np.random.random()  # noqa: NPY002
        if self.fault == "own seed":
            rng = np.random.default_rng(0)
        found = nw.environments.Stream().draw(rng, rounds, dim)
        noise, x, w = found.y - found.mean, found.x, found.weight
        faulty = {
            "shape": {"mean": found.mean[:, None]},
            "nan": {"y": np.where(noise > 3, np.nan, found.y)},
            "biased": {"y": found.y + 0.2},
            "leaning": {"y": found.y + 0.3 * x[:, 0]},
            "weight knows": {"weight": np.where(noise > 0, 2.0, 1.0)},
            "negative": {"weight": -w},
        }.get(self.fault, {})
        return dataclasses.replace(found, **faulty)


WORLD_FAULTS = ["global generator", "own seed", "shape", "nan", "biased", "leaning"]
WORLD_FAULTS += ["weight knows", "negative"]


@pytest.mark.parametrize("fault", WORLD_FAULTS)
def test_a_faulty_environment_is_found(fault):
    checks.check_environment(FaultyWorld())
    with pytest.raises(AssertionError):
        checks.check_environment(FaultyWorld(fault))


@dataclasses.dataclass(frozen=True)
class FaultyArena:
    """A bandit world whose last arm pays more than its mean."""

    def draw(self, rng):
        found = nw.environments.NoisyBandit(rounds=2000, arms=3, dim=2).draw(rng)
        rewards = found.rewards + np.array([0.0, 0.0, 0.2])
        return dataclasses.replace(found, rewards=rewards)


def test_every_arm_is_looked_at():
    with pytest.raises(AssertionError, match="arm 2"):
        checks.check_environment(FaultyArena())


def test_a_world_over_given_rows_passes():
    rows = nw.environments.Sphere().draw(np.random.default_rng(0), 500, 2)
    checks.check_environment(nw.environments.Stream(nw.environments.Given(rows)))


def test_a_part_of_a_world_is_refused():
    with pytest.raises(ValueError, match="a part of a world"):
        checks.check_environment(nw.environments.Cube())


@dataclasses.dataclass(frozen=True)
class FaultyPolicy(nw.OFUL):
    """OFUL with one fault at a time; each must be caught by some check."""

    fault: str = ""

    def select(self, state, arms, rng, sigma=None):
        if self.fault == "select writes":
            state.count += 1
        if self.fault == "counts from one":
            return super().select(state, arms, rng) + 1
        if self.fault == "numpy integer":
            return np.int64(super().select(state, arms, rng))
        if self.fault == "own randomness":
            return int(np.random.default_rng().integers(len(arms)))
        if self.fault == "last of ties":
            return len(arms) - 1 - super().select(state, arms[::-1], rng)
        if self.fault == "looks at position":
            return super().select(state, arms, rng) if len(arms) < 7 else 3
        if self.fault == "first axis":
            arms = np.array(arms, dtype=float)
            arms[:, 0] *= 0.5
        return super().select(state, arms, rng)

    def update(self, state, arm, reward, sigma=1.0):
        if self.fault == "changes input" and isinstance(arm, np.ndarray):
            arm *= 0.5
        if self.fault == "order matters":
            reward = reward / (1 + state.count)
        if self.fault == "touches before checking":
            state.count += 1
        if self.fault == "takes any sigma":
            sigma = 1.0
        super().update(state, arm, reward, sigma)

    def confidence(self, state):
        sets = super().confidence(state)
        return sets[0] if self.fault == "one set" else sets


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("select writes", "select writes nothing"),
        ("counts from one", "one arm works"),
        ("numpy integer", "one arm works"),
        ("own randomness", "select is decided by the generator"),
        ("last of ties", "ties give the lowest index"),
        ("looks at position", "permuting arms permutes choices"),
        ("first axis", "rotation leaves choices alone"),
        ("changes input", "inputs are neither kept nor changed"),
        ("order matters", "late rewards give the same estimate"),
        ("one set", "confidence sets are ellipsoids"),
        ("touches before checking", "bad input leaves the state alone"),
        ("takes any sigma", "bad input leaves the state alone"),
    ],
)
def test_a_faulty_policy_is_found(fault, check):
    named = dict(checks.yield_checks(FaultyPolicy(fault=fault)))
    with pytest.raises(AssertionError):
        named[check]()


def test_a_faultless_policy_passes():
    checks.check_policy(FaultyPolicy())


class SaysItNeedsSigma(nw.OFUL):
    needs_sigma = True


class SaysItTakesUnitVectors(nw.OFUL):
    one_hot = True


@pytest.mark.parametrize("policy", [SaysItNeedsSigma(), SaysItTakesUnitVectors()], ids=repr)
def test_a_policy_must_refuse_what_it_says_it_can_not_use(policy):
    with pytest.raises(AssertionError, match="accepted"):
        dict(checks.yield_checks(policy))["bad input leaves the state alone"]()


class Mistyped(nw.OFUL):
    not_promised = ("mistyped",)


def test_what_is_not_promised_is_not_checked():
    names = [name for name, _ in checks.yield_checks(nw.LinearThompson())]
    assert "rotation leaves choices alone" not in names
    assert "ties give the lowest index" in names
    with pytest.raises(ValueError, match="not_promised names 'mistyped'"):
        checks.check_policy(Mistyped())
