"""Save and load a spec with its state: one .npz file, a JSON header and plain arrays, no pickle."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeGuard, get_args, get_type_hints
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ..inputs import refuse_class, shown
from ..model.links import LINKS, Link
from ..protocols import trait
from . import files
from .members import read_members

FORMAT = "noisewise-3"
FOREIGN = "was not written by noisewise.save"
DEEPEST = 32  # levels of classes and lists in each other
HOLDERS = {  # what files hold around a state
    "AgentState": "noisewise.agent.agent_state",
    "EstimatorState": "noisewise.estimators.estimator_state",
}

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Arrays = dict[str, NDArray[np.generic]]


def save(path: str | os.PathLike[str], spec: object, state: object = None) -> None:
    """Write ``spec`` and ``state`` to ``path``; an old file is replaced only once all is on disk.

    An estimator is passed alone, in place of the spec: it holds its state.

    The file holds a member ``header`` (JSON) and one array a member; `numpy.load` opens it. An old
    file keeps its mode and a link its target; what a killed `save` left is removed by the next.
    What `load` would refuse is refused before the old file is touched.
    """
    refuse_class("spec", spec)
    own: Callable[[], object] | None = trait(spec, "_saved_state", None)
    if (state is None) != (own is not None):
        words = "an estimator is saved without a state" if own else "pass the state of the spec"
        raise ValueError(f"state is {shown(state)}; {words}")
    kept = _Kept()
    body = {"spec": _encode("spec", spec, kept)}
    body["state"] = _encode("state", own() if own else state, kept)
    header = json.dumps({"format": FORMAT, "version": _version(), **body})
    arrays, copies = kept.arrays, {n: np.array(x, order="A") for n, x in kept.arrays.items()}
    try:
        _made(body, copies, kept.link, kept.types)
    except ValueError as error:
        raise ValueError(
            f"{str(path)!r} is not written, since it could not be loaded: {error}; go back to an "
            "earlier copy, or rescale what is learnt"
        ) from None

    def write(part: Path) -> None:
        with part.open("wb") as file:  # given a name, savez would add a suffix
            np.savez(file, header=np.array(header), **arrays)  # type: ignore[arg-type]

    files.replace(path, write)


def load(
    path: str | os.PathLike[str], link: Link | None = None, types: tuple[type, ...] = ()
) -> Any:
    """Return the spec and state saved at ``path``, or the estimator.

    A file is data: all of it is checked, and only classes of noisewise are made of it. A link of
    your own is passed again, and so are dataclasses of your own, as ``types``.
    """
    own = {_public_name(kind): kind for kind in types if _is_class(kind)}
    if len(own) < len(types):
        raise ValueError(f"types is {types!r}; pass a tuple of dataclasses of your own")
    header, arrays = _open(path)
    try:
        return _made(header, arrays, link, own)
    except _Wanting:
        raise
    except ValueError as error:
        version = str(header.get("version"))
        if _newer(version):
            raise ValueError(
                f"{str(path)!r} was written by noisewise {version} and this is {_version()}, which "
                f"does not understand all of it ({error}); update noisewise"
            ) from None
        raise damaged(path, error) from None


def _made(
    header: dict[str, Json], arrays: Arrays, link: Link | None, own: dict[str, type]
) -> object:
    """Return what a header describes: a spec and its state, or an estimator."""
    decoder = _Decoder(arrays, link, own)
    spec, state = (decoder.decode(header[part]) for part in ("spec", "state"))
    suit(spec, state)
    restore: Callable[[object], None] | None = trait(spec, "_restore", None)
    if restore is None:
        return spec, state
    restore(state)
    return spec


def damaged(path: str | os.PathLike[str], why: object) -> ValueError:
    """Return the one error of a file that can't be relied on."""
    return ValueError(f"{str(path)!r} is cut short or damaged ({why}); load another copy")


