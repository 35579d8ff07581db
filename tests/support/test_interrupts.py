"""An interrupt at any moment: what was learnt is whole, and goes on as if nothing had happened.

A timer raises `KeyboardInterrupt` in the middle of a call; the caller looks how many rows are
learnt and goes on with the next. In the end the state must be that of an undisturbed learner.
"""

import copy
import signal
import time
from functools import partial

import numpy as np
import pytest
from histories import practical_agent, practical_shares
from instances import CAUCHIT, close, sphere

import noisewise as nw
from noisewise.regression.ftrl.newton import minimise
from noisewise.regression.history import Block

D = 4
LOGISTIC = nw.GLM("logistic")
LEARNERS = {
    "identity": nw.FTRL(nw.GLM(), ridge=0.5),
    "logistic": nw.FTRL(LOGISTIC, ridge=0.5, tolerance=0.003),
    "aggregate": nw.FTRL(LOGISTIC, ridge=0.5, tolerance=0.003, aggregate=True),
    "own link": nw.FTRL(nw.GLM(CAUCHIT), ridge=0.5),
    "exact": nw.FTRL(LOGISTIC, ridge=0.5, tolerance=0),
    "exact, aggregate": nw.FTRL(LOGISTIC, ridge=0.5, tolerance=0, aggregate=True),
}
# an interrupt that falls into a callback of a weak reference is printed there, not raised
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

POLICIES = {
    "practical": nw.FTRLUCB(LOGISTIC, radius="practical"),
    "adaptive": nw.FTRLUCB(LOGISTIC),
    "layers": nw.MORUCB(LOGISTIC),
    "nested layers": nw.MORUCB(LOGISTIC, nested=True, radius="freedman"),
}


@pytest.fixture
def interrupted():
    """A function that calls another, interrupts it after some seconds, and says if it did."""
    armed = []

    def once(*_):
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, once)

    def call(seconds, function, *args):
        try:
            return attempt(seconds, function, *args)
        except KeyboardInterrupt:  # on the way out, with an answer or an error
            return False

    def attempt(seconds, function, *args):
        began = False
        try:
            armed.append(True)
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
            began = True
            function(*args)
        except KeyboardInterrupt as error:
            # one that comes on the way back from the call is not the call's
            return not began or error.__traceback__.tb_next.tb_next is not None
        finally:
            armed.clear()
        return False

    yield call
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def seconds_of(function, *args):
    function(*args)
    began = time.perf_counter()
    function(*args)
    return time.perf_counter() - began


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(sphere(rng, count, D), 1) * 0.9, np.round(rng.random(count))


def one_by_one(learner, state, x, y):
    for row, label in zip(x, y.tolist(), strict=True):
        learner.update(state, row, label)


def ask(learner, state, x, y):
    for _ in range(3):
        learner.interval(state, x[0], nw.SubGaussian(0.5))
        learner.solve(state)


def go_on(state, x, y, size):
    """The next rows, those after the ones that are learnt."""
    at = np.arange(state.count, state.count + size) % len(x)
    return x[at], y[at]


def check(learner, state, x, y):
    """The estimate is the minimiser of the rows learnt, found from the rows alone."""
    x, y = go_on(learner.start(D), x, y, state.count)
    learner.solve(state)
    UH = 2 * state.ridge * np.eye(D) + learner.glm.min_slope * x.T @ x
    rows = [Block(x, np.ones(len(x)), y, np.zeros(len(x)))]
    point, gap = minimise(learner.glm, state.ridge, rows, np.zeros(D), np.linalg.inv(UH))
    away = state.theta - point.theta
    assert np.sqrt(away @ UH @ away) <= state.gap + gap
    assert state.gap < 1e-6
    undisturbed = learner.start(D)
    learner.update(undisturbed, x, y)
    learner.solve(undisturbed)
    noise = nw.SubGaussian(0.5)
    wide, usual = (np.ptp(learner.interval(each, x[0], noise)) for each in (state, undisturbed))
    # what was played depends on where passes fell; an interrupt moves them
    assert wide == pytest.approx(usual, rel=1e-9 if learner.glm.linear else 0.02)


def learn_on(learner, interrupted, hits):
    """Blocks, single rows and questions with so many interrupts."""
    rng, (x, y) = np.random.default_rng(hits), rows(4000)
    fast = learner.tolerance > 0 and learner.glm.link.name in nw.LINKS
    size, state, got = 700 if fast else 10, learner.start(D), 0
    calls = {learner.update: 1.0, partial(one_by_one, learner): 1.0, partial(ask, learner): 0.1}
    usual = {call: seconds_of(call, learner.start(D), x[:size], y[:size]) for call in calls}
    torn = learner.start(D)
    torn.head.busy = 1.0
    learner.solve(torn)  # to load a kernel takes longer than any call, and recovering has its own
    while got < hits:
        call = [*calls][rng.integers(3)]
        got += interrupted(1.2 * usual[call] * rng.random(), call, state, *go_on(state, x, y, size))
    check(learner, state, x, y)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_regressor_is_whole_after_interrupts(name, interrupted):
    learn_on(LEARNERS[name], interrupted, 12)


@pytest.mark.parametrize("name", LEARNERS)
def test_an_interrupt_of_a_step_stays_an_interrupt(name):
    learner = LEARNERS[name]
    state, (x, y) = learner.start(D), rows(1)

    def step(*_):
        raise KeyboardInterrupt

    state.step = step
    with pytest.raises(KeyboardInterrupt):
        learner.update(state, x[0], float(y[0]))


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_a_regressor_is_whole_after_many_interrupts(name, interrupted):
    for _ in range(4):
        learn_on(LEARNERS[name], interrupted, 100)


