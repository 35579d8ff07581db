"""Calls as they should not be: every verb of every instance, with good and bad arguments; run in a
process of its own."""

import dataclasses
import datetime
import faulthandler
import json
import pickle
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from instances import POLICIES, REGRESSORS
from mutants import HANGS, agents, learnt_by, pick, used

import noisewise as nw
from noisewise.agent.explanations.reasons import reasons
from noisewise.checks.comparison import same

DIM = 2


class Own(np.ndarray):
    """An array of a class of its own."""


def unaligned(x):
    """The same floats, one byte off."""
    room = np.empty(x.nbytes + 1, dtype=np.uint8)
    off = room[1:].view(np.float64).reshape(x.shape)
    off[...] = x
    return off


def strided(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


# the same numbers, held otherwise: learnt as they are, or refused
HELD = {
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x.tolist()),
    "list of arrays": list,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "long double": lambda x: x.astype(np.longdouble),
    "objects": lambda x: x.astype(object),
    "decimals": lambda x: [Decimal(float(v)) for v in x] if x.ndim == 1 else x.tolist(),
    "fractions": lambda x: [Fraction(float(v)) for v in x] if x.ndim == 1 else x.tolist(),
    "unaligned": unaligned,
    "strided": strided,
    "read-only": read_only,
    "by columns": np.asfortranarray,
    "unpickled": lambda x: pickle.loads(pickle.dumps(x)),
    "subclass": lambda x: x.view(Own),
    "pandas": lambda x: pd.DataFrame(x) if x.ndim == 2 else pd.Series(x),
}  # fmt: skip

# no numbers, or none to compute with: refused
BAD = {
    "masked": lambda x: np.ma.array(x, mask=np.arange(x.size).reshape(x.shape) == 1),
    "masked, none hidden": lambda x: np.ma.array(x),
    "rows masked": lambda x: list(map(np.ma.array, np.atleast_2d(x))),
    "NaN": lambda x: x * np.nan,
    "infinite": lambda x: x + np.inf,
    "complex": lambda x: x + 1j,
    "words": lambda x: x.astype(str),
    "words as objects": lambda x: x.astype(str).astype(object),
    "beyond floats": lambda x: [10**400] * x.shape[-1],
    "long double beyond floats": lambda x: x.astype(np.longdouble) * np.longdouble("1e4000"),
    "dates": lambda x: np.full(x.shape, np.datetime64("2020-01-01")),
    "None": lambda x: None,
    "Nones": lambda x: [None] * x.shape[-1],
    "set": lambda x: {1.0, 0.5},
    "dict": lambda x: {0: 1.0, 1: 0.5},
    "generator": lambda x: (v for v in x),
    "ragged": lambda x: [[0.5], [0.1, 0.2]],
    "too deep": lambda x: x[None, None],
    "too narrow": lambda x: x[..., :1],
    "no rows": lambda x: x[..., :0],
    "one number": lambda x: 0.5,
    "huge": lambda x: 1e200 * x,
    "pandas with NA": lambda x: pd.Series([0.5, None], dtype="Float64"),
    "structured": lambda x: np.zeros(x.shape, dtype=[("a", "f8")]),
    "bytes": lambda x: b"12",
    "type": lambda x: float,
}  # fmt: skip

NUMBERS = [
    0.3, 0.5, 1.0, 1, True, np.float32(0.5), np.float16(0.5), np.longdouble(0.5), np.int8(1),
    Fraction(1, 2), Decimal("0.5"), np.array(0.5), np.True_,
]  # fmt: skip
NO_NUMBERS = [
    np.nan, np.inf, -np.inf, 1e200, -1e200, 10**400, -(10**400), Fraction(10**400), 1j,
    np.complex128(0.5), None, "0.5", b"1", np.ma.masked, np.ma.array(0.5, mask=True), [0.5, 0.5],
    np.array([[0.5]]), {0.5}, {}, (v for v in [0.5]), datetime.date(2020, 1, 1),
    np.datetime64("2020-01-01"), float, object(), pd.NA, pd.NaT, np.longdouble("1e4000"), [[]],
]  # fmt: skip
ODD_NUMBERS = [0.0, -0.5, 1e-320, 1e-160, 1e49, -1e49, 1e100]
KEYS = [
    "a",
    "b",
    3,
    None,
    10**400,
    True,
    1.5,
    np.array(3),
    np.array("a"),
    np.int64(3),
    b"a",
    {},
    [],
]


def block(rng, policy=None):
    if getattr(policy, "one_hot", False):
        return np.eye(DIM)[rng.integers(DIM, size=4)]
    return 0.3 * rng.uniform(-1, 1, size=(4, DIM))


def rows_of(rng, x):
    """Rows held in some way, bad ones among them, or with one bad row."""
    way = rng.random()
    if way < 0.4:
        return pick(rng, list(HELD.values()))(x)
    if way < 0.7:
        return pick(rng, list(BAD.values()))(x)
    x = x.copy()
    if way < 0.9:
        x[-1] = pick(rng, [np.nan, np.inf, 1e200, 1e60, 1e40, 1e20, 1e-320, 5.0, 0.0])
    return x


def number(rng):
    way = rng.random()
    return pick(rng, NUMBERS if way < 0.5 else NO_NUMBERS if way < 0.8 else ODD_NUMBERS)


def column_of(rng, x):
    if np.ndim(x) != 2 or rng.random() < 0.3:
        return number(rng)
    n = len(x)
    y = rng.uniform(size=n)
    if rng.random() < 0.4 and n:
        y[-1] = pick(rng, [np.nan, np.inf, 1e200, 1e60, 1e30, -1.0, 1e-320])
    return pick(
        rng, [y, y.tolist(), np.ma.array(y), y[:-1], y.astype(">f8"), strided(y), y[:, None]]
    )


