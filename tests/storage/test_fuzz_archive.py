"""No file harms: thousands of damaged and crafted archives, loaded and used in another process."""

import contextlib
import dataclasses
import json
import secrets
import tempfile
import tracemalloc
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from archives import state_classes
from findings import check
from mutants import (
    RATIO,
    SLACK,
    agents,
    closed,
    compared,
    dumped,
    estimators,
    learnt_by,
    opened,
    with_header,
)

import noisewise as nw
from noisewise.bandits.without_features.uniform import UniformState

FIXED = 20220213


def test_no_mutant_harms(tmp_path):
    check("mutants.py", tmp_path, FIXED, 700)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [FIXED + 1, None])
def test_no_mutant_of_many_harms(tmp_path, seed):
    check("mutants.py", tmp_path, secrets.randbits(32) if seed is None else seed, 25_000)


GLM = nw.GLM("logistic")
STATES = {
    type(state).__name__: state
    for state in (
        *map(learnt_by, (
            nw.Forward(0.0), nw.Aggregating((nw.Ridge(), nw.Forward(0.0)), 5.0), nw.Minimax(),
            nw.DiscountedForward(),
            nw.HorizonFreeMinimax(), nw.GradientDescent(), nw.ExponentiatedGradient(2.0),
            nw.SimplexFTRL(), nw.NewtonStep(GLM), nw.FTRL(GLM), nw.RidgeMixture(), nw.FTRLUCB(GLM),
            nw.OFUL(), nw.LOSAN(), nw.SAVE(), nw.AdaOFUL(), nw.NormalUCB(), nw.GLMUCB(GLM),
            nw.UCBGLM(GLM), nw.GLOC(GLM), nw.GLBOMD(GLM), nw.OFUGLB(GLM), nw.Uniform(),
            nw.SelfTuned(),
        )),
        learnt_by(nw.FTRL(GLM, aggregate=True), count=600).rows,
        learnt_by(nw.FTRLUCB(GLM)).forms,
        nw.ResidualScale().after(0.5),
    )
}  # fmt: skip
SPECS = {"SelfTuned", "RidgeMixture", "MultinomialMixture", "Arms"}


def agent_state(agent):
    """What an agent writes, as it is found in its file."""
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "a.npz")
        return nw.load(Path(folder) / "a.npz")[1]


STATES["AgentState"], DRAWN = agent_state(agents()[1]), agent_state(compared(None))
STATES["Watch"], STATES["ExperimentState"] = DRAWN.watch, DRAWN.experiment
STATES["GroupRewards"] = DRAWN.experiment.groups
STATES["SubjectRewards"] = agent_state(compared("Ann")).experiment.subjects
ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 2))
STATES["Condensed"] = nw.fit_partitions(GLM, [(ROWS, ROWS[:, 0] > 0)], ridge=0.5).condensed[0]
STATES["SelfTunedUCBState"] = STATES["AgentState"].state  # with pending decisions
LINEAR, CURVED, CLASSES, NONLINEAR = (each._learnt for each in estimators())
STATES["EstimatorState"] = CLASSES
STATES["LinearModel"], STATES["CurvedModel"] = LINEAR.models[0], CURVED.models[0]
STATES["NormalEquations"] = LINEAR.models[0].sums
STATES["SafeMixture"] = LINEAR.models[0].mixture
STATES["ClassModel"], STATES["MultinomialState"] = CLASSES.several, CLASSES.several.state
STATES["NonlinearLearners"] = NONLINEAR.models[0].nonlinear
STATES["FeatureMoments"] = NONLINEAR.models[0].nonlinear.moments


def compared(subject=None):
    """What is kept of an agent to compare it with its holdout, with a decision that is pending."""
    arms = nw.Arms(["a", "b"], interactions=None)
    agent = nw.Agent.for_binary_rewards(
        arms=arms, randomise=0.5, among="all", baseline="a", holdout=0.5
    )
    for key in range(9):
        agent.choose(key=key, subject=subject and f"{subject} {key}")
        if key:
            agent.learn(key, 1.0)
    agent.forget(0)
    agent.choose(key="late", subject=subject)
    return agent


