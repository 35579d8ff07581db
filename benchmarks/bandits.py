"""Bandits against peers: time of a decision with its update."""

import time
from copy import deepcopy
from dataclasses import replace

import numpy as np
from numba import njit

import noisewise as nw
from noisewise.environments import NoisyBandit

from .batches import batches
from .clock import asked, interleave
from .peers.bayesian_bandits import Player


@njit(fastmath=True, cache=True)
def bare(P, b, arms, y, w, gain):
    """The same arithmetic with nothing around it: index of fresh arms, argmax, rank-one update."""
    T, K, d = arms.shape
    theta, k, total = np.zeros(d), np.empty(d), 0.0
    for t in range(T):
        best, choice = -np.inf, 0
        for a in range(K):
            score, h = 0.0, 0.0
            for i in range(d):
                inner = 0.0
                for j in range(d):
                    inner += P[i, j] * arms[t, a, j]
                h += inner * arms[t, a, i]
                score += theta[i] * arms[t, a, i]
            index = score + np.sqrt(gain * h * (3.0 + np.log1p(total * h)))
            if index > best:
                best, choice = index, a
        x = arms[t, choice]
        total += w[t]
        q = 0.0
        for i in range(d):
            inner = 0.0
            for j in range(d):
                inner += P[i, j] * x[j]
            k[i] = inner
            q += inner * x[i]
        share = w[t] / (1.0 + w[t] * q)
        for i in range(d):
            b[i] += w[t] * y[t, choice] * x[i]
            for j in range(d):
                P[i, j] -= share * k[i] * k[j]
        for i in range(d):
            inner = 0.0
            for j in range(d):
                inner += P[i, j] * b[j]
            theta[i] = inner
    return theta


def products(arms, T):
    """The matrix products alone that fresh arms need: every arm's form and score."""
    d = arms.shape[2]
    P, theta, out = np.eye(d), np.ones(d), np.empty(arms.shape[1:])

    def run():
        for t in range(T):
            np.matmul(arms[t], P, out=out)
            arms[t] @ theta

    return run