def suit(spec: object, state: object) -> None:
    """Raise unless the state is of the class that the spec's `start` says it makes.

    A spec may look closer in a method ``check_state``. An agent's file holds the state inside.
    """
    if isinstance(spec, type) or not dataclasses.is_dataclass(spec):
        raise ValueError(f"it holds a {type(spec).__name__} where a spec belongs")
    start: object = trait(spec, "start", None)
    if start is None or not start.__module__.startswith("noisewise."):
        return
    inner = trait(state, "state", state)
    if not isinstance(inner, get_type_hints(start)["return"]):
        kinds = f"{type(inner).__name__} and the spec a {type(spec).__name__}"
        raise ValueError(f"the state is a {kinds}, which do not belong together")
    check: Callable[[object], object] = trait(spec, "check_state", lambda _: None)
    check(inner)


class _Wanting(ValueError):
    """What the caller must pass before a good file can be read."""


def _open(path: str | os.PathLike[str]) -> tuple[dict[str, Json], Arrays]:
    """Return the header, of a format that is known, and the arrays."""
    foreign = ValueError(f"{str(path)!r} {FOREIGN}")
    try:
        arrays = read_members(path)
    except ValueError as error:
        raise damaged(path, error) from None
    text = None if arrays is None else arrays.pop("header", None)
    if arrays is None or text is None or text.shape or text.dtype.kind != "U":
        raise foreign
    try:
        header = json.loads(str(text))
    except (ValueError, RecursionError):
        raise foreign from None
    if not isinstance(header, dict) or "format" not in header:
        raise foreign
    found, version = header["format"], str(header.get("version"))
    if found != FORMAT:
        newer = _number(found) > _number(FORMAT)
        raise ValueError(
            f"{str(path)!r} has format {found!r}, written by noisewise {version}, and this "
            f"noisewise {_version()} reads {FORMAT!r}; "
            + ("update noisewise" if newer else "learn its rows again, or load it with that one")
        )
    if not {"spec", "state"} <= header.keys():
        raise damaged(path, "its header holds no spec and state")
    return header, arrays


def _version() -> str:
    return str(import_module("noisewise").__version__)


def _number(text: object) -> list[int]:
    """Return the numbers in the name of a format or version."""
    return [int(each) for each in re.findall(r"[0-9]{1,9}", str(text)[:100])]


def _newer(version: str) -> bool:
    return _number(version) > _number(_version())


@dataclasses.dataclass
class _Kept:
    """What a file holds beside its header, and what is passed again when it is loaded."""

    arrays: Arrays = dataclasses.field(default_factory=dict)
    link: Link | None = None
    types: dict[str, type] = dataclasses.field(default_factory=dict)


def _encode(name: str, value: object, kept: _Kept) -> Json:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if isinstance(value, UUID):
        return {"uuid": value.hex}
    if isinstance(value, np.ndarray):
        if value.dtype.str[1:] not in ("f8", "i8") and value.dtype.kind != "U":
            raise ValueError(
                f"{name} is of type {value.dtype}; only arrays of float64, int64 and text are saved"
            )
        kept.arrays[name] = value
        return {"array": name}
    if isinstance(value, Link):
        own = LINKS.get(value.name) != value
        kept.link = value if own else kept.link
        return {"link": value.name, "own": own}
    if isinstance(value, list | tuple):
        parts = [_encode(f"{name}.{i}", part, kept) for i, part in enumerate(value)]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind, held = type(value), dict(value.__getstate__() or {})  # type: ignore[call-overload]
        fields = {
            f.name: _encode(f"{name}.{f.name}", held[f.name], kept)
            for f in dataclasses.fields(value)
        }
        kept.types |= {called: kind} if ":" in (called := _public_name(kind)) else {}
        return {"type": called, "fields": fields}
    raise ValueError(
        f"{name} is {value!r}; only dataclasses of numbers, words and arrays are saved"
    )


