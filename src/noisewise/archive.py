"""Save and load a spec with its state: one .npz file, a JSON header and plain arrays, no pickle."""

import dataclasses
import io
import json
import os
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import read_array

from . import files
from .links import LINKS, Link

FORMAT = "noisewise-2"
FOREIGN = "was not written by noisewise.save"


def save(path: str | os.PathLike[str], spec: Any, state: Any) -> None:
    """Write ``spec`` and ``state`` to ``path``; an old file is replaced only once all is on disk.

    The file holds a member ``header`` (JSON) and one array a member; `numpy.load` opens it. An old
    file keeps its mode and a link its target; what a killed `save` left is removed by the next.
    """
    arrays: dict[str, Any] = {}
    body = {"spec": _encode("spec", spec, arrays), "state": _encode("state", state, arrays)}
    version = import_module("noisewise").__version__
    header = json.dumps({"format": FORMAT, "version": version, **body})

    def write(part: Path) -> None:
        with part.open("wb") as file:  # given a name, savez would add a suffix
            np.savez(file, header=np.array(header), **arrays)

    files.replace(path, write)


def load(path: str | os.PathLike[str], link: Link | None = None) -> tuple[Any, Any]:
    """Return the spec and state saved at ``path``; a user's own link is passed again."""
    name = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {
                member.removesuffix(".npy"): read_array(io.BytesIO(archive.read(member)))
                for member in archive.namelist()
            }
        header = json.loads(str(arrays.pop("header")))
        found = header.get("format")
    except zipfile.BadZipFile:
        with open(path, "rb") as file:
            begins = file.read(2) == b"PK"
        sentence = "is cut short or damaged; load another copy" if begins else FOREIGN
        raise ValueError(f"{name!r} {sentence}") from None
    except (ValueError, KeyError, AttributeError, EOFError):
        raise ValueError(f"{name!r} {FOREIGN}") from None
    if found != FORMAT:
        raise ValueError(
            f"{name!r} has format {found!r} and this noisewise reads {FORMAT!r}; "
            "load it with the version that wrote it"
        )
    try:
        return tuple(_decode(header[part], arrays, link) for part in ("spec", "state"))
    except KeyError as error:
        raise ValueError(f"{name!r} lacks {error}; it is damaged, load another copy") from None


def _encode(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Link):
        return {"link": value.name, "own": LINKS.get(value.name) != value}
    if isinstance(value, list | tuple):
        parts = [_encode(f"{name}.{i}", part, arrays) for i, part in enumerate(value)]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind, held = type(value), dict(value.__getstate__() or {})  # type: ignore[call-overload]
        fields = {
            f.name: _encode(f"{name}.{f.name}", held[f.name], arrays)
            for f in dataclasses.fields(value)
        }
        return {"type": _public_name(kind), "fields": fields}
    raise ValueError(
        f"{name} is {value!r}; only dataclasses of numbers, words and arrays are saved"
    )


def _decode(value: Any, arrays: dict[str, Any], link: Link | None) -> Any:
    if isinstance(value, list):
        return [_decode(part, arrays, link) for part in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_decode(value["tuple"], arrays, link))
    if "array" in value:
        return arrays[value["array"]]
    if "link" in value:
        return _find_link(value, link)
    kind = _find_class(value["type"])
    fields = {key: _decode(part, arrays, link) for key, part in value["fields"].items()}
    made = {f.name: fields.pop(f.name) for f in dataclasses.fields(kind) if f.init}
    thing = kind(**made)
    for key, part in fields.items():
        setattr(thing, key, part)
    return thing


def _public_name(kind: type) -> str:
    module = kind.__module__
    return kind.__name__ if module.startswith("noisewise.") else f"{module}:{kind.__qualname__}"


def _find_class(name: str) -> Any:
    module, _, own = name.rpartition(":")
    # only what is public here or already imported: a file never decides what is imported
    home = sys.modules.get(module or "noisewise")
    if home is None:
        raise ValueError(f"the file holds a {own} of module {module!r}; import that module first")
    kind = getattr(home, own, None)
    if not dataclasses.is_dataclass(kind):
        raise ValueError(f"the file holds a {name!r}, which this version does not know")
    return kind


def _find_link(value: dict[str, Any], link: Link | None) -> Link:
    name = value["link"]
    if not value["own"]:
        if name not in LINKS:
            raise ValueError(f"the file uses link {name!r}, which this version does not know")
        return LINKS[name]
    if link is None:
        raise ValueError(f"the file was saved with your own link {name!r}; pass it as link=")
    if link.name != name:
        raise ValueError(f"link is {link.name!r}, but the file was saved with {name!r}; pass that")
    return link