def decisions(repeats, largest):
    """Decision and update with fresh arms: against a bare kernel, the products, and a peer."""
    for d, K, T in ((10, 10, 500), (10, 100, 300), (50, 1000, 40)):
        for link in ("identity", "logistic"):
            world = NoisyBandit(glm=nw.GLM(link), dim=d, arms=K, rounds=1000 + T)
            rounds = world.draw(np.random.default_rng(d))
            policies = {
                "FTRLUCB practical": nw.FTRLUCB(world.glm, radius="practical"),
                "FTRLUCB adaptive": nw.FTRLUCB(world.glm),
                "FTRLUCB bounded": nw.FTRLUCB(world.glm, "bounded", 1.0),
                "MORUCB adaptive": nw.MORUCB(world.glm, 1.0, 0.1),
            }
            last = rounds.arms[1000:].copy()
            y, w = rounds.rewards[1000:].copy(), rounds.sigma[1000:] ** -2.0
            candidates = {
                "bare kernel": lambda a=last, y=y, w=w, d=d: bare(
                    np.eye(d), np.zeros(d), a, y, w, 1.0
                ),
                "products": products(last, T),
                "bayesianbandits": _peer(rounds, link == "identity", T),
            }
            candidates |= {name: _ours(policy, rounds, T) for name, policy in policies.items()}
            times = interleave(candidates, max(3, repeats // 3))
            for name, seconds in times.items():
                row = {
                    "section": "decision and update", "stream": f"{link}, K = {K}", "dim": d,
                    "rounds": T, "what": name, "us": 1e6 * seconds / T,
                    "ratio": seconds / times["bare kernel"],
                }  # fmt: skip
                if (name, d, K) == ("FTRLUCB practical", 10, 100):
                    row |= asked(row["ratio"], most=2)
                yield row
            yield from _targets(row, times)


def _targets(row, times):
    """What is asked of the practical index beyond the bare kernel."""
    ours, K = times["FTRLUCB practical"], int(row["stream"].split()[-1])
    row = row | {"us": 1e6 * ours / row["rounds"]}
    if (row["dim"], K) == (10, 100):
        ratio = times["bayesianbandits"] / ours
        yield row | {"what": "bayesianbandits / ours", "ratio": ratio} | asked(ratio, least=20)
    if (row["dim"], K) == (50, 1000):
        ratio = ours / times["products"]
        yield row | {"what": "ours / products", "ratio": ratio} | asked(ratio, most=1.2)


def _ours(policy, rounds, T):
    state, rng = policy.start(rounds.arms.shape[2]), np.random.default_rng(0)
    _rounds(policy, state, rounds, rng, 0, 1000)

    def run():
        _rounds(policy, state, rounds, rng, 1000, 1000 + T)

    return run


def _rounds(policy, state, rounds, rng, first, last):
    for t in range(first, last):
        arms = rounds.arms[t]
        k = policy.select(state, arms, rng)
        policy.update(state, arms[k], rounds.rewards[t, k], rounds.sigma[t])


def _peer(rounds, linear, T):
    player = Player(rounds.arms.shape[2], linear)
    weights = rounds.sigma**-2.0

    def play(first, last):
        for t in range(first, last):
            k = player.select(rounds.arms[t])
            player.update(rounds.arms[t, k], min(max(rounds.rewards[t, k], 0.0), 1.0), weights[t])

    play(0, 200)
    return lambda: play(1000, 1000 + T)


def flat(repeats, largest):
    """Median time of a decision and update at round 1000 and later, taken in turns; passes."""
    for link in ("identity", "logistic"):
        policy = nw.FTRLUCB(nw.GLM(link), radius="practical")
        T = int(min(largest, 100_000))
        world = NoisyBandit(glm=policy.glm, fixed=True, arms=100, rounds=T)
        rounds = world.draw(np.random.default_rng(0))
        state, rng, ages = policy.start(10), np.random.default_rng(0), {}
        for t in range(T - 1000):
            if t in (1000, T // 10):
                ages[t] = deepcopy(state)
            _round(policy, state, rounds, rng, t)
        ages[T - 1000] = state
        spent = {age: np.empty(1000) for age in ages}
        for i in range(1000):
            for age, aged in ages.items():
                began = time.process_time_ns()
                _round(policy, aged, rounds, rng, age + i)
                spent[age][i] = time.process_time_ns() - began
        for age, aged in ages.items():
            ratio = float(np.median(spent[age]) / np.median(spent[1000]))
            yield {
                "section": "flat in t", "stream": link, "dim": 10, "rounds": age,
                "what": "median of 1000 rounds", "us": float(np.median(spent[age])) / 1000,
                "ratio": ratio, "passes": aged.layers[0].passes, **asked(ratio, most=1.1),
            }  # fmt: skip


def _round(policy, state, rounds, rng, t):
    k = policy.select(state, rounds.arms, rng)
    policy.update(state, rounds.arms[k], rounds.rewards[t, k], rounds.sigma[t])


def agents(repeats, largest):
    """The agent beside its policy, that beside the practical kernel of FTRLUCB; batches."""
    for family, link in (("gaussian", "identity"), ("binomial", "logistic")):
        world = NoisyBandit(glm=nw.GLM(link), dim=10, arms=20, rounds=1300)
        rounds = world.draw(np.random.default_rng(2))
        if family == "binomial":
            rounds = replace(rounds, rewards=np.round(np.clip(rounds.rewards, 0, 1)))
        rounds = replace(rounds, sigma=np.ones(1300))
        policy, T = nw.SelfTunedUCB(family), 300
        practical = nw.FTRLUCB(world.glm, radius="practical")
        times = interleave(
            {
                "SelfTunedUCB": _ours(policy, rounds, T),
                "FTRLUCB practical": _ours(practical, rounds, T),
                "Agent": _agent(policy, rounds, T, 0),
                "Agent, 10^4 pending": _agent(policy, rounds, T, 10_000),
            },
            repeats,
        )
        ours, kernel = times["SelfTunedUCB"], times["FTRLUCB practical"]
        asks = {
            "SelfTunedUCB": ("SelfTunedUCB / FTRLUCB practical", ours / kernel, 2),
            "Agent": ("Agent / SelfTunedUCB", times["Agent"] / ours, 3),
            "Agent, 10^4 pending": (
                "10^4 pending / none", times["Agent, 10^4 pending"] / times["Agent"], 2
            ),
        }  # fmt: skip
        for name, (what, ratio, most) in asks.items():
            yield {
                "section": "agent", "stream": f"{link}, K = 20", "dim": 10, "rounds": T,
                "what": what, "us": 1e6 * times[name] / T, "ratio": ratio,
                **asked(ratio, most=most),
            }  # fmt: skip
        yield from batches(family, repeats)


def _agent(policy, rounds, T, pending):
    agent = nw.Agent(policy, rounds.arms.shape[2], capacity=20_000)

    def play(first, last):
        for t in range(first, last):
            k = agent.choose(rounds.arms[t], key=t)
            agent.learn(t, rounds.rewards.item(t, k))

    play(0, 1000)
    for i in range(pending):
        agent.choose(rounds.arms[i % 1000], key=f"pending {i}")
    return lambda: play(1000, 1000 + T)
