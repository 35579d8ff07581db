"""A thousand decisions, and their rewards, in one call each: beside the kernel and the loop."""

import time
from collections import defaultdict
from unittest.mock import patch

import numpy as np

import noisewise as nw
from noisewise.bandits import self_tuned_ucb
from noisewise.bandits.arms import candidates_of

from .clock import asked

MOST = {"decisions": 1.5, "rewards": 2.5}  # times the kernel alone
n, K, d = 1000, 20, 10


def batches(family, repeats):
    """Yield what a decision and a reward of a batch cost, over the kernel, and under the loop."""
    spent = defaultdict(list)
    make = {"gaussian": nw.Agent.for_continuous_rewards, "binomial": nw.Agent.for_binary_rewards}
    players = {
        "loop": Loop(make[family](d)),
        "batch": Batch(make[family](d)),
        "kernel": Kernel(nw.SelfTunedUCB(family)),
    }
    rng = np.random.default_rng(0)
    for turn in range(repeats + 1):
        offers, y = rng.normal(size=(n, K, d)), rng.random(n)
        y, keys = np.round(y) if family == "binomial" else y, [f"{turn}-{i}" for i in range(n)]
        for name, player in players.items():
            spent[name, "decisions"].append(player.decide(offers, keys))
        for name, player in players.items():
            spent[name, "rewards"].append(player.learn(keys, y))
    took = {key: float(np.median(times[1:])) for key, times in spent.items()}  # the first compiles
    for what, most in MOST.items():
        batch = took["batch", what]
        row = {
            "section": "agent", "stream": f"{family}, K = {K}", "dim": d, "rounds": n,
            "us": 1e6 * batch / n,
        }  # fmt: skip
        over, under = batch / took["kernel", what], took["loop", what] / batch
        yield row | {"what": f"batch of {what} / kernel", "ratio": over, **asked(over, most=most)}
        yield row | {"what": f"loop / batch of {what}", "ratio": under}


class Loop:
    """An agent that is asked for one decision at a time."""

    def __init__(self, agent):
        self.agent = agent

    def decide(self, offers, keys):
        began = time.process_time()
        for arms, key in zip(offers, keys, strict=True):
            self.agent.choose(arms, key)
        return time.process_time() - began

    def learn(self, keys, rewards):
        rewards = rewards.tolist()
        began = time.process_time()
        for key, reward in zip(keys, rewards, strict=True):
            self.agent.learn(key, reward)
        return time.process_time() - began


class Batch(Loop):
    """One that is asked for all at once."""

    def decide(self, offers, keys):
        began = time.process_time()
        self.agent.choose_many(offers, keys)
        return time.process_time() - began

    def learn(self, keys, rewards):
        began = time.process_time()
        self.agent.learn(keys, rewards)
        return time.process_time() - began


class Kernel:
    """The compiled calls of the policy, without anything around them."""

    def __init__(self, policy):
        self.policy, self.state, self.rng = policy, policy.start(d), np.random.default_rng(0)

    def decide(self, offers, _):
        given = self.state, *candidates_of(offers, d), self.rng
        return self._timed("choose_many", lambda: self._keep(*self.policy.select_many(*given)))

    def _keep(self, _, played):
        self.played = played

    def learn(self, _, rewards):
        counted = np.ones(n, dtype=np.int64)
        counted[-1] = 0
        given = self.state, self.played, rewards, np.ones(n), counted
        return self._timed("learn", lambda: self.policy.update_many(*given))

    def _timed(self, name, run):
        kernels, spent = self_tuned_ucb.kernels(), []
        own = getattr(kernels, name)

        def timed(*arguments):
            began = time.process_time()
            found = own(*arguments)
            spent.append(time.process_time() - began)
            return found

        with patch.object(kernels, name, timed):
            run()
        return sum(spent)
