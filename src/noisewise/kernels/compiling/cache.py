"""Machine code on disk, under the digest of all kernel sources.

The compiler's own cache looks at the file of a function alone, but a kernel is made of several
files: one that is unchanged would go on running code compiled against an old layout. Nor does it
survive a full disk or a damaged entry. Here each of those costs a compilation and one warning a
process, never a result: the compiler caches in a temporary folder, and what it leaves there is kept
as one file with a checksum.

An entry is code, and its checksum is no signature: folders and entries that others own or can write
are not read. Nothing is deleted but folders of ours that hold nothing but entries.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

import numba
from numba import config, njit

if TYPE_CHECKING:
    from .linked_parts import Dispatcher

NAME, KEPT = "noisewise-", 8  # folders of other sources that stay beside that of these
OURS = re.compile(NAME + "[0-9a-f]{32}")
ENTRY = re.compile(r".+-[0-9a-f]{32}\.bin(\.[0-9a-f]{16})?")  # whole, or left by a killed process
OTHERS = 0o022  # the rights of others to write
ROOMS = ("kernels",)  # whose sources are compiled, at any depth
troubles: list[str] = []
lightly: Callable[[Dispatcher], None] | None = None  # changes a kernel so that it loads faster


@cache
def digest() -> str:
    """Return a digest of the sources of all kernels."""
    home, total = Path(str(import_module("noisewise").__file__)).parent, sha256()
    for source in sorted(each for room in ROOMS for each in (home / room).rglob("*.py")):
        name = source.relative_to(home).as_posix()
        total.update(repr((name, source.read_bytes())).encode())
    return total.hexdigest()[:32]


@cache
def folders() -> list[Path]:
    """Return the folders that may hold the code: the first that can be written takes new code.

    A relative path would be another folder wherever a process runs, so it is none.
    """
    if config.CACHE_DIR:
        homes = [Path(config.CACHE_DIR)]
    else:
        everyone = Path(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")))
        homes = [Path(__file__).parents[1] / "__pycache__", everyone / "noisewise"]
    return [home / (NAME + digest()) for home in homes if home.is_absolute()]


def report(what: str, error: OSError | str) -> None:
    """Warn of the first trouble of the process."""
    troubles.append(what)
    if len(troubles) == 1:
        warnings.warn(
            f"{what} ({error}); results are not affected, but every process compiles its kernels, "
            "which takes some seconds; set NUMBA_CACHE_DIR to the absolute path of a folder that "
            "you alone can write and that has room",
            RuntimeWarning,
            stacklevel=2,
        )


def compile_or_load(
    function: Callable[..., object], signature: object, options: Mapping[str, object]
) -> Dispatcher:
    """Return the function as numba compiles it for one signature, or as it lies on disk."""
    key = sha256(repr((str(signature), numba.__version__, sys.version)).encode())
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
    name = f"{name}-{key.hexdigest()[:32]}.bin"
    kernel = None
    try:
        with TemporaryDirectory(prefix=NAME) as folder:
            kernel = cached_in(folder, function, options)
            place = Path(str(kernel.stats.cache_path))
            for file, content in load(name).items():
                (place / file).write_bytes(content)
            kernel.compile(signature)
            if not kernel.stats.cache_hits:
                keep(name, {each.name: each.read_bytes() for each in place.iterdir()})
    except OSError as error:
        report("compiled code can't be kept", error)
        if kernel is None or not kernel.signatures:
            kernel = njit(**options)(function)
            kernel.compile(signature)
    return kernel


def cached_in(
    folder: str, function: Callable[..., object], options: Mapping[str, object]
) -> Dispatcher:
    """Return a function to be compiled, whose code numba caches in a folder."""
    before = config.CACHE_DIR
    config.CACHE_DIR = folder
    try:
        kernel = njit(cache=True, **options)(function)
        if lightly is not None:
            lightly(kernel)
    except RuntimeError as error:  # its source is no file
        raise OSError(str(error)) from error
    finally:
        config.CACHE_DIR = before
    if Path(folder) not in Path(str(kernel.stats.cache_path)).parents:
        raise OSError("numba is set to cache elsewhere")
    return kernel


def load(name: str) -> dict[str, bytes]:
    """Return the files of an entry that is whole; none where there is none."""
    for folder in folders():
        try:
            entry = read(folder / name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            report(f"compiled code in {folder} can't be read", error)
            continue
        if sha256(entry[32:]).digest() == entry[:32]:
            files: dict[str, bytes] = pickle.loads(entry[32:])
            return files
        report(f"compiled code in {folder / name} is damaged", "its checksum is wrong")
    return {}


def keep(name: str, files: dict[str, bytes]) -> None:
    """Keep an entry in the first folder that takes it."""
    entry = pickle.dumps(files)
    entry = sha256(entry).digest() + entry
    places, errors = folders(), []
    for folder in places:
        try:
            write(folder / name, entry)
        except OSError as error:
            errors.append(error)
        else:
            return
    if places:
        report(f"compiled code can't be kept in {places[0]}", errors[0])
    else:
        report("compiled code can't be kept", "the path of the cache is relative")


def refuse_foreign(found: os.stat_result) -> None:
    """Raise unless a file or folder is this user's, or root's, and nobody else can write it."""
    if os.name != "posix":  # where these numbers do not hold the rights
        return
    if found.st_uid not in (0, os.geteuid()):
        raise PermissionError("it belongs to another user")
    if found.st_mode & OTHERS:
        raise PermissionError("other users can write it")


def read(path: Path) -> bytes:
    """Return an entry if nobody else can have written it."""
    refuse_foreign(path.parent.stat())
    with path.open("rb") as file:
        refuse_foreign(os.fstat(file.fileno()))
        return file.read()


def _private(path: str, flags: int) -> int:
    """Open a file that nobody else can write, whatever the umask."""
    return os.open(path, flags, 0o644)


def write(path: Path, entry: bytes) -> None:
    """Write an entry whole or not at all; a new folder takes the place of old ones."""
    if not path.parent.is_dir():
        path.parent.mkdir(0o755, parents=True, exist_ok=True)
        prune(path.parent)
    refuse_foreign(path.parent.stat())
    aside = path.with_name(f"{path.name}.{uuid4().hex[:16]}")
    try:
        with open(aside, "xb", opener=_private) as file:
            file.write(entry)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def prune(folder: Path) -> None:
    """Delete this user's folders of other sources but the newest, if they hold entries alone.

    One in use may go: its process finds nothing and compiles, or makes the folder again.
    """
    others = {}
    for each in folder.parent.glob(NAME + "*"):
        with suppress(OSError):  # another process was faster, or it is not ours
            if each != folder and _holds_entries_alone(each):
                others[each] = each.stat().st_mtime
    for each in sorted(others, key=others.__getitem__, reverse=True)[KEPT:]:
        with suppress(OSError):
            for one in each.iterdir():
                if ENTRY.fullmatch(one.name):
                    one.unlink()
            each.rmdir()


def _holds_entries_alone(folder: Path) -> bool:
    refuse_foreign(folder.stat())
    if folder.is_symlink() or not OURS.fullmatch(folder.name):
        return False
    return all(ENTRY.fullmatch(each.name) and each.is_file() for each in folder.iterdir())
