"""What all learners and policies answer on fixed streams: two versions compared.

    python tests/goldens.py write FILE      # with the sources before a change
    python tests/goldens.py compare FILE    # with those after it

Numbers must agree to 1e-7 of their size, choices exactly but for those after a near tie, of which
each policy may have few: the share of equal choices is printed. Nothing here is a test of what is
right, only of what has changed.
"""

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
from instances import POLICIES, REGRESSORS, small, sphere

import noisewise as nw

CLOSE = 1e-7
GLMS = {"gaussian": "identity", "binomial": "logistic", "poisson": "exponential"}


def labels(name, rng, score):
    """Draw labels of a family."""
    if name == "gaussian":
        return score + rng.normal(size=len(score))
    if name == "poisson":
        return rng.poisson(np.exp(score)).astype(float)
    return (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(float)


def regressors():
    """Yield what each regressor predicts for a stream, row by row and in one block."""
    rng = np.random.default_rng(5)
    x, w = sphere(rng, 700, 4, 0.49), rng.uniform(0.5, 2.0, size=700)
    y = labels("binomial", rng, 3 * x[:, 0])
    for i, each in enumerate(REGRESSORS):
        rows = np.abs(x) if "Exponentiated" in repr(each) or "Simplex" in repr(each) else x
        yield f"{i} {each}", np.asarray(nw.predictions(each, rows[:400], y[:400], w[:400]))
        start = {"design": rows} if isinstance(each, nw.Minimax) else {}
        state = each.start(4, **start)
        yield (
            f"{i} {each}, rows",
            np.array(
                [each.update(state, row, label) for row, label in zip(rows[:150], y, strict=False)]
            ),
        )


def estimators():
    """Yield predictions, intervals and coefficients of each family."""
    for d in (2, 20, 80):
        rng = np.random.default_rng([6, d])
        x = rng.normal(size=(400, d)) * np.exp(rng.normal(size=d)) + 3 * rng.normal(size=d)
        for family in GLMS:
            y = labels(family, rng, (x[:, 0] - x[:, 0].mean()) / x[:, 0].std())
            for nonlinear in (False, True) if d == 2 else (False,):
                model, name = nw.OnlineGLM(family, nonlinear=nonlinear), f"{family} {d} {nonlinear}"
                for part in np.split(np.arange(300), [1, 2, 10, 60]):
                    model.partial_fit(x[part], y[part])
                    yield f"{name} after {part[-1]}", model.predict(x[300:])
                yield f"{name} coefficients", model.coef_
                for promise in ({}, {"simultaneous": True}, {"anytime": False}):
                    found = model.predict_interval(x[300:310], **promise)
                    yield f"{name} {promise}", np.array([found.lower, found.upper])
                yield f"{name} batch", nw.OnlineGLM(family).fit(x[:300], y[:300]).predict(x[300:])
    rng = np.random.default_rng(7)
    x = rng.normal(size=(300, 3))
    y = (x + rng.gumbel(size=(300, 3))).argmax(axis=1)
    model = nw.OnlineGLMClassifier().partial_fit(x[:200], y[:200], classes=[0, 1, 2])
    yield "classes", model.predict_proba(x[200:])


def intervals():
    """Yield confidence sets and intervals of FTRL."""
    rng = np.random.default_rng(8)
    x = sphere(rng, 400, 5, 0.9)
    for link in ("identity", "logistic", "tanh", "exponential"):
        ftrl = nw.FTRL(nw.GLM(link), ridge=0.5)
        state = ftrl.start(5)
        ftrl.update(state, x, labels("binomial", rng, 2 * x[:, 1]))
        noise = nw.SubGaussian(0.5)
        yield f"{link} theta", np.append(state.theta, state.gap)
        for radius in ("adaptive", "played", "self-normalised"):
            yield f"{link} {radius}", np.array([*ftrl.interval(state, x[:9], noise, radius=radius)])
        fixed = ftrl.interval(state, x[:9], noise, simultaneous=False)
        yield f"{link} fixed row", np.array([fixed.lower, fixed.upper])


def policies():
    """Yield what each policy chooses in a small world, with rewards that it takes."""
    drawn = small(3, rounds=300)
    sigma = np.broadcast_to(drawn.sigma.reshape(300, -1), drawn.means.shape).copy()
    for i, each in enumerate(POLICIES):
        arms, rewards, words = drawn.arms, drawn.rewards, repr(each)
        if isinstance(each, nw.NormalUCB | nw.UCB1Normal):
            arms = np.eye(6)
        if "sub-gaussian" not in words and ("GLM(" in words or "binomial" in words):
            rewards = (rewards > 0).astype(float)
        world = nw.BanditRounds(arms, drawn.means, rewards, sigma)
        yield f"{i} {each}", nw.choices(each, world, np.random.default_rng(1))


def agents():
    """Yield what agents choose, with contexts and without."""
    for kind in ("binary", "continuous"):
        for context in ({}, {"x": float, "z": float}):
            rng = np.random.default_rng([9, kind == "binary"])
            make = getattr(nw.Agent, f"for_{kind}_rewards")
            agent, chosen = make(arms=nw.Arms(["a", "b", "c"], context=context or []), seed=1), []
            for t in range(400):
                c = {"x": float(rng.normal(50, 20)), "z": float(rng.normal())}
                action = agent.choose({name: c[name] for name in context}, key=t)
                score = {"a": 0.0, "b": (c["x"] - 50) / 20, "c": 0.3}[action]
                reward = float(rng.random() < 1 / (1 + np.exp(-score)))
                if kind == "continuous":
                    reward = score + float(rng.normal())
                if t % 7:
                    agent.learn(t, reward)
                chosen.append("abc".index(action))
            yield f"{kind} agent {context}", np.array(chosen)


PARTS = regressors, estimators, intervals, policies, agents


def answers():
    """Return all answers by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {f"{part.__name__}: {k}": v for part in PARTS for k, v in part()}


def size(numbers):
    """Return the largest finite number, without its sign."""
    return np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)


def differences(old, new):
    """Yield what differs, in words."""
    for name in sorted(old.keys() ^ new.keys()):
        yield f"{name}: only in {'the file' if name in old else 'this version'}"
    for name, before in old.items():
        after = new.get(name, before)
        if before.shape != after.shape:
            yield f"{name}: {before.shape} numbers, now {after.shape}"
        elif np.issubdtype(before.dtype, np.integer):
            if (share := np.mean(before == after)) < 1:
                first = int(np.argmax(before != after))
                yield f"{name}: {share:.1%} of choices equal, first other at {first}"
        elif not np.allclose(before, after, CLOSE, CLOSE * size(before), equal_nan=True):
            yield f"{name}: numbers differ by {size(before - after):.2g}, of {size(before):.2g}"


if __name__ == "__main__":
    verb, file = sys.argv[1], Path(sys.argv[2])
    if verb == "write":
        file.write_bytes(pickle.dumps(answers()))
    else:
        found = [*differences(pickle.loads(file.read_bytes()), answers())]
        print("\n".join(found) or "no difference")
        sys.exit(bool(found))
