"""Threads: an agent may be shared, a state may not."""

import copy
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
from histories import practical_agent, practical_shares
from instances import close, exact, sphere

import noisewise as nw
from noisewise.agent.learning import RewardLearner
from noisewise.kernels.self_tuned_ucb.self_tuned_ucb_numbers import KnownNumbers, M
from noisewise.storage import files
from noisewise.support.ownership import Owned


@pytest.fixture(autouse=True)
def impatient_threads():
    """Threads take turns a thousand times as often, so that they meet in every place."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def share(agent, count, threads=8, dim=4):
    """Let threads choose and learn; return the rows in the order they were learnt."""
    order, learn = [], RewardLearner._learn_row

    def noted(learner, row):
        order.append(row)
        learn(learner, row)

    def work(seed):
        rng = np.random.default_rng(seed)
        x, y = sphere(rng, count, dim), np.round(rng.random(count))
        for t in range(count):
            if t % 10:
                agent.learn(x[t], y[t])
            else:
                agent.choose(x[:5], key=f"{seed}-{t}")
                agent.learn(f"{seed}-{t}", y[t])

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(threads) as pool:
        patch.setattr(RewardLearner, "_learn_row", noted)
        list(pool.map(work, range(threads)))
    return order


def serial(make, order):
    agent = make(4)
    for row in order:
        agent._learner._learn_row(row)
    return agent


def serial_state(agent):
    """What rewards have led to, whatever is pending."""
    if isinstance(agent.policy, nw.SelfTunedUCB):
        s, last = agent.state, [M.inverse, M.gram, M.recent_inverse]
        left = np.delete(s.numbers, [*KnownNumbers.fields].index("removed"))
        return [left, s.vectors, s.matrices[last]]
    return [agent.state.theta, agent.state.layers[0].array[:56]]


@pytest.mark.parametrize(
    "make",
    [
        practical_agent,
        practical_shares,
        nw.Agent.for_binary_rewards,
        nw.Agent.for_continuous_rewards,
    ],
)
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_eight_threads_share_an_agent(make, count):
    """What they have taught it is what one thread teaches it in the same order, to the bit."""
    agent, first = make(4), (np.full(4, 0.5), 1.0, None, 1.0)
    agent._learner._learn_row(first)  # before it decisions count for the scale of arms
    order = [first, *share(agent, count)]
    alone = serial(make, order)
    assert agent.state.count == len(order) == 8 * count + 1
    assert not agent.waiting
    for one, two in zip(serial_state(agent), serial_state(alone), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_a_state_is_for_one_thread_at_a_time(link):
    """A second one is refused; what the others have learnt is whole."""
    learner = nw.FTRL(nw.GLM(link), ridge=0.5)
    rng = np.random.default_rng(1)
    blocks = [(sphere(rng, 2000, 5), np.round(rng.random(2000))) for _ in range(40)]
    state = learner.start(5)
    learner.update(state, *blocks[0])

    def work(block):
        try:
            learner.update(state, *block)
            for row, label in zip(block[0][:20], block[1][:20].tolist(), strict=True):
                learner.update(state, row, label)
            learner.interval(state, block[0][0], nw.SubGaussian(1.0))
        except ValueError as error:
            assert "in use by another thread" in str(error)  # noqa: PT017
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(work, blocks))
    assert sum(done) > 0
    learner.solve(state)
    if link == "logistic":
        point, gap, _ = exact(learner.glm, state)
        assert state.gap < 1e-6
        close(state.theta, point.theta, 1e-6 + gap)
        assert sum(len(block.x) for block in state.blocks()) == state.count


@pytest.mark.parametrize(
    "learner",
    [
        nw.SimplexFTRL(),
        nw.HorizonFreeMinimax(),
        nw.Aggregating((nw.Ridge(), nw.Forward()), 5.0),
        nw.SelfTuned(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_refused_thread_changes_nothing(learner):
    """What was accepted is counted; what was refused is not, nor does it undo the rest."""
    rng = np.random.default_rng(2)
    x, y = np.abs(sphere(rng, 3, 4)), rng.random(3)
    state = learner.start(4)

    def work(_):
        try:
            learner.update(state, x, y)
        except ValueError as error:
            assert "in use by another thread" in str(error)  # noqa: PT017
            return 0
        return 3

    with ThreadPoolExecutor(3) as pool:
        accepted = sum(pool.map(work, range(600)))
    assert state.count == accepted > 0
    for each in getattr(state, "states", []):
        assert each.count == accepted


def test_what_another_thread_has_is_refused():
    learner, policy = nw.FTRL(nw.GLM("logistic")), nw.LinUCB()
    row, rng = np.array([0.6, 0.8]), np.random.default_rng(0)
    state, known = learner.start(2), policy.start(2)
    with ThreadPoolExecutor(1) as other:
        uses = [Owned(each) for each in (state, known)]
        for each in uses:
            other.submit(each.__enter__).result()
        for use in (
            lambda: learner.update(state, row[None], [1.0]),
            lambda: learner.predict(state, row),
            lambda: learner.solve(state),
            lambda: learner.interval(state, row, nw.SubGaussian(1.0)),
            lambda: policy.update(known, row, 1.0),
        ):
            with pytest.raises(ValueError, match="in use by another thread"):
                use()
        for each in uses:
            other.submit(each.__exit__).result()
    learner.update(state, row, 1.0)
    policy.update(known, row, 1.0)
    assert (state.count, known.count, policy.select(known, np.eye(2), rng)) == (1, 1, 0)


def test_an_agent_can_be_copied():
    agent = nw.Agent.for_means(2)
    agent.choose(np.eye(2), key="one")
    twin = copy.deepcopy(agent)
    twin.learn("one", 0.5, trials=10)
    assert agent.waiting == ("one",)
    assert twin.waiting == ()


def test_an_agent_decides_and_learns_while_it_is_written(tmp_path, monkeypatch):
    """The file holds what was there when `save` was called, and is as if nobody had gone on."""
    agent = nw.Agent.for_binary_rewards(dim=3, randomise=0.5)
    for t in range(20):
        agent.choose(np.eye(3), key=t)
    agent.learn(list(range(10)), [1.0] * 10)
    agent.save(tmp_path / "before.npz")
    writing, go_on, replace = threading.Event(), threading.Event(), files.replace

    def slow(path, write):
        def late(part):
            writing.set()
            assert go_on.wait(60)
            write(part)

        return replace(path, late)

    monkeypatch.setattr(files, "replace", slow)
    with ThreadPoolExecutor(2) as pool:
        saved = pool.submit(agent.save, tmp_path / "beside.npz")
        try:
            assert writing.wait(60)
            work = pool.submit(lambda: (agent.choose(np.eye(3), key="new"), agent.learn(11, 0.0)))
            work.result(60)
            assert not saved.done()
        finally:
            go_on.set()
        saved.result(60)
    with np.load(tmp_path / "before.npz") as one, np.load(tmp_path / "beside.npz") as two:
        assert one.files == two.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], two[name])
    again = nw.Agent.load(tmp_path / "beside.npz")
    assert again.pending == tuple(range(10, 20))
    assert "new" in agent.pending
    assert 11 not in agent.pending


def test_the_later_of_two_calls_of_save_writes_last(tmp_path, monkeypatch):
    agent, path = nw.Agent.for_binary_rewards(dim=2), tmp_path / "agent.npz"
    writing, go_on, replace = threading.Event(), threading.Event(), files.replace

    def slow(path, write):
        if not writing.is_set():  # the first of them
            writing.set()
            assert go_on.wait(60)
        return replace(path, write)

    monkeypatch.setattr(files, "replace", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(agent.save, path)
        assert writing.wait(60)
        agent.choose(np.eye(2), key="later")
        second = pool.submit(agent.save, path)
        wait([second], 0.2)  # were it not to wait, it would be done
        go_on.set()
        for each in (first, second):
            each.result(60)
    assert nw.Agent.load(path).pending == ("later",)


@pytest.mark.parametrize("verb", ["adopt", "explain"])
def test_a_decision_waits_until_a_table_is_learnt(verb, monkeypatch):
    """It is counted by the learner that the table has led to, not by the one before."""
    arms = nw.Arms(["a", "b"], interactions=None)
    agent, begun, go_on = nw.Agent.for_means(arms=arms), threading.Event(), threading.Event()
    agent.choose(key="old")
    own = RewardLearner.after_table

    def slow(*given):
        twin = own(*given)
        begun.set()
        go_on.wait(10)
        return twin

    monkeypatch.setattr(RewardLearner, "after_table", slow)
    table = {"action": ["a", "b"], "reward": [1.0, 0.0]}
    call = {"adopt": lambda: agent.adopt(None, "b", "new"), "explain": agent.explain}[verb]
    with ThreadPoolExecutor(2) as pool:
        learning = pool.submit(agent.learn_table, table)
        begun.wait(10)
        deciding = pool.submit(call)
        time.sleep(0.1)  # until it asks for the lock
        go_on.set()
        wait([learning, deciding])
    deciding.result()
    assert agent.state.pending == len(agent.pending)
    agent._learner.check_pending()
