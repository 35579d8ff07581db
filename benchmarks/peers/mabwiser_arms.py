"""MABWiser: LinUCB and LinTS in their disjoint form, one model an arm, and UCB1."""

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

POLICIES = {
    "LinUCB": LearningPolicy.LinUCB(alpha=1.0),
    "LinTS": LearningPolicy.LinTS(alpha=1.0),
    "UCB1": LearningPolicy.UCB1(alpha=1.0),
}


def player(rounds, name):
    _, K, d = rounds.arms.shape
    arms, rewards = list(range(K)), rounds.rewards.tolist()
    model = MAB(arms, POLICIES[name])
    contexts = [] if name == "UCB1" else [np.zeros((K, d))]
    model.fit(arms, [0.0] * K, *contexts)

    def play(first, last):
        for t in range(first, last):
            context = [rounds.arms[t, :1]] if contexts else []
            k = model.predict(*context)
            model.partial_fit([k], [rewards[t][k]], *context)

    return play
