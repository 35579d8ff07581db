"""Compiling all kernels ahead, so that no first call waits."""

from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pkgutil import walk_packages
from typing import NamedTuple

from . import cache
from .compile_options import COMPILED, Entry, entries


class Warmed(NamedTuple):
    """The kernels of a module: how many were compiled now, and how many were found on disk."""

    module: str
    compiled: int
    found: int


def warm_up() -> Iterator[Warmed]:
    """Compile or load the kernels of every module."""
    import_all()
    for name, some in groupby(sorted(entries, key=_module), _module):
        found = [each.found() for each in some]
        yield Warmed(name, found.count(False), found.count(True))


def import_all() -> None:
    """Import every module with kernels, so that `entries` has them all."""
    for room in (import_module(f"noisewise.{each}") for each in cache.ROOMS):
        for module in walk_packages(room.__path__, f"{room.__name__}."):
            import_module(module.name)


def _module(entry: Entry[object]) -> str:
    return entry.__module__.rpartition(".")[2]


def kept_in() -> str | None:
    """Return the folder that has the code, None where nothing is compiled or could be kept."""
    places = [str(folder) for folder in cache.folders() if folder.is_dir()]
    return places[0] if COMPILED and places and not cache.troubles else None
