"""What a warm start from a table of past decisions takes, as processor time.

`python -m benchmarks.past_decisions` lets agents learn tables of pandas with a million rows, and
prints seconds and microseconds a row, reading included. ``--rows`` chooses another number. Arms
have 20 features: numbers in columns of their own, or four actions, each with its coefficients of
four numbers of a context (hence its names as words).
"""

import argparse

import numpy as np
import pandas as pd

import noisewise as nw

from .clock import verdict
from .spent import Spent

MOST = {"continuous": 20.0, "binary": 60.0}  # seconds asked for a million rows
MAKE = {"continuous": nw.Agent.for_continuous_rewards, "binary": nw.Agent.for_binary_rewards}
DIM, ACTIONS, NUMBERS = 20, [*"abcd"], [f"x{j}" for j in range(4)]


def reward(rng, score, kind):
    """Draw rewards of given scores."""
    if kind == "continuous":
        return score + rng.standard_normal(len(score))
    return (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(float)


def tables(rng, rows, kind):
    """Return an agent and its table, with arms as columns and with a context."""
    x = rng.standard_normal((rows, DIM))
    theta = rng.standard_normal(DIM) / np.sqrt(DIM)
    table = pd.DataFrame(x, columns=[f"f{j}" for j in range(DIM)])
    yield "columns", MAKE[kind](DIM), table.assign(reward=reward(rng, x @ theta, kind))
    k = rng.integers(len(ACTIONS), size=rows)
    score = x[:, 0] * (k - 1.5) / 2 + 0.3 * x[:, 1]
    table = pd.DataFrame(x[:, : len(NUMBERS)], columns=NUMBERS)
    table = table.assign(action=np.array(ACTIONS)[k], reward=reward(rng, score, kind))
    yield "context", MAKE[kind](arms=nw.Arms(ACTIONS, context=NUMBERS)), table


def main():
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--rows", type=int, default=1_000_000)
    rows = given.parse_args().rows
    print("rewards | arms from | rows | seconds | us a row | asked | verdict")
    for kind, most in MOST.items():
        for arms, agent, table in tables(np.random.default_rng(0), rows, kind):
            agent.learn_table(table[:2000])  # compiled, or loaded
            with Spent() as spent:
                agent.learn_table(table)
            assert agent.state.count == rows + 2000
            each = 1e6 * spent.driver / rows
            cells = f"{spent.driver:.1f}", f"{each:.2f}", f"<= {most:g} s a million"
            print(kind, arms, rows, *cells, verdict(each <= most), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
