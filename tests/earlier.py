"""Archives of an earlier version, and the numbers they continue to.

``python tests/earlier.py [NAME ...]`` writes files by the version that is installed; what is there
was written by commit adb791f, or when an algorithm was added. With the files of ``data``, which are
older still, every policy, every regressor and every class of state is there, and agents in
different situations.
`test_archive.py` loads them and compares what they continue to: numbers to 1e-9, choices exactly,
since `clear` asserts, when files are written, that no choice hangs on last bits.
"""

import json
import sys
from pathlib import Path

import numpy as np
from histories import practical_agent, practical_shares
from instances import CAUCHIT, sphere

import noisewise as nw
from noisewise.simulate import started

FOLDER = Path(__file__).parent / "data" / "earlier"
GLM = {link: nw.GLM(link) for link in ("identity", "logistic", "tanh", "probit")}
FLAT = nw.GLM("logistic", parameter_bound=2.0)

REGRESSORS = {
    "ftrl-probit": nw.FTRL(GLM["probit"]),  # more rows than the buffer holds
    "ftrl-exact": nw.FTRL(GLM["tanh"], tolerance=0),
    "ftrl-own-link": nw.FTRL(nw.GLM(CAUCHIT), ridge=0.3),
    "ridge": nw.Ridge(0.1, clip=0.5),
    "forward": nw.Forward(),
    "aggregating": nw.Aggregating((nw.GradientDescent(), nw.FTRL(GLM["logistic"])), 2.0),
    "minimax": nw.Minimax(),
    "horizon-free-minimax": nw.HorizonFreeMinimax(0.3),
    "gradient-descent": nw.GradientDescent(FLAT),
    "exponentiated-gradient": nw.ExponentiatedGradient(2.0, bound=3.0),
    "simplex-ftrl": nw.SimplexFTRL(),
    "newton-step": nw.NewtonStep(FLAT),
    "self-tuned": nw.SelfTuned(),
    "ridge-mixture": nw.RidgeMixture(ridge=0.5),  # one expert: a small file
}

POLICIES = {
    "mor-ucb": nw.MORUCB(GLM["logistic"], 1.0, 0.6, nested=True),
    "mor-ucb-printed": nw.MORUCB(GLM["identity"], 1.0, 0.6, as_printed=True),
    "ftrl-ucb-practical": nw.FTRLUCB(GLM["identity"], radius="practical"),
    "ftrl-ucb-estimated": nw.FTRLUCB(GLM["logistic"], "estimated", 0.5, radius="practical"),
    "oful": nw.OFUL(0.5, 2.0),
    "linucb": nw.LinUCB(),
    "weighted-least-squares-ucb": nw.WeightedLeastSquaresUCB(ridge=0.1),
    "weighted-oful": nw.WeightedOFUL(radius_scale=0.01),
    "weighted-oful-plus": nw.WeightedOFULPlus(radius_scale=0.001),
    "ids": nw.IDS(information="full", radius_scale=0.3),
    "losan": nw.LOSAN(),
    "save": nw.SAVE(0.5, 300, practical=True, radius_scale=0.01),
    "adaoful": nw.AdaOFUL(radius_scale=0.01),
    "normal-ucb": nw.NormalUCB(),
    "ucb1-normal": nw.UCB1Normal(),
    "glm-ucb": nw.GLMUCB(GLM["logistic"], radius_scale=0.01),
    "ucb-glm": nw.UCBGLM(GLM["logistic"], 0.5),
    "gloc": nw.GLOC(GLM["logistic"], 0.5),
    "glb-omd": nw.GLBOMD(GLM["logistic"], "exact", dispersion=0.5),
    "linear-thompson": nw.LinearThompson(),
    "laplace-thompson": nw.LaplaceThompson(GLM["probit"]),
    "greedy": nw.Greedy(GLM["logistic"]),
    "uniform": nw.Uniform(),
    "self-tuned-ucb": nw.SelfTunedUCB("binomial"),
}

AGENTS = {
    "agent-binary": practical_shares,
    "agent-means": practical_shares,
    "agent-continuous": practical_agent,
    "agent-self-tuned": nw.Agent.for_continuous_rewards,
    "agent-guaranteed": lambda dim: nw.Agent.for_continuous_rewards(dim, guaranteed=True),
    "agent-thompson": lambda dim: nw.Agent(nw.LinearThompson(), dim, seed=3),
}


def rows(seed, count):
    rng = np.random.default_rng(seed)
    return sphere(rng, count, 2), rng.uniform(size=count), rng.uniform(0.3, 0.9, size=count)


def learnt_rows(regressor, count):
    """A state that has learnt all but the last ten of the rows."""
    x, y, w = rows(1, count)
    state = started(regressor, x, w)
    regressor.update(state, x[:-10], y[:-10], w[:-10])
    return state


