"""coba's LinUCB and LinTS: one shared model, features of each arm as tuples."""

from coba.learners import LinTSLearner, LinUCBLearner

LEARNERS = {"LinUCB": LinUCBLearner, "LinTS": LinTSLearner}


def player(rounds, name):
    learner = LEARNERS[name](features=["a"])
    arms = [[tuple(arm) for arm in row] for row in rounds.arms.tolist()]
    rewards = rounds.rewards.tolist()

    def play(first, last):
        for t in range(first, last):
            arm = tuple(learner.predict(None, arms[t])[0])
            learner.learn(None, arm, rewards[t][arms[t].index(arm)], 1.0)

    return play
