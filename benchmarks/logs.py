"""Miss rates of values from logs, in worlds whose values are known.

`python -m benchmarks.logs` prints, for each world and estimator, the share of lines called
reliable, how often those miss at delta 0.05, and how often the anytime interval misses, at the end
and at any time. ``--logs`` and ``--seed`` choose other logs. The contexts of a world are a finite
population, over which its values are exact means.
"""

import argparse
import math
import warnings
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri, softmax

import noisewise as nw
from noisewise.evaluation.off_policy import estimates
from noisewise.theory import betting

RNG = np.random.default_rng
SIZE = 4096  # contexts of a world
NORMAL = ndtri((np.arange(SIZE) + 0.5) / SIZE)
DELTA = 0.05


@dataclass(frozen=True, eq=False)
class World:
    """Contexts (N, p), means (N, K) and logging probabilities (N, K) of a population."""

    rounds: int
    contexts: np.ndarray
    means: np.ndarray
    probabilities: np.ndarray | None  # None: an agent chooses
    lognormal: float = 0.0  # sd of the logarithm of rewards, which are 0 or 1 where it is 0

    def truth(self):
        """Return the value of each line, except of what an agent played."""
        found = {str(k): float(mean) for k, mean in enumerate(self.means.mean(axis=0))}
        found["policy"] = float(self.means[np.arange(SIZE), self.policy()].mean())
        if self.probabilities is not None:
            found["played"] = float((self.probabilities * self.means).sum(axis=1).mean())
            found["gain"] = found["policy"] - found["played"]
        return found

    def policy(self):
        """Return the action of the policy asked for, at each context: the best one."""
        return self.means.argmax(axis=1)

    def reward(self, rng, mean):
        """Draw rewards of given means."""
        if not self.lognormal:
            return (rng.random(np.shape(mean)) < mean).astype(float)
        s = self.lognormal
        return mean * np.exp(s * rng.standard_normal(np.shape(mean)) - s * s / 2)

    def log(self, rng):
        """Draw a log; return its columns and the contexts' places in the population."""
        at = rng.integers(SIZE, size=self.rounds)
        columns = {f"x{j}": column for j, column in enumerate(self.contexts[at].T)}
        if self.probabilities is None:
            return self._played(rng, at, columns), at
        p = self.probabilities[at]
        a = (rng.random(len(at))[:, None] > p.cumsum(axis=1)).sum(axis=1)
        rows = np.arange(len(at))
        y = self.reward(rng, self.means[at, a])
        return {**columns, "action": a, "reward": y, "probability": p[rows, a]}, at

    def _played(self, rng, at, columns):
        names = [str(k) for k in range(self.means.shape[1])]
        agent = nw.Agent.for_binary_rewards(
            arms=nw.Arms(names, context=list(columns)), seed=int(rng.integers(2**63)),
            randomise=0.2, among="all", record=self.rounds,
        )  # fmt: skip
        for row, place in enumerate(at):
            context = {name: column[row] for name, column in columns.items()}
            a = int(agent.choose(context, key=row))
            agent.learn(row, float(self.reward(rng, self.means[place, a])))
        return agent.log()


def smooth(scale, least, offset, seed, actions=4, effect=0.7):
    """Return contexts, means and softmax probabilities of at least about ``least``."""
    rng = RNG(seed)
    x = rng.standard_normal((SIZE, 2))
    means = expit(offset + effect * x @ rng.standard_normal((2, actions)))
    p = np.maximum(softmax(scale * x @ rng.standard_normal((2, actions)), axis=1), least)
    return x, means, p / p.sum(axis=1, keepdims=True)


