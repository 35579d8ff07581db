"""How far data travel through the sources: files visited, and calls from one file into another.

``python tests/package/test_walks.py`` prints what is counted. Compiled code counts as one file.
Each walk is done twice, by fresh learners, and the second is counted: what the first one imports
is not.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import noisewise as nw

ROOT = str(Path(nw.__file__).parent)


def rows():
    """Return features of length at most 1, and labels 0 and 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    return x / np.linalg.norm(x, axis=1)[:, None], (rng.random(200) < 0.5).astype(float)


def update():
    """Return what learns 200 rows one by one."""
    ftrl, (x, y) = nw.FTRL(nw.GLM("logistic"), ridge=0.5), rows()
    state = ftrl.start(dim=5)
    return lambda: [ftrl.update(state, *row) for row in zip(x, y, strict=True)]


def interval():
    """Return what asks for intervals of two rows."""
    ftrl, (x, y) = nw.FTRL(nw.GLM("logistic"), ridge=0.5), rows()
    state = ftrl.start(dim=5)
    ftrl.update(state, x, y)
    return lambda: ftrl.interval(state, x[:2], nw.Likelihood())


def fit():
    """Return what learns 30 shares."""
    model, (x, y) = nw.OnlineGLM("binomial"), rows()
    return lambda: model.partial_fit(x[:30, :2], y[:30])


def estimated_interval():
    """Return what asks an estimator of shares for intervals of two rows."""
    model, (x, y) = nw.OnlineGLM("binomial"), rows()
    model.partial_fit(x[:30, :2], y[:30])
    return lambda: model.predict_interval(x[:2, :2])


def agent():
    """Return an agent with a context."""
    return nw.Agent.for_binary_rewards(arms=nw.Arms(["a", "b"], context={"x": float}))


def choose():
    """Return what takes a first decision."""
    decider = agent()
    return lambda: decider.choose({"x": 1.0}, key=1)


def learn():
    """Return what learns a first reward."""
    decider = agent()
    decider.choose({"x": 1.0}, key=1)
    return lambda: decider.learn(1, 1.0)


# at most so many files, and so many calls between them
WALKS = {update: (9, 240), interval: (19, 107), fit: (22, 167), estimated_interval: (30, 314),
         choose: (14, 26), learn: (9, 14)}  # fmt: skip


def walk(prepare):
    """Return how many files a call visits, and how often it goes from one into another."""
    prepare()()
    call, files, hops = prepare(), set(), 0

    def look(frame, event, _):
        nonlocal hops
        here = frame.f_code.co_filename
        if event == "call" and here.startswith(ROOT):
            files.add(here)
            before = frame.f_back.f_code.co_filename if frame.f_back else ""
            hops += before.startswith(ROOT) and before != here

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), hops


@pytest.mark.parametrize("prepare", WALKS, ids=lambda each: each.__name__)
def test_data_go_straight(prepare):
    files, hops = walk(prepare)
    most_files, most_hops = WALKS[prepare]
    assert (files <= most_files, hops <= most_hops) == (True, True), (files, hops)


if __name__ == "__main__":
    for prepare, (files, hops) in WALKS.items():
        print(prepare.__name__, *walk(prepare), f"(at most {files}, {hops})")