@dataclasses.dataclass
class _Decoder:
    """Makes what a header describes, of arrays, of ``link`` and of classes ``known``.

    A file never decides what is imported: known are the classes that were passed, public ones, and
    those that a spec, once it is made, says its states consist of.
    """

    arrays: Arrays
    link: Link | None
    known: dict[str, type]

    def decode(self, value: Json, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise ValueError(f"its header is more than {DEEPEST} levels deep")
        if isinstance(value, list):
            for i, part in enumerate(value):  # in place: a long list is held once
                value[i] = self.decode(part, depth + 1)
            return value
        match value:
            case {"tuple": list(parts), **rest} if not rest:
                return tuple(self.decode(parts, depth + 1))
            case {"uuid": str(text), **rest} if not rest:
                return UUID(text)
            case {"array": str(name), **rest} if not rest:
                if name not in self.arrays:
                    raise ValueError(f"it lacks {name!r}, or holds it twice")
                return self.arrays.pop(name)
            case {"link": name, "own": own, **rest} if not rest:
                return self._find_link(name, own)
            case {"type": name, "fields": dict(fields), **rest} if not rest:
                return self._make(self._find_class(name), fields, depth + 1)
            case dict():
                raise ValueError(f"its header holds {sorted(value)[:4]!r}")
        return value

    def _make(self, kind: type, given: dict[str, Json], depth: int) -> object:
        known = {field.name: field.init for field in dataclasses.fields(kind)}
        if given.keys() != known.keys():
            names = ", ".join(sorted(known.keys() ^ given.keys())[:4])
            raise ValueError(f"a {kind.__name__} lacks, or has too many, fields: {names[:100]}")
        parts = {name: self.decode(part, depth) for name, part in given.items()}
        thing = kind(**{name: part for name, part in parts.items() if known[name]})
        for name, part in parts.items():
            if not known[name]:
                setattr(thing, name, part)
        if start := trait(kind, "start", None):
            self._learn_classes(_hints(start).get("return"))
        return thing

    def _learn_classes(self, hint: object) -> None:
        """Know the classes of noisewise in a type hint, and in those of their fields."""
        for part in get_args(hint):
            self._learn_classes(part)
        if _is_class(hint) and (name := _public_name(hint)) not in self.known and ":" not in name:
            self.known[name] = hint
            for part in _hints(hint).values():
                self._learn_classes(part)

    def _find_class(self, name: Json) -> type:
        found: object = None
        if isinstance(name, str):
            home = import_module(HOLDERS.get(name, "noisewise"))
            public = name in HOLDERS or name in home.__all__
            found = self.known.get(name) or (trait(home, name, None) if public else None)
            if name in HOLDERS:
                self._learn_classes(found)
        if _is_class(found):
            return found
        if isinstance(name, str) and ":" in name:
            raise _Wanting(
                f"the file holds a {name[:100]!r}, which is not of noisewise; if you trust it, "
                f"pass types=({name[:100].rpartition(':')[2]},)"
            )
        raise ValueError(f"it holds a {str(name)[:100]!r}, which this version does not know")

    def _find_link(self, name: Json, own: Json) -> Link:
        if not isinstance(name, str) or not isinstance(own, bool):
            raise ValueError("the name of its link is none")
        if not own:
            if name not in LINKS:
                raise ValueError(f"it uses link {name[:100]!r}, which this version does not know")
            return LINKS[name]
        if self.link is None:
            raise _Wanting(
                f"the file was saved with your own link {name[:100]!r}; pass it as link="
            )
        if self.link.name != name:
            raise _Wanting(
                f"link is {self.link.name!r}, but the file was saved with {name[:100]!r}; pass that"
            )
        return self.link


def _public_name(kind: type) -> str:
    module = kind.__module__
    return kind.__name__ if module.startswith("noisewise.") else f"{module}:{kind.__qualname__}"


def _is_class(kind: object) -> TypeGuard[type]:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _hints(thing: object) -> dict[str, object]:
    """Return type hints; none where a user's own can't be evaluated here."""
    try:
        return get_type_hints(thing)
    except (NameError, AttributeError):
        return {}
