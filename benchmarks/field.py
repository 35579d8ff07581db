"""A round's time of every policy but MORUCB and FTRLUCB (see bandits.py), against the packages that
have the same algorithm, or the nearest.
"""

from functools import partial
from importlib import import_module

import numpy as np

import noisewise as nw
from noisewise.environments import NoisyBandit

from .clock import asked, interleave

LOGISTIC = nw.GLM("logistic")
# ours, and peer: policy; disjoint forms have one model an arm, as many numbers to look at a round
PAIRS = [
    (nw.LinUCB(), ["coba_linear: LinUCB", "mabwiser_arms: LinUCB", "river_bandits: LinUCB",
                   "bayesian_bandits: UCB"]),
    (nw.LinearThompson(), ["coba_linear: LinTS", "mabwiser_arms: LinTS", "bayesian_bandits: TS"]),
    (nw.LaplaceThompson(LOGISTIC), ["bayesian_bandits: TS, logistic"]),
    (nw.IDS(), ["bayesian_bandits: IDS"]),
    (nw.IDS(randomised=True), ["bayesian_bandits: IDS"]),
    (nw.NormalUCB(), ["mabwiser_arms: UCB1", "river_bandits: UCB"]),
    (nw.UCB1Normal(), ["mabwiser_arms: UCB1", "river_bandits: UCB"]),
]  # fmt: skip
# no package has these
ALONE = [
    nw.OFUL(), nw.WeightedLeastSquaresUCB(), nw.WeightedOFUL(), nw.WeightedOFULPlus(), nw.LOSAN(),
    nw.SAVE(), nw.AdaOFUL(), nw.GLMUCB(LOGISTIC), nw.UCBGLM(LOGISTIC), nw.GLOC(LOGISTIC),
    nw.GLBOMD(LOGISTIC), nw.GLBOMD(LOGISTIC, "exact"), nw.OFUGLB(LOGISTIC),
]  # fmt: skip
WARM = 100


def field(repeats, largest):
    """Decision and update of the other policies, ten features, beside packages that have them."""
    for K, T in ((20, 300), (100, 100)):
        rounds = NoisyBandit(arms=K, rounds=WARM + T).draw(np.random.default_rng(K))
        ours = [*(policy for policy, _ in PAIRS), *ALONE]
        players = {_name(policy): _ours(policy, rounds) for policy in ours}
        for peer in dict.fromkeys(peer for _, peers in PAIRS for peer in peers):
            home, _, name = peer.partition(": ")
            players[peer] = import_module(f"benchmarks.peers.{home}").player(rounds, name)
        for play in players.values():
            play(0, WARM)
        runs = {name: partial(play, WARM, WARM + T) for name, play in players.items()}
        times = interleave(runs, max(3, repeats // 3))
        same = {"section": "field", "stream": f"K = {K}", "dim": 10, "rounds": T}
        for policy, peers in PAIRS:
            own = times[_name(policy)]
            yield {**same, "what": _name(policy), "us": 1e6 * own / T}
            for peer in peers:
                us, ratio = 1e6 * times[peer] / T, times[peer] / own
                row = {**same, "what": f"  {peer}", "us": us, "ratio": ratio}
                yield row | asked(ratio, least=5)
        for policy in ALONE:
            yield {**same, "what": _name(policy), "us": 1e6 * times[_name(policy)] / T}


def _name(policy):
    form = "randomised" if getattr(policy, "randomised", False) else getattr(policy, "loss", "")
    return type(policy).__name__ + (f", {form}" if form else "")


def _ours(policy, rounds):
    T, K, d = rounds.arms.shape
    one_hot = hasattr(policy, "one_hot")
    arms = [np.eye(K)] * T if one_hot else rounds.arms
    linear = getattr(policy, "glm", nw.GLM()).linear
    rewards = (rounds.rewards if linear else (rounds.rewards > 0).astype(float)).tolist()
    sds, sigma = rounds.sigma.tolist(), np.repeat(rounds.sigma[:, None], K, axis=1)
    told = sigma if hasattr(policy, "needs_sigma") else [None] * T
    state, rng = policy.start(K if one_hot else d), np.random.default_rng(0)

    def play(first, last):
        for t in range(first, last):
            k = policy.select(state, arms[t], rng, told[t])
            policy.update(state, arms[t][k], rewards[t][k], sds[t])

    return play
