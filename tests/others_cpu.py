"""Print, as JSON, the CPU seconds that other threads took beside those of this one, call by call.

Run by `test_blas.py` in a process of its own, whose BLAS has as many threads as there are cores.
"""

import json
import sys
import time
import warnings

import instances
import numpy as np

import noisewise as nw
from noisewise.simulate import started

DIM, ARMS, LEAST = 100, 1000, 0.015  # each call is repeated for so many seconds of this thread


def others(call):
    """CPU of this thread and of all others, after one call to warm up."""
    call()
    mine, all_ = time.thread_time(), time.process_time()
    while time.thread_time() - mine < LEAST:
        call()
    mine = time.thread_time() - mine
    return mine, time.process_time() - all_ - mine


def plain(rng):
    """Calls of numpy that wake threads, so that the measure is known to see it; to come last."""
    x = rng.normal(size=(ARMS, DIM))
    V = x.T @ x
    yield "numpy matmul", lambda: x @ V
    yield "numpy eigh", lambda: np.linalg.eigh(V)


def streams(rng):
    noise = nw.SubGaussian(1.0)
    for link in ("identity", "logistic", instances.CAUCHIT):
        for d in (8, 20, 50, 100):
            ftrl = nw.FTRL(nw.GLM(link, 1.0, 2.0), ridge=0.5)
            x = instances.sphere(rng, 1100, d)
            y = (rng.random(len(x)) < 0.5).astype(float).tolist()
            name = f"{ftrl.glm.link.name} {d}"

            def block(ftrl=ftrl, x=x, y=y):
                state = ftrl.start(x.shape[1])
                ftrl.update(state, x, y)
                return state

            def rows(ftrl=ftrl, x=x, y=y):
                state = ftrl.start(x.shape[1])
                for row, label in zip(x, y, strict=True):
                    ftrl.update(state, row, label)

            def asked(ftrl=ftrl, x=x, y=y):
                state = ftrl.start(x.shape[1])
                for row, label in zip(x[:100], y, strict=False):
                    ftrl.interval(state, row, noise)
                    ftrl.update(state, row, label)

            state = block()
            yield f"{name} block", block
            yield f"{name} rows", rows
            yield f"{name} intervals", asked
            yield f"{name} interval", lambda f=ftrl, s=state, x=x: f.interval(s, x, noise)
            yield f"{name} predict", lambda f=ftrl, s=state, x=x: f.predict(s, x)
            yield f"{name} solve", lambda f=ftrl, s=state: f.solve(s)
            yield f"{name} gap", lambda s=state: s.gap


def regressors(rng):
    d = DIM
    for i, regressor in enumerate(instances.REGRESSORS):
        x = np.abs(instances.sphere(rng, 60, d, 0.5))
        y = rng.uniform(size=len(x))
        state = started(regressor, x)
        regressor.update(state, x[:50], y[:50])
        name = f"{i} {type(regressor).__name__}"

        def learn(regressor=regressor, x=x, y=y):
            fresh = started(regressor, x)
            regressor.update(fresh, x[:10], y[:10])

        yield f"{name} update", learn
        yield f"{name} predict", lambda r=regressor, s=state, x=x: r.predict(s, np.tile(x, (9, 1)))


def policies(rng):
    for i, policy in enumerate(instances.POLICIES):
        slow = getattr(policy, "form", "") == "set"  # a program an arm
        d, K = (20, 5) if slow else (DIM, ARMS)
        arms = np.eye(d) if getattr(policy, "one_hot", False) else instances.sphere(rng, K, d)
        state, sigma = policy.start(d), np.full(len(arms), 0.5)
        turn = iter(range(10**9))

        def learn(policy=policy, state=state, arms=arms, turn=turn):
            t = next(turn)
            policy.update(state, arms[t % len(arms)], float(t % 2), 0.5)

        for _ in range(20):
            learn()
        name = f"{i} {type(policy).__name__}"
        yield f"{name} update", learn
        yield (
            f"{name} select",
            lambda p=policy, s=state, a=arms, sd=sigma: p.select(s, a, rng, sd),
        )
        if hasattr(policy, "index"):
            yield f"{name} index", lambda p=policy, s=state, a=arms: p.index(s, a)
        if hasattr(policy, "confidence"):
            yield f"{name} confidence", lambda p=policy, s=state: p.confidence(s)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cases = {each.__name__: each for each in (streams, regressors, policies, plain)}
    for part in sys.argv[1:]:
        for name, call in cases[part](np.random.default_rng(0)):
            print(json.dumps([part, name, *others(call)]), flush=True)
