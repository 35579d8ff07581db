"""Forks: a child is not blocked by threads it does not have, and draws numbers of its own."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import noisewise as nw
from noisewise.support import forking

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

START = """
import gc, json, os, signal, sys, threading, time
import numpy as np
import noisewise as nw

def in_child(work, seconds=300):
    '''Return what work returns in a child; "hangs" where it does not end.'''
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = work()
        except ValueError as error:
            found = str(error)
        os.write(here, json.dumps(found).encode())
        os._exit(0)
    os.close(here)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(seconds)
    with os.fdopen(there) as pipe:
        text = pipe.read()
    signal.alarm(0)
    os.waitpid(child, 0)
    return json.loads(text) if text else "hangs"

def beside(work):
    '''Let a thread do this over and over.'''
    def again():
        while not done.is_set():
            work()
    thread = threading.Thread(target=again, daemon=True)
    thread.start()
    time.sleep(0.05)
    return thread

done = threading.Event()
rng = np.random.default_rng(0)
"""


def run(text):
    """Return what a fresh process prints, as JSON."""
    code = START + textwrap.dedent(text)
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True
    )
    assert not found.stderr, found.stderr
    return json.loads(found.stdout)


AGENTS = {
    "practical": "nw.Agent.for_binary_rewards(6)",
    "guaranteed": "nw.Agent.for_binary_rewards(6, guaranteed=True, feature_bound=5.0)",
    "rowwise": "nw.Agent(nw.LinUCB(), 6)",
}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_fifty_forks_with_a_thread_inside_an_agent(agent):
    """No child hangs, none says that somebody else has the state; all of them learn."""
    found = run(f"""
        agent, x = {agent}, rng.uniform(-0.5, 0.5, (40, 6))
        agent.choose(x, key=-1); agent.learn(-1, 1.0); agent.explain(x[:2])
        keys = iter(range(10**9))
        def play():
            key = next(keys)
            agent.learn(key, float(agent.choose(x, key=key) % 2))
        beside(play)
        def work():
            before = agent.state.count
            agent.choose(x, key="child")
            agent.learn("child", 1.0)
            agent.explain(x[:2])
            return [before, agent.state.count, len(agent.pending)]
        print(json.dumps([in_child(work) for _ in range(50)]))
    """)
    assert all(isinstance(each, list) for each in found), found
    for before, after, pending in found:
        assert after == before + 1
        assert pending <= 1  # what the thread had chosen last
    assert found[-1][0] > found[0][0]  # the thread went on beside


@pytest.mark.parametrize(
    "learner",
    ["nw.FTRL(nw.GLM('logistic'))", "nw.FTRL()", "nw.SelfTuned()", "nw.HorizonFreeMinimax()"],
)
def test_a_state_forked_during_an_update_is_whole(learner):
    """In the child nobody has it, and blocks are in it whole or not at all."""
    found = run(f"""
        learner, x = {learner}, rng.uniform(-0.1, 0.1, (100, 5))
        y = np.round(rng.random(100))
        state = learner.start(5)
        learner.update(state, x, y); learner.predict(state, x)
        beside(lambda: learner.update(state, x, y))
        def work():
            count = state.count
            learner.update(state, x, y)
            return [count, state.count, bool(np.isfinite(learner.predict(state, x)).all())]
        print(json.dumps([in_child(work) for _ in range(10)]))
    """)
    for before, after, finite in found:
        assert before % 100 == 0
        assert after == before + 100
        assert finite


def test_what_a_thread_does_not_leave_is_refused_in_the_child():
    """A fork does not wait for ever; what may be half written is not used, and agents are free."""
    waiting, says, agent = run("""
        from noisewise.support import forking
        from noisewise.support.ownership import Owned
        forking.PATIENCE = 0.5
        learner, inside = nw.FTRL(), threading.Event()
        state, agent = learner.start(2), nw.Agent.for_means(2)
        def stay():
            with agent._lock, Owned(state):
                inside.set()
                done.wait()
        threading.Thread(target=stay, daemon=True).start()
        inside.wait()
        began = time.monotonic()
        says = in_child(lambda: learner.update(state, [1.0, 0.0], 1.0))
        passed = time.monotonic() - began
        free = in_child(lambda: agent.choose(np.eye(2)))
        print(json.dumps([passed >= forking.PATIENCE, says, free]))
    """)
    assert waiting
    assert "interrupted half-way" in says
    assert agent in (0, 1)


def test_children_draw_numbers_of_their_own():
    """Each child, and each of its children, draws others; the same program draws the same."""
    text = """
        agent = nw.Agent(nw.Uniform(), 1, seed=7)
        arms = np.zeros((1000, 1))
        nw.Agent(nw.Uniform(), 1).choose(arms)  # compiled before the forks
        draws = lambda: [agent.choose(arms) for _ in range(20)]
        children = [in_child(draws) for _ in range(5)]
        children.append(in_child(lambda: in_child(draws)))
        print(json.dumps([*children, draws()]))
    """
    found = run(text)
    assert len({tuple(each) for each in found}) == len(found)
    assert found == run(text)
    other = run(text.replace("seed=7", "seed=8"))
    assert not {tuple(each) for each in found} & {tuple(each) for each in other}
    agent = nw.Agent(nw.Uniform(), 1, seed=7)
    assert found[-1] == [agent.choose(np.zeros((1000, 1))) for _ in range(20)]  # the parent's


def test_a_pool_of_forked_processes_draws_different_decisions():
    found = run("""
        import multiprocessing
        agent = nw.Agent.for_binary_rewards(2, randomise=1.0, among="all")
        def work(queue):
            queue.put([agent.choose(np.eye(2)) for _ in range(40)])
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        for _ in range(3):
            context.Process(target=work, args=(queue,)).start()
        print(json.dumps([queue.get() for _ in range(3)]))
    """)
    assert len({tuple(each) for each in found}) == 3


def test_a_fork_from_inside_an_agent():
    """The child of a policy that forks goes on with the call it is in."""
    found = run("""
        class Forking(nw.Uniform):
            def select(self, state, arms, rng, sigma=None):
                if not forked:
                    forked.append(os.fork())
                return super().select(state, arms, rng, sigma)
        forked = []
        agent = nw.Agent(Forking(), 2)
        chosen = [agent.choose(np.eye(2)) in (0, 1) for _ in range(2)]
        if forked[0] == 0:
            os._exit(0 if all(chosen) else 1)
        print(json.dumps([all(chosen), os.waitpid(forked[0], 0)[1]]))
    """)
    assert found == [True, 0]


def test_agents_are_not_kept_for_forks():
    before = len(forking._registered)
    agents = [nw.Agent.for_means(1) for _ in range(100)]
    assert len(forking._registered) == before + 100
    del agents
    assert len(forking._registered) == before


def test_nobody_is_inside_once_calls_have_ended():
    agent = nw.Agent.for_means(2)
    agent.learn([1.0, 0.0], 1.0)
    with pytest.raises(ValueError, match="lie in"):
        agent.learn([1.0, 0.0], 7.0)
    with pytest.raises(ValueError, match="shape"):
        agent.choose(np.eye(3))
    nw.OnlineGLM().partial_fit(np.eye(3), [1.0, 2.0, 3.0])
    assert not forking._inside