def worlds():
    """Return the worlds by name."""
    z = NORMAL[:, None]
    none = np.empty((SIZE, 0))
    fair = np.full((SIZE, 2), 0.5)
    both = np.ones((SIZE, 1))
    share, odd, unfair = expit(3 * z), np.arange(SIZE)[:, None] % 2.0, np.array([[0.11, 0.89]])
    x, means, p = smooth(1.0, 0.1, 0.0, 2, actions=3)
    return {
        "softmax, down to 1e-3": World(1000, *smooth(2.0, 1e-3, -1.0, 1)),
        "expit(3z)": World(1000, z, expit(np.hstack([z, -0.5 * z])), np.hstack([1 - share, share])),
        "5 hits": World(1000, none, both * [0.008, 0.01], fair),
        "50 hits": World(1000, none, both * [0.1, 0.12], fair),
        "3 % and 3.6 %, agent": World(2000, none, both * [0.03, 0.036], None),
        "the same, 8000 rows": World(8000, none, both * [0.03, 0.036], None),
        "lognormal": World(
            1000, z, np.exp(0.3 * np.hstack([z, -z])), np.hstack([0.3 + 0 * z, 0.7 + 0 * z]), 1.0
        ),
        "expit(z)": World(
            1000, z, expit(np.hstack([z, -0.5 * z]) - 0.7), np.hstack([expit(-z), expit(z)])
        ),
        "weights 1.1 and 9.1": World(
            2500, odd, both * [0.1, 0.12], np.where(odd, unfair, 1 - unfair)
        ),
        "benign": World(1500, x, means, p),
    }


def measure(world, logs, seed):
    """Return three counts for each policy and estimator.

    They are lines, those called reliable, and misses of these. Of the anytime interval they are
    lines, misses at the end, and misses at any time: by betting when the wealth of a bet against
    the truth ever exceeds its limit, of the asymptotic sequence at any twentieth row. The gain is
    looked at at the end alone.
    """
    truth, found = world.truth(), defaultdict(lambda: np.zeros(3, dtype=int))
    for rng in RNG(seed).spawn(logs):
        log, at = world.log(rng)
        K = world.means.shape[1]
        pi = {str(k): np.tile(np.eye(K)[k], (len(at), 1)) for k in range(K)}
        pi["policy"] = np.eye(K)[world.policy()[at]]
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            values = nw.off_policy_value(log, pi["policy"], actions=range(K))
        for each in (e for e in values.estimates if e.policy in truth):
            missed = not each.lower <= truth[each.policy] <= each.upper
            if each.estimator != "anytime":
                counts = each.reliable, each.reliable and missed
            elif each.policy == "gain":
                counts = missed, missed
            else:
                given = log, pi.get(each.policy), values.predictions
                counts = missed, ever_missed(*given, truth[each.policy])
            found[each.policy, each.estimator] += [1, *counts]
    return dict(found)


def ever_missed(log, pi, q, truth):
    """Return whether the anytime interval of a policy, or of what was played, ever misses."""
    r, rows = np.asarray(log["reward"]), np.arange(len(q))
    w, terms = np.ones(len(r)), r
    if pi is not None:
        a = np.asarray(log["action"], dtype=int)
        w = pi[rows, a] / log["probability"]
        terms = (pi * q).sum(axis=1) + w * (r - q[rows, a])
    if r.max() <= 1:
        wealth = [betting.log_wealth(w * r, truth), betting.log_wealth(w * (1 - r), 1 - truth)]
        return np.max(wealth) >= math.log(2 / DELTA)
    return any(
        estimates.effective(w[:t]) >= estimates.START
        and abs(terms[:t].mean() - truth) > estimates.sequence(terms[:t], DELTA)
        for t in range(20, len(w) + 1, 20)
    )


def main():
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--logs", type=int, default=300)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--worlds", default="", help="only those whose names contain this")
    given = given.parse_args()
    print("world | estimator | lines | reliable | miss | anytime, end | anytime, ever")
    for name, world in worlds().items():
        if given.worlds not in name:
            continue
        sums = defaultdict(lambda: np.zeros(3, dtype=int))
        for (_, estimator), counts in measure(world, given.logs, given.seed).items():
            sums[estimator] += counts
        total, end, ever = sums.pop("anytime")
        for estimator, (lines, reliable, missed) in sums.items():
            rate = f"{missed / reliable:.3f}" if reliable else "-"
            cells = name, estimator, lines, f"{reliable / lines:.3f}", rate
            print(*cells, f"{end / total:.3f}", f"{ever / total:.3f}", sep=" | ", flush=True)


if __name__ == "__main__":
    main()