def continued_rows(regressor, state, count):
    """The means of the last ten rows, and after them."""
    x, y, w = (part[-10:] for part in rows(1, count))
    return [*regressor.update(state, x, y, w), *regressor.predict(state, np.eye(2))]


def arms_of(policy, t):
    return np.eye(2) if hasattr(policy, "one_hot") else sphere(np.random.default_rng([4, t]), 5, 2)


def play(policy, state, begin, end):
    """Rounds whose arms are chosen in turn, so that no file hangs on a choice."""
    _, y, s = rows(2, end)
    for t in range(begin, end):
        policy.update(state, arms_of(policy, t)[t % 2], y[t], s[t])


def continued_rounds(policy, state):
    """Ten rounds more: estimate, index, bounds of the sets and choices.

    The sets of FTRLUCB are smaller since that commit, which did not mix the played loss.
    """
    play(policy, state, 20, 30)
    arms = arms_of(policy, 99)
    found = [*np.ravel(state.theta)] if hasattr(state, "theta") else []
    if hasattr(policy, "index"):
        found += [*policy.index(state, arms)]
    if hasattr(policy, "confidence") and not isinstance(policy, nw.FTRLUCB):
        found += [bound for each in policy.confidence(state) for bound in each.upper(np.eye(2))]
    return [*found, *choices(policy, state, 1.0)]


def choices(policy, state, scale):
    return [
        policy.select(state, scale * arms_of(policy, t), np.random.default_rng(t), np.full(n, 0.5))
        for t in range(100, 108)
        for n in [len(arms_of(policy, t))]
    ]


def clear(policy, state):
    """Whether arms of other last bits have the same choices."""
    if hasattr(policy, "one_hot"):
        return True
    return choices(policy, state, 1.0) == choices(policy, state, 1 - 1e-7)


def teach(agent, begin, end):
    """Rewards with and without sd, at once and late; two decisions wait at the end."""
    _, y, s = rows(3, end)
    for t in range(begin, end):
        agent.choose(arms_of(agent.policy, t), key=t)
    for t in agent.waiting[:-2]:
        arm = arms_of(agent.policy, t)[t % 2]
        agent.forget(t)
        if agent.rewards is not None:
            agent.learn(arm, y[t] if t % 3 else float(y[t] > 0.5), trials=7 if t % 3 else None)
        else:
            agent.learn(arm, 40 * (y[t] - 0.3), sigma=None if t % 3 else 8 * s[t])


def continued_agent(agent):
    """Twelve decisions more: estimate, index, keys that wait, and what is drawn next.

    Intervals, and the guaranteed index, are those of smaller sets since that commit.
    """
    teach(agent, 20, 32)
    own = isinstance(agent.policy, nw.SelfTunedUCB)
    theta = agent.state.coef if own else agent.state.theta
    found = [*theta, agent.rng.random(), *agent.waiting]
    for each in agent.explain(arms_of(agent.policy, 99)):
        if each.index is not None and (own or agent.policy.radius == "practical"):
            found += [each.bonus, each.index]
    return found


def count_of(name):
    return 700 if name == "ftrl-probit" else 30


def continue_from(name):
    """Load a file and return the numbers it continues to."""
    path = FOLDER / f"{name}.npz"
    if name in AGENTS:
        return continued_agent(nw.Agent.load(path))
    spec, state = nw.load(path, link=CAUCHIT if "own-link" in name else None)
    if name in REGRESSORS:
        assert spec == REGRESSORS[name]
        return continued_rows(spec, state, count_of(name))
    assert spec == POLICIES[name]
    return continued_rounds(spec, state)


def write(names):
    """Write these files, and what they continue to; all without a name."""
    FOLDER.mkdir(exist_ok=True)
    names = names or (*REGRESSORS, *POLICIES, *AGENTS)
    for name in names:
        path = FOLDER / f"{name}.npz"
        if name in REGRESSORS:
            nw.save(path, REGRESSORS[name], learnt_rows(REGRESSORS[name], count_of(name)))
        elif name in POLICIES:
            policy = POLICIES[name]
            state = policy.start(2)
            play(policy, state, 0, 20)
            nw.save(path, policy, state)
            play(policy, state, 20, 30)
            assert clear(policy, state), name
        else:
            agent = AGENTS[name](2)
            teach(agent, 0, 20)
            agent.save(path)
    numbers = FOLDER / "continued.json"
    found = json.loads(numbers.read_text()) if numbers.exists() else {}
    found |= {name: [float(n) for n in continue_from(name)] for name in names}
    numbers.write_text(json.dumps(found, indent=0))


if __name__ == "__main__":
    write(sys.argv[1:])
