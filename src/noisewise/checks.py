"""Checks anyone can run on a link or a regressor of their own.

Each check is a small function that raises `AssertionError` with a sentence. `yield_checks` lists
those that apply to an object, `check_link` and `check_regressor` run them all.
"""

import copy
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import archive
from .glm import GLM
from .links import LINKS, Link, integrate
from .protocols import Array
from .simulate import started

Check = Callable[[], None]


def check_link(link: Link | str, score_bound: float = 2.0) -> None:
    """Check a link on ``[-score_bound, score_bound]`` and its extension beyond."""
    _run(_link_checks(LINKS[link] if isinstance(link, str) else link, score_bound))


def check_regressor(regressor: Any) -> None:
    """Check that a regressor keeps the contract of `noisewise.protocols`."""
    _run(_regressor_checks(regressor))


def yield_checks(thing: Any) -> Iterator[tuple[str, Check]]:
    """Yield the name and the function of every check that applies to ``thing``."""
    if isinstance(thing, Link):
        yield from _link_checks(thing, 2.0)
    elif all(callable(getattr(thing, verb, None)) for verb in ("start", "predict", "update")):
        yield from _regressor_checks(thing)
    else:
        raise ValueError(
            f"{thing!r} is neither a noisewise.Link nor has start, predict and update; "
            "pass a link or a regressor (an instance, not a class)"
        )


def _run(checks: Iterator[tuple[str, Check]]) -> None:
    for _, check in checks:
        check()


def _named(*checks: Callable[..., None], args: tuple[Any, ...]) -> Iterator[tuple[str, Check]]:
    for check in checks:
        yield check.__name__.lstrip("_").replace("_", " "), partial(check, *args)


def _link_checks(link: Link, S: float) -> Iterator[tuple[str, Check]]:
    yield from _named(
        _mean_increases,
        _slope_is_derivative_of_mean,
        _potential_is_integral_of_mean,
        _slopes_stay_within_bounds,
        _extension_is_smooth,
        _score_inverts_mean,
        _self_concordance_holds,
        args=(link, S),
    )


def _grid(S: float, beyond: float = 1.0) -> Array:
    return np.linspace(-beyond * S, beyond * S, 4001)


def _mean_increases(link: Link, S: float) -> None:
    assert (np.diff(link.mean(_grid(S))) > 0).all(), f"{link!r}: mean does not increase"


def _slope_is_derivative_of_mean(link: Link, S: float) -> None:
    z = _grid(S)
    area = integrate(link.slope, z[:-1], z[1:])
    _close(np.diff(link.mean(z)), area, 1e-7, f"{link!r}: mean is not the integral of slope")


def _potential_is_integral_of_mean(link: Link, S: float) -> None:
    glm, z = GLM(link, 1.0, S), _grid(S, 3.0)
    area = integrate(glm.mean, z[:-1], z[1:])
    _close(np.diff(glm.potential(z)), area, 1e-6, f"{link!r}: potential is not that of mean")


def _slopes_stay_within_bounds(link: Link, S: float) -> None:
    glm = GLM(link, 1.0, S)
    slopes = glm.slope(_grid(S, 3.0))
    low, high = glm.min_slope * (1 - 1e-12), glm.max_slope * (1 + 1e-12)
    assert low <= slopes.min(), f"{link!r}: slope falls to {slopes.min()}, below {glm.min_slope}"
    assert slopes.max() <= high, f"{link!r}: slope rises to {slopes.max()}, above {glm.max_slope}"


def _extension_is_smooth(link: Link, S: float) -> None:
    glm, h = GLM(link, 1.0, S), 1e-7 * S
    for edge in (-S, S):
        for part in (glm.mean, glm.slope, glm.potential):
            jump = abs(part(edge + h) - part(edge - h))
            assert jump <= 1e-5 * (1 + abs(part(edge))), f"{link!r}: a jump at score {edge}"


def _score_inverts_mean(link: Link, S: float) -> None:
    glm, z = GLM(link, 1.0, S), np.linspace(-2 * S, 2 * S, 41)
    _close(glm.score(glm.mean(z)), z, 1e-7, f"{link!r}: score does not invert mean")


def _self_concordance_holds(link: Link, S: float) -> None:
    M = GLM(link, 1.0, S).self_concordance
    if M is None:
        return
    z = _grid(S)
    bend = np.abs(np.diff(np.log(link.slope(z)))) / np.diff(z)
    assert bend.max() <= M * (1 + 1e-6) + 1e-8, (
        f"{link!r}: |phi''|/phi' reaches {bend.max():.6g}, above self_concordance {M:g}"
    )


def not_promised(thing: Any) -> tuple[str, ...]:
    """Return the checks that ``thing`` says it does not keep, in its ``not_promised``."""
    names = getattr(thing, "not_promised", ())
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"not_promised is {names!r}; pass a tuple of names of checks")
    known = dict(_all_regressor_checks(thing))
    for name in names:
        if name not in known:
            raise ValueError(f"not_promised names {name!r}; there are {', '.join(known)}")
    return names


def _regressor_checks(regressor: Any) -> Iterator[tuple[str, Check]]:
    waived = not_promised(regressor)
    yield from (pair for pair in _all_regressor_checks(regressor) if pair[0] not in waived)


