"""Short histories the tests look back on: rounds of a policy, an agent's decisions, estimates."""

import numpy as np
from instances import sphere

import noisewise as nw
from noisewise.agent.rewards.reward_scale import LEAST_NOISE
from noisewise.simulate import turns
from noisewise.theory import lemmas


def play(policy, rounds, look=None):
    """Play round by round; ``look(state, arm)`` sees the state before each reward."""
    return play_on(policy, policy.start(rounds.arms.shape[-1]), rounds, look)


def play_on(policy, state, rounds, look=None):
    """The same from a state that is given."""
    played = []
    for _, arms, k in turns(policy, state, rounds, np.random.default_rng(0)):
        if look is not None:
            look(state, arms[k])
        played.append(k)
    return state, np.array(played)


def arm_sets(count, dim=3, seed=0, policy=None):
    """Sets of changing size: arms come and go."""
    rng = np.random.default_rng([seed, 77])
    if getattr(policy, "one_hot", False):
        return [np.eye(dim)[rng.integers(dim, size=2 + i % 4)] for i in range(count)]
    return [0.9 * sphere(rng, 2 + i % 4, dim) for i in range(count)]


def choose(agent, arms, key=None):
    """Choose; a policy that must know the noise before is told it."""
    told = getattr(agent.policy, "needs_sigma", False)
    return agent.choose(arms, key, sigma=np.linspace(0.2, 0.9, len(arms)) if told else None)


def outcomes(count, seed=0):
    rng = np.random.default_rng([seed, 78])
    return rng.uniform(size=count), rng.uniform(0.2, 0.9, size=count)


def played(agent, count=12):
    """Learn all but every third decision, each two rounds late."""
    y, s = outcomes(count)
    for t, arms in enumerate(arm_sets(count, policy=agent.policy)):
        choose(agent, arms, key=t)
        if t > 1 and t % 3:
            agent.learn(t - 2, y[t], s[t])
    return agent


def practical_agent(dim, seed=0, *, feature_bound=1.0, parameter_bound=None):
    """An agent of the practical index for continuous rewards, whose size or noise is not given."""
    glm = nw.GLM("identity", feature_bound, 1.0 if parameter_bound is None else parameter_bound)
    size = glm.score_bound
    policy = nw.FTRLUCB(glm, noise_floor=0.05 * size, radius="practical")
    agent = nw.Agent(policy, dim, seed, sigma="estimated")
    agent.scale = nw.ResidualScale(size * size, floor=LEAST_NOISE * size)
    agent.unit = 0.0 if parameter_bound is None else None
    return agent


def practical_shares(dim, seed=0):
    """The same for rewards 0 or 1, and shares of them."""
    policy = nw.FTRLUCB(nw.GLM("logistic"), "likelihood", radius="practical")
    return nw.Agent(policy, dim, seed, rewards=(0.0, 1.0))


def estimates(glm, ridge, x, y):
    """The estimates of exact FTRL, (T+1, d)."""
    ftrl = nw.FTRL(glm, ridge, 0.0)
    state = ftrl.start(x.shape[1])
    thetas = [state.theta]
    for row, label in zip(x, y, strict=True):
        ftrl.update(state, row, label)
        thetas.append(state.theta)
    return np.array(thetas)


def random_path(link, seed, noise=1.0, d=3, T=25, ridge=None):
    rng = np.random.default_rng(seed)
    glm = nw.GLM(link, 1.0, 1.5)
    ridge = glm.ridge if ridge is None else ridge
    x, star = sphere(rng, T, d), 1.5 * rng.random() * sphere(rng, 1, d)[0]
    y = glm.mean(x @ star) + noise * rng.normal(size=T)
    return lemmas.path(glm, ridge, star, estimates(glm, ridge, x, y), x, y)
