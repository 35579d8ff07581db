"""No call harms: thousands with arguments of all kinds; and equal numbers, however they are held,
are learnt alike."""

import pickle
import secrets
import warnings

import numpy as np
import pytest
from calls import BAD, HELD, changed
from findings import check
from instances import POLICIES, REGRESSORS
from mutants import learnt_by

FIXED = 20220213


def test_no_call_harms(tmp_path):
    check("calls.py", tmp_path, FIXED, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [FIXED + 1, None])
def test_no_call_of_many_harms(tmp_path, seed):
    check("calls.py", tmp_path, secrets.randbits(32) if seed is None else seed, 25_000)


def outcome(spec, before, x, y, block):
    """What a pickled state is after learning ``x``, or None where it is refused and as before."""
    state = pickle.loads(before)
    try:
        if hasattr(spec, "predict"):
            spec.predict(state, x)
            spec.update(state, x, y if block else 0.5)
        else:
            spec.update(state, x, 0.5, 0.5)
    except ValueError:
        assert not changed(before, pickle.dumps(state)), "the state changed"
        return None
    return np.append(getattr(state, "theta", 0.0), [state.count, *means(spec, state)])


def means(spec, state):
    """What a regressor predicts, and nothing for a policy."""
    return spec.predict(state, np.eye(2)) if hasattr(spec, "predict") else ()


def rows_for(spec, block):
    """Rows that the spec would learn next."""
    rng = np.random.default_rng(5)
    x = 0.4 * np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    if getattr(spec, "one_hot", False):
        x = np.eye(2)[[0, 1, 1]]
    if hasattr(spec.start, "__code__") and "design" in spec.start.__code__.co_varnames:
        x = learnt_by(spec).design[12:15].copy()
    return (x, rng.uniform(size=3)) if block else (x[0], 0.5)


CASES = [(spec, block) for spec in REGRESSORS for block in (False, True)]
CASES += [(spec, False) for spec in POLICIES]


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize(("spec", "block"), CASES, ids=repr)
def test_equal_numbers_are_learnt_alike_or_refused(spec, block):
    (x, y), before = rows_for(spec, block), pickle.dumps(learnt_by(spec))
    wanted = outcome(spec, before, x, y, block)
    assert wanted is not None
    learnt = 0
    for name, hold in HELD.items():
        found = outcome(spec, before, hold(x), y, block)
        assert found is None or np.allclose(wanted, found, 1e-9, 1e-12), f"{name}: {found}"
        learnt += found is not None
    assert learnt >= len(HELD) - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, hold in BAD.items():
            if not (block and name in ("masked, none hidden", "no rows")):
                assert outcome(spec, before, hold(x), y, block) is None, f"{name} was taken"


@pytest.mark.parametrize("spec", REGRESSORS, ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e60, 1e200])
def test_a_block_is_learnt_whole_or_not_at_all(spec, bad):
    """The third row is bad; its weight is so small that sums of squares do not overflow."""
    x, y = rows_for(spec, True)
    x[2] = bad
    for weight in (1.0, np.array([1.0, 1.0, 1e-200])):
        state = learnt_by(spec)
        before = pickle.dumps(state)
        try:
            spec.update(state, x, y, weight)
        except ValueError:
            assert not changed(before, pickle.dumps(state))
        else:
            assert bad == 1e60
            assert np.isfinite(spec.predict(state, x[:2])).all()
