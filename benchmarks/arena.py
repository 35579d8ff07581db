"""Regret beside bayesianbandits' UCB on the same drawn worlds."""

import dataclasses

import numpy as np

import noisewise as nw
from noisewise.environments import PRACTICAL, WORLDS, NoisyBandit
from noisewise.theory import bandit_regret

from .clock import asked, verdict
from .peers import bayesian_bandits

QUANTILES = (0.68, 0.95, 0.999)
FRESH, FIXED = 20, 100  # fixed arms scatter more


def arena(repeats, largest):
    """Regret of the practical index and of bayesianbandits' UCB on the same drawn worlds.

    The peer's quantile is its default and two larger ones. Ours holds where it is not worse by more
    than two standard errors of the paired difference and, on fixed arms, better in the worst run.
    """
    for name in ("fresh-linear", "fresh-logistic", "fresh-binomial", "fixed-linear",
                 "fixed-logistic", "fixed-binomial", "log-uniform-binomial"):  # fmt: skip
        world = dataclasses.replace(WORLDS[name], rounds=int(min(5000, largest)))
        kind = "likelihood" if "binomial" in name else "sub-gaussian"
        ours = nw.FTRLUCB(world.glm, kind, radius="practical")
        found = []
        for seed in range(min(FIXED if world.fixed else FRESH, 7 * repeats)):
            rounds = world.draw(np.random.default_rng([2026, seed]))
            played = [nw.choices(ours, rounds, np.random.default_rng(seed))]
            played += [_peer(rounds, world, quantile) for quantile in QUANTILES]
            found.append([bandit_regret(rounds, each)[-1] for each in played])
        table = np.array(found)
        errors = np.std(table - table[:, :1], axis=0, ddof=1) / np.sqrt(len(table))
        names = ["FTRLUCB practical", *(f"bayesianbandits UCB {q:g}" for q in QUANTILES)]
        for what, r, error in zip(names, table.T, errors, strict=True):
            row = {
                "section": "arena", "stream": name, "dim": world.dim, "rounds": world.rounds,
                "what": what, "regret": r.mean(),
                "error": r.std(ddof=1) / np.sqrt(len(r)), "worst": r.max(),
            }  # fmt: skip
            if what != names[0]:
                lead = r.mean() - table[:, 0].mean()
                tail = not world.fixed or table[:, 0].max() < r.max()
                row |= {"lead": lead / error, "verdict": verdict(lead >= -2 * error and tail)}
            yield row


def _peer(rounds, world, quantile):
    y, weights = rounds.rewards, rounds.sigma**-2.0
    if not world.glm.linear:  # its logit takes labels in [0, 1] and counts
        y = np.clip(y, 0.0, 1.0)
        if isinstance(world, NoisyBandit):  # additive noise of sd s counts like 1/(4 s^2)
            weights = weights / 4
    return bayesian_bandits.whole(rounds.arms, y, weights, world.glm.linear, quantile)


def settings(repeats, largest):
    """How often bayesianbandits chooses as the setting that the study `agents` has for it."""
    rounds = int(min(300, largest))
    for name, world in PRACTICAL.items():
        drawn = world.draw(np.random.default_rng(2026))
        first = min(rounds, len(drawn.arrival))
        for quantile in QUANTILES[:2]:
            share = bayesian_bandits.compared(drawn, quantile, first)
            yield {
                "section": "settings", "stream": name, "dim": drawn.rounds.arms.shape[-1],
                "rounds": first, "what": f"bayesianbandits UCB {quantile:g}", "ratio": share,
                **asked(share, least=0.95),
            }  # fmt: skip
