"""A model in a folder: ``model.npz``, which `noisewise.load` reads, and how columns are encoded.

``columns.json`` carries the digest of its model, so that two halves of different fits are noticed.
"""

import dataclasses
import hashlib
import json
from pathlib import Path

from ..estimators.online_glm import OnlineGLM
from ..storage import files
from ..storage.archive import load as load_model
from ..storage.archive import save as save_model
from .encoding import Encoding, Feature

MODEL, COLUMNS, PAGE = "model.npz", "columns.json", "index.html"
FORMAT = "noisewise-columns-2"
ROLES = "weight", "success", "trials", "exposure", "offset"
KINDS = ("number", "date", "category")


def save(folder: Path, model: OnlineGLM, encoding: Encoding) -> None:
    """Write a model and its encoding into a folder that exists."""
    save_model(folder / MODEL, model)
    columns = {
        "format": FORMAT,
        "model": _digest(folder / MODEL),
        "target": encoding.target,
        **{role: getattr(encoding, role) for role in ROLES},
        "features": [dataclasses.asdict(each) for each in encoding.features],
    }
    _write(folder / COLUMNS, json.dumps(columns, indent=1, ensure_ascii=False))


def save_page(folder: Path, page: str) -> None:
    """Write the page of a model beside it."""
    _write(folder / PAGE, page)


def _write(path: Path, text: str) -> None:
    content = text.encode("utf-8", "replace")
    files.replace(path, lambda part: part.write_bytes(content))


def load(path: Path) -> tuple[OnlineGLM, Encoding]:
    """Return the model and its encoding; ``path`` is the folder, or the model in it."""
    if not path.exists():
        raise ValueError(f"{path} is not there; pass a folder that noisewise fit has written")
    folder = path if path.is_dir() else path.parent
    for name in (MODEL, COLUMNS):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder / name} is not there; pass a folder that noisewise fit has written"
            )
    model = load_model(folder / MODEL)
    encoding, digest = _read(folder / COLUMNS)
    if digest != _digest(folder / MODEL):
        raise ValueError(f"{MODEL} and {COLUMNS} in {folder} are of different fits; fit it again")
    if not isinstance(model, OnlineGLM) or tuple(model.feature_names_in_) != encoding.names:
        raise ValueError(f"{folder / MODEL} is no model of these columns; fit it again")
    return model, encoding


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read(path: Path) -> tuple[Encoding, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']!r}")
        features = tuple(_feature(**each) for each in found["features"])
        roles = {role: _name(found[role]) for role in ROLES}
        return Encoding(features, str(found["target"]), **roles), str(found["model"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} was not written by noisewise fit, or is damaged ({error})"
        ) from None


def _name(value: object) -> str | None:
    if not isinstance(value, str | None):
        raise ValueError(f"a column named {value!r}")
    return value


def _feature(column: str, kind: str, levels: list[str]) -> Feature:
    words = isinstance(levels, list) and all(isinstance(level, str) for level in levels)
    if not isinstance(column, str) or kind not in KINDS or not words:
        raise ValueError(f"column {column!r}")
    if len(set(levels)) < len(levels):
        raise ValueError(f"column {column!r} has a level twice")
    return Feature(column, kind, tuple(levels))