def regressor_call(rng, spec, state):
    x = block(rng)
    x = rows_of(rng, x if rng.random() < 0.6 else x[0])
    y = column_of(rng, x) if isinstance(x, np.ndarray) else number(rng)
    w = pick(rng, [1.0, 1.0, 2.0, column_of(rng, x) if isinstance(x, np.ndarray) else number(rng)])
    verbs = {
        "predict": lambda: spec.predict(state, x),
        "update": lambda: spec.update(state, x, y, w),
        "interval": lambda: spec.interval(state, x, nw.SubGaussian(0.5), number(rng)),
    }
    if not hasattr(spec, "interval"):
        del verbs["interval"]
    verb = pick(rng, ["update", "update", *verbs])
    return verb, (x, y, w), verbs[verb]


def policy_call(rng, spec, state):
    x = block(rng, spec)
    arms, arm = rows_of(rng, x), rows_of(rng, x[0])
    draws = pick(rng, [np.random.default_rng(0), np.random.default_rng(0), None, 0, np.random])
    sigma = pick(
        rng, [None, np.full(4, 0.5), [0.5] * 4, number(rng), rows_of(rng, np.full(4, 0.5))]
    )
    reward, sd = number(rng), number(rng)
    verbs = {
        "select": lambda: spec.select(state, arms, draws, sigma),
        "update": lambda: spec.update(state, arm, reward, sd),
        "reasons": lambda: reasons(spec, state, arms),
    }
    verb = pick(rng, ["update", "update", *verbs])
    args = (arms, draws, sigma) if verb == "select" else (arm, reward, sd)
    return verb, args, verbs[verb]


def agent_call(rng, agent, _):
    x = block(rng, agent.policy)
    arms, key = rows_of(rng, x), pick(rng, KEYS)
    whose = pick(rng, [key, [key, "b"], rows_of(rng, x[0]), rows_of(rng, x), arms])
    reward, sd, trials = number(rng), pick(rng, [None, number(rng)]), pick(rng, [None, number(rng)])
    if rng.random() < 0.4:
        reward = column_of(rng, x)
    verbs = {
        "choose": lambda: agent.choose(arms, key, pick(rng, [None, number(rng)])),
        "learn": lambda: agent.learn(whose, reward, sd, trials),
        "forget": lambda: agent.forget(key),
        "explain": lambda: agent.explain(arms),
    }
    verb = pick(rng, ["learn", *verbs])
    return verb, (whose, arms, key, reward, sd, trials), verbs[verb]


VALUES = [
    *NUMBERS, *ODD_NUMBERS, 1e-100, 1e-99, 1e-60, 1e-30, 1e-12, 1e-6, 0.999999, 7, 2**62,
    2**63, 10**18, 1e12, 1e30, 1e60, 1e99, "identity", "logistic", "exponential", "practical", (),
    [], False, nw.GLM("tanh"), nw.GLM("exponential", 3.0, 5.0), nw.GLM("logistic", 1e30, 1e-30),
    nw.GLM("identity", 1e50, 1e9), nw.GLM("probit", 1e-50, 1e50),
]  # fmt: skip


def parameter_call(rng, spec, _):
    """A spec with one or two other parameters, and a few rounds of it."""
    names, given = [field.name for field in dataclasses.fields(spec)], {}
    for _ in range(int(rng.integers(1, 3)) if names else 0):
        given[pick(rng, names)] = pick(rng, NO_NUMBERS if rng.random() < 0.1 else VALUES)

    def made():
        other = dataclasses.replace(spec, **given)
        used(other, learnt_by(other))

    return "replace", (given,), made


def snapshot(thing):
    if isinstance(thing, nw.Agent):
        held = (
            thing.state,
            list(thing._learner.pending.arms.items()),
            thing.scale,
            thing.unit,
            thing.policy,
        )
        return pickle.dumps((*held, thing.dropped, thing.rng.bit_generator.state))
    return pickle.dumps(thing)


def changed(before, after):
    return before != after and not same(pickle.loads(before), pickle.loads(after))


def subjects():
    """Every instance with a maker of its state; agents are their own."""
    made = [(spec, regressor_call) for spec in REGRESSORS]
    made += [(spec, policy_call) for spec in POLICIES]
    return made + [(i, agent_call) for i in range(len(agents()))]


def fresh(spec):
    if isinstance(spec, int):
        agent = agents()[spec]
        return agent, agent
    return spec, learnt_by(spec)


def main(seed, first, last, folder):
    """Make calls; note each before it is made, and what is wrong after."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    everyone, kept = subjects(), {}
    with (Path(folder) / "notes").open("a") as book:
        for index in range(first, last):
            rng = np.random.default_rng([seed, index])
            at = int(rng.integers(len(everyone)))
            spec, call = everyone[at]
            if at not in kept or rng.random() < 0.05:
                kept[at] = fresh(spec)
            thing, state = kept[at]
            if call is not agent_call and rng.random() < 0.2:
                call = parameter_call
            verb, args, made = call(rng, thing, state)
            before, what = snapshot(state), f"{thing} {verb}{args}"[:600]
            print(json.dumps([index, "begun", what]), file=book, flush=True)
            faulthandler.dump_traceback_later(HANGS, exit=True)
            try:
                made()
                found = "done"
            except ValueError:
                found = "refused"
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                found = f"{type(error).__name__}: {error}"
            faulthandler.cancel_dump_traceback_later()
            if found != "done" and changed(before, snapshot(state)):
                found = f"the state changed, {found}"
                del kept[at]
            print(json.dumps([index, found, what]), file=book, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
