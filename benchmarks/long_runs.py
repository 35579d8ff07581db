"""Whether `SelfTunedUCB` keeps on finding the best of fixed arms in runs of 100,000 rounds.

``python -m benchmarks.long_runs [--rounds 100000] [--seeds 20] [--first 0]`` plays binary and
continuous worlds and prints a line for each and for the family: mean regret of the first and second
quarter and of the second half, the last over the one before (1 is a logarithm, 2 a straight line),
runs that end on an arm more than .02 worse than the best, and restarts, of which none is due.
"""

import click
import numpy as np
from scipy.special import expit

import noisewise as nw

WORSE = 0.02
# arms (0: features of 20 arms), lowest and highest rate; or features, norm of theta, intercept
BINARY = {
    "4 arms, rates 3 to 12 %": (4, 0.03, 0.12),
    "8 arms, rates 30 to 70 %": (8, 0.3, 0.7),
    "6 features, norm 1": (0, 6, 1.0, 0.0),
    "10 features, norm 3": (0, 10, 3.0, 0.0),
    "10 features, rates about 10 %": (0, 10, 1.0, -2.0),
}
# arms, lowest and highest mean, sd; or features, norm of theta, offset, sd
CONTINUOUS = {
    "4 arms, sd 1": (4, 0.0, 1.0, 1.0),
    "8 arms, sd 1": (8, 0.0, 1.0, 1.0),
    "6 features, norm 1, sd 1": (0, 6, 1.0, 0.0, 1.0),
    "10 features, norm 3, sd 1": (0, 10, 3.0, 0.0, 1.0),
    "10 features, norm 1, offset 50, sd .1": (0, 10, 1.0, 50.0, 0.1),
}
WORLDS = {"binomial": BINARY, "gaussian": CONTINUOUS}


def drawn(family, name, rng):
    """Return arms, their mean rewards, and the sd of noise, 0 for rewards 0 and 1."""
    count, *given = WORLDS[family][name]
    sd = given.pop() if family == "gaussian" else 0.0
    if count:
        return np.eye(count), rng.uniform(*given, size=count), sd
    d, norm, intercept = given
    x, theta = rng.normal(size=(20, d)), rng.normal(size=d)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    scores = intercept + x @ theta * norm / np.linalg.norm(theta)
    return x, scores if sd else expit(scores), sd


def play(family, name, rounds, seed):
    """Return regret of both quarters and the second half, how much worse the last arm, restarts."""
    rng = np.random.default_rng([seed, list(WORLDS[family]).index(name), len(family)])
    arms, means, sd = drawn(family, name, rng)
    noise = rng.normal(size=rounds) if sd else rng.random(rounds)
    policy, played = nw.SelfTunedUCB(family), np.empty(rounds, dtype=np.int64)
    state = policy.start(arms.shape[1])
    rows, levels = list(arms), means.tolist()
    for t, e in enumerate(noise.tolist()):
        played[t] = k = policy.select(state, arms, rng)
        policy.update(state, rows[k], levels[k] + sd * e if sd else float(e < levels[k]))
    gaps = means.max() - means
    lost = gaps[played]
    last = np.bincount(played[-max(rounds // 100, 1) :]).argmax()  # the usual one at the end
    parts = np.split(lost, [rounds // 4, rounds // 2])
    return *(float(part.sum()) for part in parts), float(gaps[last]), state.restarts


def line(name, found):
    """Return the figures of some runs as text."""
    first, second, half, worse, restarts = np.transpose(found)
    ratio = f"{half.mean() / second.mean():.2f}" if second.mean() >= 1 else "-"
    return (
        f"{name:38s} {first.mean():8.1f} {second.mean():8.1f} {half.mean():8.1f} {ratio:>6s}"
        f" {(worse > WORSE).sum():4d} of {len(worse)} {restarts.sum():4.0f}"
    )


@click.command()
@click.option("--rounds", default=100_000, show_default=True)
@click.option("--seeds", default=20, show_default=True)
@click.option("--first", default=0, show_default=True, help="First seed.")
def main(rounds, seeds, first):
    """Play all worlds and print their figures."""
    print(f"{'':38s}  quarter   second     half  ratio  wrong   restarts")
    for family, worlds in WORLDS.items():
        every = []
        for name in worlds:
            found = [play(family, name, rounds, seed) for seed in range(first, first + seeds)]
            print(line(name, found), flush=True)
            every += found
        print(line(f"all {family}", every), flush=True)


if __name__ == "__main__":
    main()