def play_on(policy, interrupted, hits):
    rng, (x, y) = np.random.default_rng(hits), rows(4000)
    state, got = policy.start(D), 0

    def some(state):
        policy.select(state, x[:5], rng)  # repairs what an interrupt has left
        for row, label in zip(*go_on(state, x, y, 100), strict=True):
            policy.update(state, row, label, 0.9)
            policy.select(state, x[:5], rng)

    usual = seconds_of(some, policy.start(D))
    while got < hits:
        got += interrupted(1.2 * usual * rng.random(), some, state)
    policy.select(state, x[:5], rng)
    other = policy.start(D)
    for row, label in zip(*go_on(other, x, y, state.count), strict=True):
        policy.update(other, row, label, 0.9)
    assert state.count == other.count
    for one, two in zip(state.layers, other.layers, strict=True):
        learner = nw.FTRL(policy.glm)
        assert one.count == two.count
        assert one.ridge == pytest.approx(two.ridge, rel=0.05)
        if one.ridge == two.ridge:
            learner.solve(one)
            learner.solve(two)
            close(one.theta, two.theta, 1e-7)
    for one, two in zip(policy.confidence(state), policy.confidence(other), strict=True):
        assert np.ptp([one.lower(x[0]), one.upper(x[0])]) == pytest.approx(
            np.ptp([two.lower(x[0]), two.upper(x[0])]), rel=0.05
        )


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_whole_after_interrupts(name, interrupted):
    play_on(POLICIES[name], interrupted, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_whole_after_many_interrupts(name, interrupted):
    play_on(POLICIES[name], interrupted, 100)


def teach_on(interrupted, hits, agent, other):
    """Each reward is learnt again until that is not interrupted; ``other`` is left in peace."""
    rng, (x, y) = np.random.default_rng(hits), rows(2000)
    y = y * rng.gamma(0.5, size=2000) if agent.rewards is None else y  # ever larger ones
    got, t = 0, 0
    usual = [seconds_of(copy.deepcopy(agent).learn, x[:n], y[:n]) for n in (1, 1, 4)]
    while got < hits:
        i = t % 1996
        block, keyed = slice(i, i + 4), f"decision {t}"
        for each in (agent, other):
            each.choose(x[i : i + 1], key=keyed)
        whose = (keyed, x[i], x[block])[t % 3], (y[i], y[i], y[block])[t % 3]
        patience = 3 * usual[t % 3]
        while interrupted(patience * rng.random(), agent.learn, *whose):
            got, patience = got + 1, 1.2 * patience
        other.learn(*whose)
        for each in (agent, other):
            if t % 3:
                each.forget(keyed)
        t += 1
        assert not agent.waiting
        assert agent.state.count == other.state.count
    assert (agent.unit, agent.policy) == (other.unit, other.policy)
    if isinstance(agent.policy, nw.SelfTunedUCB):
        arms = sphere(rng, 3, D)
        close(*(each.policy.index(each.state, arms) for each in (agent, other)), 1e-9)
        assert [row.index for row in agent.explain(arms)] == pytest.approx(
            [row.index for row in other.explain(arms)], rel=1e-9
        )
        return
    for one, two in zip(agent.state.layers, other.state.layers, strict=True):
        assert one.count == two.count
    if agent.scale is not None:
        assert agent.scale.count == other.scale.count
        assert agent.scale.square == pytest.approx(other.scale.square, rel=1e-9)
        close(agent.state.theta, other.state.theta, 1e-9)


def agents(make):
    return make(D), make(D)


def nested(dim):
    return nw.Agent(nw.MORUCB(LOGISTIC, nested=True), dim, sigma=0.1)


@pytest.mark.parametrize("make", [practical_agent, nested, nw.Agent.for_continuous_rewards])
def test_an_interrupted_reward_changes_nothing_else(interrupted, make):
    """Unit, scale, policy and every layer are those of an agent left in peace."""
    teach_on(interrupted, 30, *agents(make))


def test_an_interrupt_stays_one_where_the_state_is_lost(interrupted):
    agent = nw.Agent(nw.LinUCB(), D)
    x, y = rows(50)
    for seconds in np.random.default_rng(0).uniform(0, 5e-5, size=400):
        try:
            interrupted(seconds, agent.learn, x[0], y[0])  # KeyboardInterrupt or none
        except ValueError as error:
            assert "half-way" in str(error)  # noqa: PT017 - of the interrupt before
            agent = nw.Agent(nw.LinUCB(), D)


def test_an_interrupted_reward_is_learnt_once(interrupted):
    for make in (practical_shares, nw.Agent.for_binary_rewards):
        teach_on(interrupted, 20, *agents(make))


@pytest.mark.slow
def test_many_interrupted_rewards_are_learnt_once(interrupted):
    doors = (nw.Agent.for_binary_rewards, nw.Agent.for_continuous_rewards)
    for make in (*doors, practical_shares, practical_agent, nested):
        teach_on(interrupted, 200, *agents(make))


def test_a_torn_state_is_refused():
    """Other methods refuse what an interrupt has left half written."""

    def torn(*_):
        raise KeyboardInterrupt

    policy = nw.LinUCB()
    state = policy.start(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("noisewise.bandits.linear.linear_state.compiled", torn)
        with pytest.raises(KeyboardInterrupt):
            policy.update(state, [1.0, 0.0], 1.0)
    for use in (
        lambda: policy.select(state, np.eye(2), np.random.default_rng(0)),
        lambda: policy.update(state, [1.0, 0.0], 1.0),
        lambda: nw.save("state.npz", policy, state),
    ):
        with pytest.raises(ValueError, match="interrupted half-way"):
            use()
