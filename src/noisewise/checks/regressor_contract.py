"""The checks of a regressor: the contract of `noisewise.protocols`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from ..protocols import AnyRegressor, Array, Regressor, State, trait
from ..simulate import started
from .comparison import Check, close, named, refuses, reloaded, same


def regressor_checks(regressor: AnyRegressor) -> Iterator[tuple[str, Check]]:
    """Yield the checks of a regressor."""
    yield from named(
        _predict_writes_nothing,
        _inputs_are_neither_kept_nor_changed,
        _update_returns_the_earlier_prediction,
        _block_equals_rows_one_by_one,
        _weight_two_equals_the_row_twice,
        _weight_zero_changes_nothing,
        _rotation_leaves_predictions_alone,
        _saved_state_continues_to_the_same_numbers,
        _one_dimension_works,
        _a_zero_row_is_legal,
        _bad_input_leaves_the_state_alone,
        args=(regressor,),
    )


def _stream(regressor: AnyRegressor, dim: int = 3, rounds: int = 12) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(20220213)
    A = trait(trait(regressor, "glm", None) or regressor, "feature_bound", 1.0)
    x = rng.normal(size=(rounds, dim))
    x *= A / np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(rng.normal(size=rounds), *trait(regressor, "label_range", (-np.inf, np.inf)))
    return x, y, rng.uniform(0.5, 2.0, size=rounds)


def _played(regressor: Regressor[State], later: Array | None = None) -> tuple[State, Array]:
    """Play the stream; ``later`` are the rows that will be learnt after it."""
    x, y, w = _stream(regressor)
    later = x[:0] if later is None else later
    state = started(regressor, np.vstack([x, later]), np.append(w, np.ones(len(later))))
    regressor.update(state, x, y, w)
    return state, x


def _settled(regressor: Regressor[State], state: State, x: Array) -> Array:
    """Predictions once the state is solved exactly, where the regressor can do that."""
    solve: Callable[[State], object] = trait(regressor, "solve", lambda _: None)
    solve(state)
    return np.asarray(regressor.predict(state, x))


def _predict_writes_nothing(regressor: AnyRegressor) -> None:
    state, x = _played(regressor)
    before = copy.deepcopy(state)
    first = regressor.predict(state, x)
    regressor.predict(state, x[0])
    assert same(before, state), "predict changed the state"
    assert np.array_equal(first, regressor.predict(state, x)), "two predictions differ"
    assert isinstance(regressor.predict(state, x[0]), float), "predict of one row is not a float"


def _inputs_are_neither_kept_nor_changed(regressor: AnyRegressor) -> None:
    x, y, w = _stream(regressor)
    w[7:] = 1.0
    copies = x.copy(), y.copy(), w.copy()
    state = started(regressor, x, w)
    regressor.update(state, x[:6], y[:6], w[:6])
    regressor.update(state, x[6], y[6], w[6])
    for now, then in zip((x, y, w), copies, strict=True):
        assert np.array_equal(now, then), "update changed its input"
    other = copy.deepcopy(state)
    x[:] = 0.1
    y[:], w[:] = 99.0, 3.0
    for each in (state, other):
        regressor.update(each, copies[0][7], copies[1][7])
    probe = copies[0]
    assert np.array_equal(regressor.predict(state, probe), regressor.predict(other, probe)), (
        "update kept a reference to its input"
    )


def _update_returns_the_earlier_prediction(regressor: AnyRegressor) -> None:
    x, y, w = _stream(regressor)
    state = started(regressor, x, w)
    for row, label, weight in zip(x, y, w, strict=True):
        before = regressor.predict(state, row)
        returned = regressor.update(state, row, label, weight)
        close(returned, before, 1e-12, "update does not return what predict said before")


def _block_equals_rows_one_by_one(regressor: AnyRegressor) -> None:
    x, y, w = _stream(regressor)
    block, single = started(regressor, x, w), started(regressor, x, w)
    means = regressor.update(block, x, y, w)
    one_by_one = [regressor.update(single, a, b, c) for a, b, c in zip(x, y, w, strict=True)]
    close(means, np.array(one_by_one), 1e-9, "a block differs from its rows")
    close(regressor.predict(block, x), regressor.predict(single, x), 1e-9, "a block ends elsewhere")


def _weight_two_equals_the_row_twice(regressor: AnyRegressor) -> None:
    x, y, _ = _stream(regressor)
    once, twice = started(regressor, x, 2.0), started(regressor, np.repeat(x, 2, axis=0))
    for row, label in zip(x, y, strict=True):
        regressor.update(once, row, label, 2.0)
        regressor.update(twice, row, label)
        regressor.update(twice, row, label)
    a, b = _settled(regressor, once, x), _settled(regressor, twice, x)
    close(a, b, 1e-7, "weight 2 is not twice")


def _weight_zero_changes_nothing(regressor: AnyRegressor) -> None:
    state, x = _played(regressor)
    before = copy.deepcopy(state)
    regressor.update(state, x[0], 5.0, 0.0)
    assert same(before, state), "a row of weight 0 changed the state"


def _rotation_leaves_predictions_alone(regressor: AnyRegressor) -> None:
    x, y, w = _stream(regressor)
    turn = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
    plain, turned = started(regressor, x, w), started(regressor, x @ turn, w)
    regressor.update(plain, x, y, w)
    regressor.update(turned, x @ turn, y, w)
    a, b = _settled(regressor, plain, x), _settled(regressor, turned, x @ turn)
    close(a, b, 1e-7, "rotating the features changes predictions")


def _saved_state_continues_to_the_same_numbers(regressor: AnyRegressor) -> None:
    state, x = _played(regressor, _stream(regressor)[0][:4])
    loaded = reloaded(regressor, state)
    y = _stream(regressor)[1][:4]
    for each in (state, loaded):
        regressor.update(each, x[:4], y)
    equal = np.array_equal(regressor.predict(state, x), regressor.predict(loaded, x))
    assert equal, "a loaded state continues to other numbers"


def _one_dimension_works(regressor: AnyRegressor) -> None:
    x, y, w = _stream(regressor, dim=1)
    state = started(regressor, x, w)
    regressor.update(state, x, y, w)
    assert np.isfinite(regressor.predict(state, x)).all(), "one dimension gives no finite mean"


def _a_zero_row_is_legal(regressor: AnyRegressor) -> None:
    state, x = _played(regressor, np.zeros((1, 3)))
    before = _settled(regressor, state, x)
    regressor.update(state, np.zeros(3), 1.0)
    close(_settled(regressor, state, x), before, 1e-7, "a zero row moved the estimate")


def _bad_input_leaves_the_state_alone(regressor: AnyRegressor) -> None:
    state, x = _played(regressor, _stream(regressor)[0])
    row, block = x[0], x[:2]
    nan = row * np.nan
    cases: list[tuple[ArrayLike, ...]] = [
        (nan, 1.0),
        (row, np.inf),
        (row, np.nan),
        (row[:2], 1.0),
        (block[None], 1.0),
        (block, [1.0]),
        (block, [1.0, np.nan]),
        (np.stack([row, nan]), [1.0, 1.0]),
        (row, 1.0, -1.0),
        (block, [1.0, 1.0], [1.0, np.inf]),
        (block, [1.0, 1.0], [1.0, 1.0, 1.0]),
        ("words", 1.0),
    ]
    for case in cases:
        refuses(regressor.update, state, case)
