"""Files as they should not be: archives of every state, damaged and crafted; run in a process of
its own, since the worst a file could do is to end the process."""

import copy
import faulthandler
import io
import json
import resource
import struct
import sys
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from instances import CAUCHIT, POLICIES, REGRESSORS, sphere

import noisewise as nw
from noisewise.agent.agent_state import AgentState
from noisewise.agent.explanations.reasons import reasons
from noisewise.simulate import started

SLACK, RATIO = 50 * 2**20, 10
HANGS = 300  # seconds

EXTREMES = [
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 7.0, 8.0, 511.0, 512.0, 513.0, -8.0, 1e6, 1e9, 2.0**31, 2.0**53,
    2.0**63, 2.0**64, -(2.0**63), 1e-320, 1e-150, 1e100, 1e155, 1e300, -1e300, np.inf, -np.inf,
    np.nan,
]  # fmt: skip
WORDS = [
    None, True, False, 0, 1, -1, 2, 3, 10**6, 2**31, 2**63, 2**64, 10**400, -(10**30), 0.0, 0.5,
    -2.5, 1e-320, 1e300, float("inf"), float("nan"), "", "x", "logistic", "estimated", [], [1.0],
    [[]], {}, {"array": "state.array"}, {"array": "none"}, {"tuple": [0.0, 1.0]}, {"tuple": 3},
    {"link": "probit", "own": False}, {"link": [], "own": True}, {"type": "History", "fields": {}},
    {"type": "os:system", "fields": {}}, {"type": ["FTRL"], "fields": {}},
]  # fmt: skip

STATES = "AgentState", "FTRLState", "Layers", "LinearState", "OptimismState", "History"


@cache
def originals():
    """The bytes of an archive of every spec with its state, and of three agents."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.npz"
        for spec in [*REGRESSORS, *POLICIES]:
            nw.save(path, spec, learnt_by(spec))
            found.append(path.read_bytes())
        for agent in (*agents(), compared(None), compared("Ann")):
            agent.save(path)
            found.append(path.read_bytes())
        for estimator in estimators():
            nw.save(path, estimator)
            found.append(path.read_bytes())
    return found


def estimators():
    """A linear and a curved model, three classes, and a nonlinear model."""
    rng = np.random.default_rng(5)
    x, classes = rng.normal(size=(20, 2)), np.array(["a", "b", "c"])[rng.integers(3, size=20)]
    columns = pd.DataFrame(x, columns=["first", "second"])
    return [
        nw.OnlineGLM(noise=nw.SubGaussian(2.0)).fit(columns, x[:, 0]),
        nw.OnlineGLM("poisson").fit(x, rng.poisson(3.0, size=20)),
        nw.OnlineGLMClassifier().partial_fit(x, classes),
        nw.OnlineGLM(nonlinear=True).fit(x, x[:, 0] ** 2),
    ]


def learnt_by(spec, count=12, dim=2):
    """A state that has learnt a few rows or rewards."""
    rng = np.random.default_rng(5)
    x = np.eye(dim)[rng.integers(dim, size=count)]
    if not getattr(spec, "one_hot", False):
        x = 0.4 * sphere(rng, count, dim)
    y = rng.uniform(size=count)
    if hasattr(spec, "predict"):
        state = started(spec, np.vstack([x, x]))
        spec.update(state, x, y)
        return state
    state = spec.start(dim)
    for row, reward in zip(x, y.tolist(), strict=True):
        spec.update(state, row, reward, 0.5)
    return state


def agents():
    """Agents of different kinds, with decisions that wait."""
    made = [
        nw.Agent.for_means(2),
        nw.Agent.for_continuous_rewards(2),
        nw.Agent(nw.Uniform(), 2, rewards=(0.0, 1.0)),
        nw.Agent(nw.LinearThompson(), 2, sigma=0.5),
    ]
    for agent in made:
        for key in ("a", "b", 3):
            agent.choose(0.4 * np.eye(2), key=key)
        agent.learn("b", 0.7)
    return made


def compared(subject):
    """Return an agent that is compared with its holdout; with subjects a slate waits."""
    arms = nw.Arms(["a", "b"], interactions=None)
    agent = nw.Agent.for_binary_rewards(
        arms=arms, randomise=0.2, among="all", baseline="uniform", holdout=0.5
    )
    for key in range(5):
        agent.choose(None, key=key, subject=subject)
    agent.learn([0, 1, 2], [0.0, 1.0, 1.0])
    if subject:
        agent.choose(None, key="both", top=2, subject=subject)
        agent.learn("both", [1.0, None])
    return agent


def opened(raw):
    """The members of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def closed(members, method=zipfile.ZIP_STORED, twice=False):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        if twice:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                archive.writestr(name, data)
    return buffer.getvalue()