STATES["ExperimentState"] = compared().experiment.saved()
STATES["GroupRewards"] = STATES["ExperimentState"].groups
STATES["SubjectRewards"] = compared("someone").experiment.saved().subjects
STATES["Watch"] = compared().watch


def crafted(hint, value):
    """Wrong values for a field of that type which holds ``value``."""
    if type(None) not in get_args(hint):
        yield None
    if isinstance(value, np.ndarray):
        yield from (3.5, "x", value.tolist(), value[..., None], value.astype(np.float32))
        yield from (value.astype(value.dtype.newbyteorder()), np.array(1.0), value[..., :-1])
        yield from (np.ma.array(value), value + 1j)
        if value.size > 1:  # else its memory has no gaps
            yield np.repeat(value, 2, axis=-1)[..., ::2]
        frozen, holed = value.copy(), value.copy()
        frozen.flags.writeable = False
        yield frozen
        if value.dtype.kind == "f" and value.size:
            holed.reshape(-1)[0] = np.nan
            yield holed
    elif isinstance(value, bool):
        yield from (1, "x", 0.5)
    elif isinstance(value, int):
        yield from (-1, 1.5, True, 2**70, 10**400, "x", [value])
    elif isinstance(value, float):
        yield from (np.nan, np.inf, "x", [value], 10**400, 1j)
    elif isinstance(value, str):
        yield from ("", "{}", '{"bit_generator": "MT19937"}', "[" * 10_000, 3)
    elif isinstance(value, list):
        yield from ([None], [3.5], (), 3, [[]])
    elif dataclasses.is_dataclass(value):
        yield from (3.5, "x", [], UniformState(2), dataclasses.asdict(UniformState(2)))


def refused(state, name, value):
    try:
        dataclasses.replace(state, **{name: value})
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("name", STATES)
def test_crafted_fields_are_refused(name):
    state, seen = STATES[name], 0
    held, hints = state.__getstate__(), get_type_hints(type(state))
    for field in dataclasses.fields(state):
        if name == "AgentState" and field.name == "state":
            continue  # any policy's, of any class
        for value in crafted(hints[field.name], held[field.name]):
            seen += 1
            assert refused(state, field.name, value), f"{name}.{field.name} = {value!r} was taken"
    assert seen >= 5
    assert dataclasses.replace(state) is not state  # as it is it is taken


def test_all_state_classes_are_crafted():
    assert state_classes() - SPECS == STATES.keys()


@pytest.mark.parametrize("count", [20_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_memory_of_load_is_within_ten_files(tmp_path, count):
    """Headers of nothing but brackets, keys by the thousands, and one large array."""
    path = tmp_path / "a.npz"
    agents()[2].save(path)  # of a policy that counts no decisions, else all would have to agree
    members = opened(path.read_bytes())
    begun = '{"format":"noisewise-3","version":"0.1.0","state":0,"spec":['
    files = [with_header(members, begun + word * count + "0]}") for word in ("[],", "{},", '"é",')]
    files.append(closed({**members, "large.npy": dumped(np.zeros(4_000_000))}))
    keys = json.loads(str(np.load(path)["header"]))
    keys["state"]["fields"].update(keys=[f"key {i}" for i in range(count)], capacity=count)
    rows = {"state.features.npy": dumped(np.zeros((count, 2)))}
    files.append(with_header({**members, **rows}, keys))
    ratios = []
    for raw in files:
        path.write_bytes(raw)
        tracemalloc.start()
        with contextlib.suppress(ValueError):
            nw.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        ratios.append(peak / len(raw))
        assert peak <= RATIO * len(raw) + SLACK
    print("peak memory over the file's size:", [round(ratio, 1) for ratio in ratios])
    assert len(nw.Agent.load(path).waiting) == count
