"""Slates of three of twenty actions, with a click or none for each slot.

`python -m benchmarks.slates` prints the mean number of clicks per round of an agent that chooses
three at once (`top=3`), of three agents, one per slot, which choose among what the others left, and
of vowpalwabbit's conditional contextual bandit (ccb) where it is installed; and what is lost per
round against the best slate, each with its standard error over worlds. All play the same worlds:
the features of items (20, 5) are drawn anew each round ("items"), or a context of 5 numbers has its
own coefficients for each action ("contexts"). Then it prints what a choice of three costs.
"""

import argparse
import time

import numpy as np
from scipy.special import expit

import noisewise as nw

ACTIONS, FEATURES, TOP = 20, 5, 3


def world(seed, rounds, own):
    """Return arms (T, 20, d), contexts (T, 5), and clicks (T, 20) of every item in any slot."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rounds, FEATURES))
    if own:
        scores = z @ rng.normal(size=(FEATURES, ACTIONS)) / FEATURES**0.5
        blocks = np.concatenate([np.ones((rounds, 1)), z], axis=1)
        x = np.einsum("kj,ti->tkji", np.eye(ACTIONS), blocks).reshape(rounds, ACTIONS, -1)
    else:
        x = rng.normal(size=(rounds, ACTIONS, FEATURES))
        scores = x @ (1.5 * rng.normal(size=FEATURES) / FEATURES**0.5)
    means = expit(scores - 2)
    return x, z, means, (rng.random(means.shape) < means).astype(float)


def one_agent(x, z, clicks, own, seed):
    """Return the slates (T, 3) of an agent that chooses three at once."""
    agent, found = agent_of(own, seed), []
    for t, offer in enumerate(z if own else x):
        slate = agent.choose(offer, t, top=TOP)
        agent.learn(t, [clicks[t, int(k)] for k in slate])
        found.append([int(k) for k in slate])
    return np.array(found)


def three_agents(x, z, clicks, own, seed):
    """Return those of three agents, one per slot: none chooses what an earlier one has chosen."""
    agents, found = [agent_of(own, seed + i) for i in range(TOP)], []
    for t in range(len(x)):
        slate = []
        for agent in agents:
            left = [k for k in range(ACTIONS) if k not in slate]
            if own:
                k = int(agent.choose(z[t], actions=[str(i) for i in left]))
            else:
                k = left[agent.choose(x[t, left])]
            slate.append(k)
            agent.learn(None, clicks[t, k])
        found.append(slate)
    return np.array(found)


def agent_of(own, seed):
    """Return an agent with its defaults."""
    arms = nw.Arms([str(k) for k in range(ACTIONS)], context=FEATURES) if own else None
    return nw.Agent.for_binary_rewards(None if own else FEATURES, seed, arms=arms)


def players():
    """Return who plays, by name."""
    found = {"top=3": one_agent, "three agents": three_agents}
    try:
        from .peers.vowpal_wabbit import CONDITIONAL, slates
    except ImportError:
        print("vowpalwabbit is not installed: run this by .venv-bench/bin/python, see make bench")
        return found
    for name, options in CONDITIONAL.items():
        found[name] = lambda x, z, clicks, own, seed, options=options: slates(
            x, z, clicks, own, TOP, f"{options} --random_seed {seed}"
        )
    return found


def cost(seconds=2.0):
    """Return the microseconds of a choice of one, and of three, of 100 arms of 20 features."""
    rng = np.random.default_rng(0)
    agent, arms = nw.Agent.for_binary_rewards(20), rng.normal(size=(100, 20))
    for _ in range(500):
        agent.choose(arms)
        agent.learn(None, float(rng.random() < 0.3))
    best, end = {None: np.inf, TOP: np.inf}, time.perf_counter() + seconds
    while time.perf_counter() < end:
        for top in best:
            start = time.perf_counter()
            for _ in range(50):
                agent.choose(arms, top=top)
            best[top] = min(best[top], (time.perf_counter() - start) / 50 * 1e6)
    return best[None], best[TOP]


def main(rounds, worlds):
    """Play and print."""
    playing = players()
    for own in (False, True):
        print(f"\n{'contexts' if own else 'items'}: {rounds} rounds, {worlds} worlds")
        clicks, lost = {}, {}
        for seed in range(worlds):
            x, z, means, y = world([seed, own], rounds, own)
            best = np.sort(means, axis=1)[:, -TOP:].sum(axis=1).mean()
            for name, play in playing.items():
                slates = play(x, z, y, own, seed)
                lost.setdefault(name, []).append(
                    best - np.take_along_axis(means, slates, axis=1).sum(axis=1).mean()
                )
                got = np.take_along_axis(y, slates, axis=1).sum(axis=1).mean()
                clicks.setdefault(name, []).append(got)
        for name in clicks:
            a, b, n = np.array(clicks[name]), np.array(lost[name]), worlds**0.5
            more = np.array(clicks["top=3"]) - a
            print(
                f"  {name:<16} clicks {a.mean():.4f} ({a.std(ddof=1) / n:.4f})  lost {b.mean():.4f}"
                f"  top=3 has {more.mean():+.4f} ({more.std(ddof=1) / n:.4f}) more"
            )
    one, three = cost()
    print(
        f"\n100 arms, 20 features: one {one:.1f} us, three {three:.1f} us, {three / one:.2f} times"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--worlds", type=int, default=20)
    main(**vars(parser.parse_args()))
