"""What is lost where the world drifts, by agents that restart and by those that discount.

`python -m benchmarks.drift` prints the mean regret of an agent with its defaults, and of one for
each number of ``forget_after``, with the standard error of the difference. "turning": coefficients
of five arms of 5 features turn by a radian in 1000 rewards. "wandering": the log odds of the rates
of K arms are random walks with steps of 0.03.
"""

import argparse

import numpy as np
from scipy.special import expit

import noisewise as nw

MAKE = {"continuous": nw.Agent.for_continuous_rewards, "binary": nw.Agent.for_binary_rewards}
LASTING = 20, 50, 100, 200, 400


def turning(rng, rounds, kind):
    """Return arms (T, 5, 5) and their means (T, 5)."""
    angle = np.arange(rounds)[:, None] / 1000
    arms = rng.normal(size=(rounds, 5, 5))
    means = 0.7 * (np.cos(angle) * arms[:, :, 0] + np.sin(angle) * arms[:, :, 1])
    return arms, expit(means) if kind == "binary" else means


def wandering(rng, rounds, K):
    """Return arms (T, K, K), rows of the identity matrix, and their means (T, K)."""
    steps = 0.03 * rng.normal(size=(rounds, K))
    means = expit(0.7 * rng.normal(size=K) + steps.cumsum(axis=0))
    return np.broadcast_to(np.eye(K), (rounds, K, K)), means


WORLDS = {
    "turning": turning,
    "wandering, 2 arms": lambda rng, rounds, _: wandering(rng, rounds, 2),
    "wandering, 5 arms": lambda rng, rounds, _: wandering(rng, rounds, 5),
}


def regret(arms, means, kind, seed, forget_after):
    """Return what an agent loses."""
    agent = MAKE[kind](arms.shape[2], seed, forget_after=forget_after)
    rng, lost = np.random.default_rng(seed), 0.0
    for x, mean in zip(arms, means, strict=True):
        k, u, e = agent.choose(np.array(x)), rng.random(), rng.normal()
        agent.learn(None, float(mean[k] + 0.5 * e if kind == "continuous" else u < mean[k]))
        lost += mean.max() - mean[k]
    return lost


def main(rounds, worlds):
    """Play and print."""
    print("world | rewards | forget_after | regret | over the default's | se")
    for (name, draw), kind in ((each, kind) for each in WORLDS.items() for kind in MAKE):
        drawn = [draw(np.random.default_rng([seed]), rounds, kind) for seed in range(worlds)]
        lost = {
            lasting: np.array([regret(*x, kind, seed, lasting) for seed, x in enumerate(drawn)])
            for lasting in ("auto", *LASTING)
        }
        for lasting, found in lost.items():
            ratio, usual = found / lost["auto"].mean(), lost["auto"] / lost["auto"].mean()
            se = (ratio - usual).std(ddof=1) / worlds**0.5
            cells = f"{found.mean():.1f}", f"{ratio.mean():.2f}", f"{se:.2f}"
            print(name, kind, lasting, *cells, sep=" | ", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--worlds", type=int, default=12)
    main(**vars(parser.parse_args()))