def dumped(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def header_of(members):
    return json.loads(str(np.load(io.BytesIO(members["header.npy"]))))


def with_header(members, header):
    text = header if isinstance(header, str) else json.dumps(header)
    return closed({**members, "header.npy": dumped(np.array(text))})


def places(tree, path=()):
    """Every place in the header, as the container and its key."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield tree, key
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def flipped(rng, raw):
    data = bytearray(raw)
    for _ in range(int(rng.integers(1, 9))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def chopped(rng, raw):
    at, n = int(rng.integers(len(raw))), int(rng.integers(1, 4096))
    return pick(rng, [raw[:at], raw[at:], raw + raw[:n], raw[:at] + bytes(n) + raw[at + n :]])


def directory_edited(rng, raw):
    """Numbers of the zip directory at its end: sizes, offsets, methods, flags."""
    data, first = bytearray(raw), raw.find(b"PK\x01\x02")
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(first, len(data) - 4))
        data[at : at + 4] = struct.pack("<I", int(pick(rng, [0, 1, 8, 99, 2**31, 2**32 - 1])))
    return bytes(data)


def member_flipped(rng, raw):
    """A damaged member whose checksum is right."""
    members = opened(raw)
    name = pick(rng, sorted(members))
    return closed({**members, name: flipped(rng, members[name][: 1 << 16])})


def spliced(rng, raw):
    members, others = opened(raw), opened(pick(rng, originals()))
    for _ in range(int(rng.integers(1, 4))):
        name = pick(rng, sorted(members)[1:] or sorted(members))
        members[name] = others[pick(rng, sorted(others))]
    if rng.random() < 0.2:
        members["header.npy"] = others["header.npy"]
    return closed(members)


def header_edited(rng, raw):
    members = opened(raw)
    header = header_of(members)
    for _ in range(int(rng.integers(1, 3))):
        container, key = pick(rng, list(places(header)))
        container[key] = copy.deepcopy(pick(rng, WORDS))
    return with_header(members, header)


def fields_edited(rng, raw):
    """Fields dropped, added, exchanged; classes exchanged."""
    members = opened(raw)
    header = header_of(members)
    typed = [each[key] for each, key in places(header) if isinstance(each[key], dict)]
    one, other = (pick(rng, [each for each in typed if "fields" in each]) for _ in range(2))
    fields = one["fields"]
    way = int(rng.integers(5))
    if way == 0 and fields:
        fields.pop(pick(rng, sorted(fields)))
    elif way == 1:
        fields[pick(rng, ["extra", "__class__", "views", "compiled", "count"])] = copy.deepcopy(
            pick(rng, WORDS)
        )
    elif way == 2:
        one["type"] = pick(rng, [*nw.__all__, *STATES, "os:Popen", "builtins:dict", ""])
    elif way == 3 and fields:
        a, b = pick(rng, sorted(fields)), pick(rng, sorted(fields))
        fields[a], fields[b] = fields[b], fields[a]
    else:
        one["fields"], other["fields"] = other["fields"], one["fields"]
    return with_header(members, header)


def state_exchanged(rng, raw):
    """The spec of one file with the state of another."""
    members, others = opened(raw), opened(pick(rng, originals()))
    header = header_of(members)
    header["spec"] = header_of(others)["spec"]
    return with_header(members, header)


def numbers_edited(rng, raw):
    members = opened(raw)
    name = pick(rng, [name for name in sorted(members) if name != "header.npy"] or ["header.npy"])
    if name == "header.npy":
        return raw
    array = np.load(io.BytesIO(members[name]))
    if array.size and array.dtype.kind in "fi":
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # the head of a state's array says where everything lies
            size = min(array.size, 56) if rng.random() < 0.7 else array.size
            for _ in range(int(rng.integers(1, 4))):
                value = pick(rng, EXTREMES)
                if array.dtype.kind == "i":
                    value = int(np.clip(np.nan_to_num(float(value)), -(2.0**62), 2.0**62))
                array.reshape(-1)[int(rng.integers(size))] = value
    return closed({**members, name: dumped(array)})


def shape_edited(rng, raw):
    members = opened(raw)
    name = pick(rng, [name for name in sorted(members) if name != "header.npy"] or ["header.npy"])
    array = np.load(io.BytesIO(members[name]))
    if array.dtype.kind == "U":
        return raw
    ways = [
        lambda a: a.T.copy() if a.ndim < 2 else np.asfortranarray(a),
        lambda a: a.reshape(-1),
        lambda a: a[..., None],
        lambda a: a.reshape(-1)[: int(rng.integers(a.size + 1))],
        lambda a: a.reshape(-1)[:0].reshape(0, 10**6),
        lambda a: np.concatenate([a.reshape(-1)] * 2),
        lambda a: np.resize(a, tuple(rng.integers(0, 5, size=a.ndim))),
        lambda a: a.astype(pick(rng, ["f4", ">f8", "i8", "c16", "O", "U8", "?", "f2", "V8"])),
        lambda a: np.array(pick(rng, EXTREMES)),
    ]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return closed({**members, name: dumped(pick(rng, ways)(array))})


def repacked(rng, raw):
    members = opened(raw)
    way = int(rng.integers(6))
    if way == 0:
        return closed(members, zipfile.ZIP_DEFLATED)
    if way == 1:
        return closed(members, twice=True)
    if way == 2:
        bomb = dumped(np.zeros(2_000_000))
        return closed({**members, "bomb.npy": bomb}, zipfile.ZIP_DEFLATED)
    if way == 3:
        depth = int(pick(rng, [10, 100, 900, 5000, 100_000]))
        nested = pick(rng, ["[", '{"tuple":[', '{"type":"GLM","fields":{"link":'])
        return with_header(members, '{"format":"noisewise-3","state":0,"spec":' + nested * depth)
    if way == 4:
        size = pick(rng, [10**5, 2 * 10**5])
        text = '{"format":"noisewise-3","state":0,"spec":[' + pick(rng, ["[],", "{},"]) * size
        return with_header(members, text + "0]}")
    huge = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (2**40, 2**30)
    name = pick(rng, sorted(members))
    data = b"\x93NUMPY\x01\x00v\x00" + huge.ljust(117) + b"\n" + bytes(80)
    return closed({**members, name: data})


WAYS = [
    flipped, chopped, directory_edited, member_flipped, spliced, header_edited, header_edited,
    fields_edited, state_exchanged, numbers_edited, numbers_edited, shape_edited, repacked,
]  # fmt: skip


def mutant(seed, index):
    """Return how the mutant was made, and its bytes."""
    rng = np.random.default_rng([seed, index])
    way = pick(rng, WAYS)
    return way.__name__, way(rng, pick(rng, originals()))


def used(spec, state):
    """Use what was loaded as its owner would."""
    rng = np.random.default_rng(0)
    inner = state.state if isinstance(state, AgentState) else state
    if not hasattr(spec, "start"):
        return
    d = inner.dim
    x = np.eye(d)[:3] * (1.0 if getattr(spec, "one_hot", False) else 0.4)
    if hasattr(spec, "predict"):
        spec.predict(inner, x)
        if hasattr(spec, "interval"):
            spec.interval(inner, x, nw.SubGaussian(0.5))
        for row in x:
            spec.update(inner, row, 0.5)
        spec.update(inner, np.vstack([x] * 5), np.full(5 * len(x), 0.3))
        if hasattr(spec, "solve"):
            spec.solve(inner)
        spec.predict(inner, x[0])
    elif hasattr(spec, "select"):
        reasons(spec, inner, x)
        for _ in range(8):
            k = spec.select(inner, x, rng, np.full(len(x), 0.5))
            spec.update(inner, x[k], 0.5, 0.5)


def continued(estimator):
    """Use an estimator that was loaded."""
    x = np.eye(estimator.n_features_in_)[:2]
    labels = estimator.classes_[:2] if hasattr(estimator, "classes_") else np.array([0.5, 1.0])
    estimator.predict(x)
    for _ in range(3):
        estimator.partial_fit(x, labels[: len(x)])
    estimator.predict(x)
    if hasattr(estimator, "predict_interval"):
        estimator.predict_interval(x)
    repr(estimator.summary())


def tried(path, agent):
    """Load a file and use what it holds; only a ValueError may come of it."""
    try:
        if agent:
            loaded = nw.Agent.load(path)
            x = 0.4 * np.eye(loaded.dim)[:3]
            loaded.explain(x)
            for key in loaded.waiting:
                loaded.learn(key, 0.5)
            loaded.choose(x, key="another")
            loaded.learn("another", 0.4)
            return "done"
        loaded = nw.load(path, link=CAUCHIT)
        if isinstance(loaded, tuple):
            used(*loaded)
        else:
            continued(loaded)
    except ValueError as error:
        return "refused" if "\n" not in str(error) else f"two lines: {error}"
    return "done"


def main(seed, first, last, folder):
    """Try mutants; note each before it is tried, and what is wrong with it after."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    path, notes = Path(folder) / "mutant.npz", Path(folder) / "notes"
    originals()
    for raw in originals():  # everything is compiled and imported before memory is measured
        path.write_bytes(raw)
        tried(path, agent=False)
        tried(path, agent=True)
    with notes.open("a") as book:
        for index in range(first, last):
            way, raw = mutant(seed, index)
            path.write_bytes(raw)
            print(json.dumps([index, "begun", way]), file=book, flush=True)
            faulthandler.dump_traceback_later(HANGS, exit=True)
            peak, held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resident()
            try:
                found = tried(path, agent=index % 4 == 0)
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                found = f"{type(error).__name__}: {error}"
            faulthandler.cancel_dump_traceback_later()
            rise = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
            most = 1024 * (peak + rise) - held
            if rise and most > RATIO * len(raw) + SLACK:
                found = f"memory: {most} bytes for a file of {len(raw)}"
            print(json.dumps([index, found, way]), file=book, flush=True)


def resident():
    """The bytes of memory in use now."""
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
