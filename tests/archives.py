"""An archive of every class of state, and the numbers it continues to.

    python tests/archives.py write [NAME ...]      # after a change of what a state consists of
    python tests/archives.py record [NAME ...]     # the numbers too, for what is new

`test_archive.py` loads all archives and compares what they continue to with recorded numbers, to
1e-9; choices exactly, since no choice hangs on last bits when an archive is written. So `write`
shows that a change of layout has changed no number.
"""

import json
import re
import sys
from pathlib import Path
from typing import get_type_hints

import numpy as np
from histories import practical_agent, practical_shares
from instances import CAUCHIT, sphere

import noisewise as nw
from noisewise import bandits, regression
from noisewise.agent.agent_state import AgentState
from noisewise.estimators.estimator_state import EstimatorState
from noisewise.simulate import started
from noisewise.storage.archive import _Decoder

FOLDER = Path(__file__).parent / "data" / "archives"
RECORDED = FOLDER / "numbers.json"
NUMBERS = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
GLM = {link: nw.GLM(link) for link in ("identity", "logistic", "tanh", "probit")}
FLAT = nw.GLM("logistic", parameter_bound=2.0)

REGRESSORS = {
    "ftrl-identity": nw.FTRL(GLM["identity"]),
    "ftrl-logistic": nw.FTRL(GLM["logistic"]),
    "ftrl-aggregate": nw.FTRL(GLM["tanh"], aggregate=True),
    "ftrl-probit": nw.FTRL(GLM["probit"]),  # more rows than the buffer holds
    "ftrl-exact": nw.FTRL(GLM["tanh"], tolerance=0),
    "ftrl-own-link": nw.FTRL(nw.GLM(CAUCHIT), ridge=0.3),
    "ridge": nw.Ridge(0.1, clip=0.5),
    "forward": nw.Forward(),
    "forward-free": nw.Forward(0.0),
    "discounted-forward": nw.DiscountedForward(),
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
    "ftrl-ucb": nw.FTRLUCB(GLM["logistic"]),
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
    "ofuglb": nw.OFUGLB(GLM["logistic"]),
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

ESTIMATORS = {
    "estimator-gaussian": nw.OnlineGLM(noise=nw.SubGaussian(2.0)),
    "estimator-poisson": nw.OnlineGLM("poisson", ridge=0.5),
    "estimator-classes": nw.OnlineGLMClassifier(ridge=0.5),
    "estimator-one-versus-rest": nw.OnlineGLMClassifier(0.5, multi_class="ovr"),
    "estimator-nonlinear": nw.OnlineGLM(nonlinear=True),
}

AGENTS = {
    "agent-binary": practical_shares,
    "agent-means": practical_shares,
    "agent-continuous": practical_agent,
    "agent-self-tuned": nw.Agent.for_continuous_rewards,
    "agent-guaranteed": lambda dim: nw.Agent.for_continuous_rewards(dim, guaranteed=True),
    "agent-contexts": lambda _: nw.Agent.for_binary_rewards(
        arms=nw.Arms(["a", "b"], context=["age"]),
        randomise=0.3,
        among="all",
        seed=4,
        baseline="a",
        holdout=0.2,
    ),
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
    """Ten rounds more: estimate, index, bounds of the sets and choices."""
    play(policy, state, 20, 30)
    arms = arms_of(policy, 99)
    found = [*np.ravel(state.theta)] if hasattr(state, "theta") else []
    if hasattr(policy, "index"):
        found += [*policy.index(state, arms)]
    if hasattr(policy, "confidence"):
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
        whose = t % 5 if agent.holdout.share else None
        agent.choose(offer(agent, t), key=t, subject=whose)
    for t in agent.waiting[:-2]:
        if agent.arms is not None:
            agent.learn(t, float(y[t] > 0.5))
            continue
        arm = arms_of(agent.policy, t)[t % 2]
        agent.forget(t)
        if agent.rewards is not None:
            agent.learn(arm, y[t] if t % 3 else float(y[t] > 0.5), trials=7 if t % 3 else None)
        else:
            agent.learn(arm, 40 * (y[t] - 0.3), sigma=None if t % 3 else 8 * s[t])


def offer(agent, t):
    """The arms of a round, or its context."""
    return arms_of(agent.policy, t) if agent.arms is None else {"age": 20.0 + 7 * t % 40}


def continued_agent(agent):
    """Twelve decisions more: estimate, index, keys that wait, and what is drawn next."""
    teach(agent, 20, 32)
    own = isinstance(agent.policy, nw.SelfTunedUCB)
    theta = agent.state.coef if own else agent.state.theta
    found = [*theta, agent.rng.random(), *agent.waiting]
    for each in agent.explain(offer(agent, 99)):
        if each.index is not None:
            found += [each.bonus, each.index]
    return found


def count_of(name):
    return 700 if name == "ftrl-probit" else 30


def fit(estimator):
    """Learn rows of two columns with two labels, or counts, or three classes."""
    x, y, w = rows(5, 60)
    return estimator.partial_fit(x[:50], labels_for(estimator, y[:50]), sample_weight=w[:50])


def continued_estimator(estimator):
    """Ten rows more: means or probabilities, coefficients and intervals."""
    x, y, w = (part[-10:] for part in rows(5, 60))
    estimator.partial_fit(x, labels_for(estimator, y), sample_weight=w)
    if isinstance(estimator, nw.OnlineGLMClassifier):
        return [*np.ravel(estimator.predict_proba(x)), *np.ravel(estimator.coef_)]
    lengths = [each.upper - each.lower for each in [estimator.predict_interval(x)]]
    return [*estimator.predict(x), *np.ravel(estimator.coef_), *np.ravel(lengths)]


def labels_for(estimator, y):
    if isinstance(estimator, nw.OnlineGLMClassifier):
        return np.array(["a", "b", "c"])[(3 * y).astype(int)]
    return np.floor(5 * y) if estimator.family == "poisson" else y


def partitions():
    """A state of two partitions of shares, whose rows are condensed, and its spec."""
    glm, (x, y, _) = GLM["logistic"], rows(6, 400)
    return nw.FTRL(glm), nw.fit_partitions(glm, [(x[:200], y[:200]), (x[200:], y[200:])])


def names():
    return [*REGRESSORS, *POLICIES, *ESTIMATORS, *AGENTS, "partitions"]


def save(name):
    """Write the archive of what has learnt a few rows."""
    path = FOLDER / f"{name}.npz"
    if name in AGENTS:
        agent = AGENTS[name](2)
        teach(agent, 0, 20)
        agent.save(path)
    elif name in ESTIMATORS:
        nw.save(path, fit(ESTIMATORS[name]))
    elif name == "partitions":
        nw.save(path, *partitions())
    elif name in REGRESSORS:
        nw.save(path, REGRESSORS[name], learnt_rows(REGRESSORS[name], count_of(name)))
    else:
        policy = POLICIES[name]
        state = policy.start(2)
        play(policy, state, 0, 20)
        nw.save(path, policy, state)
        play(policy, state, 20, 30)
        assert clear(policy, state), name


def continue_from(name):
    """Load an archive and return the numbers it continues to."""
    path = FOLDER / f"{name}.npz"
    if name in AGENTS:
        return continued_agent(nw.Agent.load(path))
    if name in ESTIMATORS:
        return continued_estimator(nw.load(path))
    spec, state = nw.load(path, link=CAUCHIT if "own-link" in name else None)
    if name in POLICIES:
        assert spec == POLICIES[name]
        return continued_rounds(spec, state)
    assert name == "partitions" or spec == REGRESSORS[name]
    return continued_rows(spec, state, count_of(name))


def classes_in(path):
    """The names of the classes in the header of an archive."""
    return set(re.findall(r'"type": "(\w+)"', str(np.load(path)["header"])))


def state_classes():
    """The names of all classes that a state may consist of."""
    decoder = _Decoder({}, None, {})
    for name in (*bandits.POLICIES, *regression.REGRESSORS):
        decoder._learn_classes(get_type_hints(getattr(nw, name).start)["return"])
    decoder._learn_classes(AgentState)
    decoder._learn_classes(EstimatorState)
    return decoder.known.keys()


def main(verb, chosen):
    FOLDER.mkdir(exist_ok=True)
    numbers = dict(NUMBERS)
    for name in chosen or names():
        save(name)
        found = [float(n) for n in continue_from(name)]
        if verb == "record":
            numbers[name] = found
        elif len(found) != len(numbers[name]) or not np.allclose(
            found, numbers[name], rtol=1e-9, atol=1e-9
        ):
            print(f"{name} continues to other numbers than were recorded")
    if verb == "record":
        RECORDED.write_text(json.dumps(numbers, indent=0))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
