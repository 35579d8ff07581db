"""Machine code on disk, under the digest of all kernel sources.

The compiler's own cache looks at the file of a function alone, but a kernel is made of several
files: one that is unchanged would go on running code compiled against an old layout. Nor does it
survive a folder that can't be written, a full disk or a damaged entry. Here each of those costs a
compilation and one warning a process, never a result.

An entry is code, and its checksum is no signature: folders and entries that others own or can write
are not read. Nothing is deleted but folders of ours that hold nothing but entries.
"""

import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from uuid import uuid4

import llvmlite
import numba
from numba.core import config
from numba.core.base import BaseContext
from numba.core.codegen import Codegen
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.typing.templates import Signature
from numba.misc.appdirs import AppDirs

ROOMS = "noisewise.kernels", "noisewise.engine"  # whose sources are compiled
NAME, KEPT = "noisewise-", 8  # folders of other sources that stay beside that of these
OURS = re.compile(NAME + "[0-9a-f]{32}")
ENTRY = re.compile(r".+-[0-9a-f]{32}\.bin(\.[0-9a-f]{16})?")  # whole, or left by a killed process
OTHERS = 0o022  # the rights of others to write
VERSIONS = numba.__version__, llvmlite.__version__, sys.version
troubles: list[str] = []


@cache
def digest() -> str:
    """Return a digest of the sources of all kernels."""
    total = sha256()
    for room in ROOMS:
        sources = (each for each in resources.files(room).iterdir() if ".py" in each.name)
        for source in sorted(sources, key=lambda each: each.name):
            if source.is_file():
                total.update(repr((source.name, source.read_bytes())).encode())
    return total.hexdigest()[:32]


@cache
def folders() -> list[Path]:
    """Return the folders that may hold the code: the first that can be written takes new code.

    A relative path would be another folder wherever a process runs, so it is none.
    """
    if config.CACHE_DIR:
        homes = [Path(config.CACHE_DIR)]
    else:
        everyone = AppDirs(appname="numba", appauthor=False).user_cache_dir
        homes = [Path(__file__).parent / "__pycache__", Path(everyone)]
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


class CodeCache:
    """Where the machine code of one function is kept; the compiler calls these methods.

    An entry is a checksum and what the compiler makes of its result. It is written aside and
    renamed, so that processes at the same time see it whole or not at all.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str:
        """Where new code is kept first of all."""
        return str(*folders()[:1])

    def file(self, signature: Signature, codegen: Codegen) -> str:
        """Return the name of an entry: function, types, processor and versions."""
        key = sha256(repr((str(signature), codegen.magic_tuple(), VERSIONS)).encode())
        return f"{self.name}-{key.hexdigest()[:32]}.bin"

    def load_overload(self, signature: Signature, context: BaseContext) -> CompileResult | None:
        """Return the compiled function, None where there is none that is whole."""
        rtsys.initialize(context)  # all that code needs that was typed before
        name = self.file(signature, context.codegen())
        for folder in folders():
            try:
                entry = read(folder / name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                report(f"compiled code in {folder} can't be read", error)
                continue
            if sha256(entry[32:]).digest() == entry[:32]:
                return CompileResult._rebuild(context, *pickle.loads(entry[32:]))
            report(f"compiled code in {folder / name} is damaged", "its checksum is wrong")
        return None

    def save_overload(self, signature: Signature, result: CompileResult) -> None:
        """Keep a compiled function in the first folder that takes it."""
        if result.lifted or result.library.has_dynamic_globals:  # code with addresses in it
            return
        entry = dumps(result._reduce())
        entry = sha256(entry).digest() + entry
        name, places, errors = self.file(signature, result.codegen), folders(), []
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

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    disable = flush = enable


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