def _all_regressor_checks(regressor: Any) -> Iterator[tuple[str, Check]]:
    yield from _named(
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


def _stream(regressor: Any, dim: int = 3, rounds: int = 12) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(20220213)
    bounded = getattr(regressor, "glm", None) or regressor
    A = getattr(bounded, "feature_bound", 1.0)
    x = rng.normal(size=(rounds, dim))
    x *= A / np.linalg.norm(x, axis=1, keepdims=True)
    return x, rng.normal(size=rounds), rng.uniform(0.5, 2.0, size=rounds)


def _played(regressor: Any, later: Array | None = None) -> tuple[Any, Array]:
    """Play the stream; ``later`` are the rows that will be learnt after it."""
    x, y, w = _stream(regressor)
    state = started(regressor, x if later is None else np.vstack([x, later]))
    regressor.update(state, x, y, w)
    return state, x


def _settled(regressor: Any, state: Any, x: Array) -> Any:
    """Predictions once the state is solved exactly, where the regressor can do that."""
    if hasattr(regressor, "solve"):
        regressor.solve(state)
    return regressor.predict(state, x)


def _close(a: Any, b: Any, tolerance: float, sentence: str) -> None:
    assert np.allclose(a, b, rtol=tolerance, atol=tolerance), (
        f"{sentence}: they differ by {np.abs(np.asarray(a) - np.asarray(b)).max():.3g}"
    )


def _predict_writes_nothing(regressor: Any) -> None:
    state, x = _played(regressor)
    before = copy.deepcopy(state)
    first = regressor.predict(state, x)
    regressor.predict(state, x[0])
    assert _same(before, state), "predict changed the state"
    assert np.array_equal(first, regressor.predict(state, x)), "two predictions differ"
    assert isinstance(regressor.predict(state, x[0]), float), "predict of one row is not a float"


def _inputs_are_neither_kept_nor_changed(regressor: Any) -> None:
    x, y, w = _stream(regressor)
    copies = x.copy(), y.copy(), w.copy()
    state = started(regressor, x)
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


def _update_returns_the_earlier_prediction(regressor: Any) -> None:
    x, y, w = _stream(regressor)
    state = started(regressor, x)
    for row, label, weight in zip(x, y, w, strict=True):
        before = regressor.predict(state, row)
        returned = regressor.update(state, row, label, weight)
        _close(returned, before, 1e-12, "update does not return what predict said before")


def _block_equals_rows_one_by_one(regressor: Any) -> None:
    x, y, w = _stream(regressor)
    block, single = started(regressor, x), started(regressor, x)
    means = regressor.update(block, x, y, w)
    one_by_one = [regressor.update(single, a, b, c) for a, b, c in zip(x, y, w, strict=True)]
    _close(means, one_by_one, 1e-9, "a block differs from its rows")
    _close(
        regressor.predict(block, x), regressor.predict(single, x), 1e-9, "a block ends elsewhere"
    )


def _weight_two_equals_the_row_twice(regressor: Any) -> None:
    x, y, _ = _stream(regressor)
    once, twice = started(regressor, x), started(regressor, np.repeat(x, 2, axis=0))
    for row, label in zip(x, y, strict=True):
        regressor.update(once, row, label, 2.0)
        regressor.update(twice, row, label)
        regressor.update(twice, row, label)
    a, b = _settled(regressor, once, x), _settled(regressor, twice, x)
    _close(a, b, 1e-7, "weight 2 is not twice")


def _weight_zero_changes_nothing(regressor: Any) -> None:
    state, x = _played(regressor)
    before = copy.deepcopy(state)
    regressor.update(state, x[0], 5.0, 0.0)
    assert _same(before, state), "a row of weight 0 changed the state"


def _rotation_leaves_predictions_alone(regressor: Any) -> None:
    x, y, w = _stream(regressor)
    turn = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
    plain, turned = started(regressor, x), started(regressor, x @ turn)
    regressor.update(plain, x, y, w)
    regressor.update(turned, x @ turn, y, w)
    a, b = _settled(regressor, plain, x), _settled(regressor, turned, x @ turn)
    _close(a, b, 1e-7, "rotating the features changes predictions")


def _saved_state_continues_to_the_same_numbers(regressor: Any) -> None:
    state, x = _played(regressor, _stream(regressor)[0][:4])
    link = getattr(getattr(regressor, "glm", None), "link", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        archive.save(path, regressor, state)
        spec, loaded = archive.load(path, link=link)
    assert spec == regressor, "the loaded spec differs from the saved one"
    for each in (state, loaded):
        regressor.update(each, x[:4], [0.3, -0.2, 0.1, 0.9])
    same = np.array_equal(regressor.predict(state, x), regressor.predict(loaded, x))
    assert same, "a loaded state continues to other numbers"


def _one_dimension_works(regressor: Any) -> None:
    x, y, w = _stream(regressor, dim=1)
    state = started(regressor, x)
    regressor.update(state, x, y, w)
    assert np.isfinite(regressor.predict(state, x)).all(), "one dimension gives no finite mean"


def _a_zero_row_is_legal(regressor: Any) -> None:
    state, x = _played(regressor, np.zeros((1, 3)))
    before = _settled(regressor, state, x)
    regressor.update(state, np.zeros(3), 1.0)
    _close(_settled(regressor, state, x), before, 1e-7, "a zero row moved the estimate")


def _bad_input_leaves_the_state_alone(regressor: Any) -> None:
    state, x = _played(regressor, _stream(regressor)[0])
    before = copy.deepcopy(state)
    row, block = x[0], x[:2]
    nan = row * np.nan
    cases: list[tuple[Any, ...]] = [
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
        try:
            regressor.update(state, *case)
        except ValueError:
            assert _same(before, state), f"the state changed although update{case} failed"
        else:
            raise AssertionError(f"update{case} was accepted")


def _same(a: Any, b: Any) -> bool:
    """Whether two states hold equal values, arrays and nested objects included."""
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=True)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if hasattr(a, "__dict__") and not callable(a):
        return _same(a.__getstate__(), b.__getstate__())
    return bool(a == b)
