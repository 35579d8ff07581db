"""Checks anyone can run on a link, a regressor or an environment of their own.

Each check is a small function that raises `AssertionError` with a sentence. `yield_checks` lists
those that apply to an object; `check_link`, `check_regressor` and `check_environment` run them all.
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

Check = Callable[[], None]


def check_link(link: Link | str, score_bound: float = 2.0) -> None:
    """Check a link on ``[-score_bound, score_bound]`` and its extension beyond."""
    _run(_link_checks(LINKS[link] if isinstance(link, str) else link, score_bound))


def check_regressor(regressor: Any) -> None:
    """Check that a regressor keeps the contract of `noisewise.protocols`."""
    _run(_regressor_checks(regressor))


def check_environment(environment: Any) -> None:
    """Check that an environment draws honest tables of rounds from nothing but its generator."""
    _run(_environment_checks(environment))


def yield_checks(thing: Any) -> Iterator[tuple[str, Check]]:
    """Yield the name and the function of every check that applies to ``thing``."""
    if isinstance(thing, Link):
        yield from _link_checks(thing, 2.0)
    elif all(callable(getattr(thing, verb, None)) for verb in ("start", "predict", "update")):
        yield from _regressor_checks(thing)
    elif callable(getattr(thing, "draw", None)):
        yield from _environment_checks(thing)
    else:
        raise ValueError(
            f"{thing!r} is neither a noisewise.Link nor has start, predict and update, or draw; "
            "pass a link, a regressor or an environment (an instance, not a class)"
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


def _regressor_checks(regressor: Any) -> Iterator[tuple[str, Check]]:
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
    A = getattr(getattr(regressor, "glm", None), "feature_bound", 1.0)
    x = rng.normal(size=(rounds, dim))
    x *= A / np.linalg.norm(x, axis=1, keepdims=True)
    return x, rng.normal(size=rounds), rng.uniform(0.5, 2.0, size=rounds)


def _played(regressor: Any) -> tuple[Any, Array]:
    x, y, w = _stream(regressor)
    state = regressor.start(3)
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
    state = regressor.start(3)
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
    state = regressor.start(3)
    for row, label, weight in zip(x, y, w, strict=True):
        before = regressor.predict(state, row)
        returned = regressor.update(state, row, label, weight)
        _close(returned, before, 1e-12, "update does not return what predict said before")


def _block_equals_rows_one_by_one(regressor: Any) -> None:
    x, y, w = _stream(regressor)
    block, single = regressor.start(3), regressor.start(3)
    means = regressor.update(block, x, y, w)
    one_by_one = [regressor.update(single, a, b, c) for a, b, c in zip(x, y, w, strict=True)]
    _close(means, one_by_one, 1e-9, "a block differs from its rows")
    _close(
        regressor.predict(block, x), regressor.predict(single, x), 1e-9, "a block ends elsewhere"
    )


def _weight_two_equals_the_row_twice(regressor: Any) -> None:
    x, y, _ = _stream(regressor)
    once, twice = regressor.start(3), regressor.start(3)
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
    plain, turned = regressor.start(3), regressor.start(3)
    regressor.update(plain, x, y, w)
    regressor.update(turned, x @ turn, y, w)
    a, b = _settled(regressor, plain, x), _settled(regressor, turned, x @ turn)
    _close(a, b, 1e-7, "rotating the features changes predictions")


def _saved_state_continues_to_the_same_numbers(regressor: Any) -> None:
    state, x = _played(regressor)
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
    state = regressor.start(1)
    x, y, w = _stream(regressor, dim=1)
    regressor.update(state, x, y, w)
    assert np.isfinite(regressor.predict(state, x)).all(), "one dimension gives no finite mean"


def _a_zero_row_is_legal(regressor: Any) -> None:
    state, x = _played(regressor)
    before = _settled(regressor, state, x)
    regressor.update(state, np.zeros(3), 1.0)
    _close(_settled(regressor, state, x), before, 1e-7, "a zero row moved the estimate")


def _bad_input_leaves_the_state_alone(regressor: Any) -> None:
    state, x = _played(regressor)
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


def _environment_checks(environment: Any) -> Iterator[tuple[str, Check]]:
    yield from _named(
        _rounds_have_their_shapes,
        _the_generator_decides_everything,
        _noise_has_mean_zero_whatever_is_known,
        args=(environment,),
    )


def _drawn(environment: Any, seed: int = 20220213) -> Any:
    return environment.draw(np.random.default_rng(seed), 4000, 3)


def _rounds_have_their_shapes(environment: Any) -> None:
    rounds = _drawn(environment)
    wanted = {"x": (4000, 3), "mean": (4000,), "y": (4000,), "weight": (4000,)}
    for name, shape in wanted.items():
        array = np.asarray(getattr(rounds, name))
        assert array.shape == shape, f"{name} has shape {array.shape}, not {shape}"
        assert np.isfinite(array).all(), f"{name} holds NaN or infinity"
    assert (rounds.weight >= 0).all(), "a weight is negative"
    one = environment.draw(np.random.default_rng(0), 1, 1)
    assert one.x.shape == (1, 1), "one round of one feature does not work"


def _the_generator_decides_everything(environment: Any) -> None:
    before = np.random.get_state(legacy=False)  # noqa: NPY002
    first, again, other = _drawn(environment), _drawn(environment), _drawn(environment, 7)
    after = np.random.get_state(legacy=False)  # noqa: NPY002
    assert _same(before, after), "the global generator was used"
    assert _same(first, again), "the same seed gives another table"
    assert not np.array_equal(first.y, other.y), "another seed gives the same labels"


def _noise_has_mean_zero_whatever_is_known(environment: Any) -> None:
    """Residuals average to zero, alone, times each feature, times the weight: six errors each."""
    rounds = _drawn(environment)
    noise = (rounds.y - rounds.mean) * np.sqrt(rounds.weight)
    known = {"one": np.ones(len(noise)), "the log of the weight": np.log(rounds.weight + 1e-300)}
    known |= {f"feature {i}": x for i, x in enumerate(rounds.x.T)}
    for name, factor in known.items():
        product = noise * factor
        error = product.std() / np.sqrt(len(product))
        assert abs(product.mean()) <= 6 * error + 1e-12, (
            f"label less mean, times {name}, averages {product.mean():.3g} (error {error:.3g})"
        )


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
