"""river's bandits: LinUCB in its disjoint form, and UCB for arms without features."""

from river import bandit


def disjoint(rounds, name):
    policy = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
    arms, rewards = list(range(rounds.arms.shape[1])), rounds.rewards.tolist()
    contexts = [dict(enumerate(row)) for row in rounds.arms[:, 0].tolist()]

    def play(first, last):
        for t in range(first, last):
            k = policy.pull(arms, context=contexts[t])
            policy.update(k, contexts[t], rewards[t][k])

    return play


def plain(rounds, name):
    policy = bandit.UCB(delta=1.0, seed=1)
    arms, rewards = list(range(rounds.arms.shape[1])), rounds.rewards.tolist()

    def play(first, last):
        for t in range(first, last):
            k = policy.pull(arms)
            policy.update(k, rewards[t][k])

    return play


def player(rounds, name):
    return disjoint(rounds, name) if name == "LinUCB" else plain(rounds, name)
