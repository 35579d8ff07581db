"""What the checks share: their names, and how two results are compared."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..model.glm import GLM
from ..model.links import Link
from ..protocols import trait
from ..storage import archive

Check = Callable[[], None]
State = TypeVar("State")


def run(checks: Iterator[tuple[str, Check]]) -> None:
    """Run every check."""
    for _, check in checks:
        check()


def named(*checks: Callable[..., None], args: tuple[object, ...]) -> Iterator[tuple[str, Check]]:
    """Yield each check with its name, but those the object names in its ``not_promised``."""
    table = {
        check.__name__.lstrip("_").replace("_", " "): partial(check, *args) for check in checks
    }
    waived = not_promised(args[0])
    for name in waived:
        if name not in table:
            raise ValueError(f"not_promised names {name!r}; there are {', '.join(table)}")
    yield from ((name, check) for name, check in table.items() if name not in waived)


def not_promised(thing: object) -> tuple[str, ...]:
    """Return the names of the checks that ``thing`` says it does not keep."""
    names: object = trait(thing, "not_promised", ())
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"not_promised is {names!r}; pass a tuple of names of checks")
    return names


def dataclasses_in(*things: object) -> tuple[type, ...]:
    """Return the dataclasses that these, and what they hold, are of."""
    found: dict[type, None] = {}
    for thing in things:
        if isinstance(thing, list | tuple):
            found.update(dict.fromkeys(dataclasses_in(*thing)))
        elif is_dataclass(thing):
            held = (getattr(thing, field.name) for field in fields(thing))
            found.update(dict.fromkeys((type(thing), *dataclasses_in(*held))))
    return tuple(found)


def link_of(thing: object) -> Link:
    """Return the link of a regressor or policy; the identity where it has none."""
    return (trait(thing, "glm", None) or GLM()).link


def reloaded(thing: object, state: State) -> State:
    """Return a state as a file gives it back; its spec must come back equal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        archive.save(path, thing, state)
        spec, loaded = archive.load(path, link_of(thing), dataclasses_in(thing, state))
    assert spec == thing, "the loaded spec differs from the saved one"
    return loaded


def refuses(verb: Callable[..., object], state: object, case: tuple[object, ...]) -> None:
    """Fail unless a verb refuses a bad input, and leaves the state alone."""
    before = copy.deepcopy(state)
    try:
        verb(state, *case)
    except ValueError:
        assert same(before, state), f"the state changed although {verb.__name__}{case} failed"
    else:
        raise AssertionError(f"{verb.__name__}{case} was accepted")


def close(a: ArrayLike, b: ArrayLike, tolerance: float, sentence: str) -> None:
    """Fail with the sentence where two results differ."""
    assert np.allclose(a, b, rtol=tolerance, atol=tolerance), (
        f"{sentence}: they differ by {np.abs(np.asarray(a) - np.asarray(b)).max():.3g}"
    )


def same(a: object, b: object) -> bool:
    """Whether two states hold equal values, arrays and nested objects included."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan=True)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dict__") and not callable(a):
        return same(a.__getstate__(), b.__getstate__())
    return bool(a == b)
