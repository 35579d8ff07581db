"""Machine code on disk, under the digest of all kernel sources.

The compiler's own cache looks at the file of a function alone, but a kernel is made of several
files: one that is unchanged would go on running code compiled against an old layout. Nor does it
survive a folder that can't be written, a full disk or a damaged entry. Here each of those costs a
compilation and one warning a process, never a result.
"""

import os
import pickle
import sys
import warnings
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from shutil import rmtree
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

NAME, KEPT = "noisewise-", 8  # folders of other sources that stay beside that of these
VERSIONS = numba.__version__, llvmlite.__version__, sys.version
troubles: list[str] = []


@cache
def digest() -> str:
    """Return a digest of the sources of all kernels."""
    sources = (each for each in resources.files(__package__).iterdir() if ".py" in each.name)
    total = sha256()
    for source in sorted(sources, key=lambda each: each.name):
        if source.is_file():
            total.update(repr((source.name, source.read_bytes())).encode())
    return total.hexdigest()[:32]


@cache
def folders() -> list[Path]:
    """Return the folders that may hold the code: the first that can be written takes new code."""
    if config.CACHE_DIR:
        homes = [Path(config.CACHE_DIR)]
    else:
        everyone = AppDirs(appname="numba", appauthor=False).user_cache_dir
        homes = [Path(__file__).parent / "__pycache__", Path(everyone)]
    return [home / (NAME + digest()) for home in homes]


def report(what: str, error: OSError | str) -> None:
    """Warn of the first trouble of the process."""
    troubles.append(what)
    if len(troubles) == 1:
        warnings.warn(
            f"{what} ({error}); results are not affected, but every process compiles its kernels, "
            "which takes some seconds; set NUMBA_CACHE_DIR to a folder that can be written and has "
            "room",
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
        return str(folders()[0])

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
                entry = (folder / name).read_bytes()
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
        name, errors = self.file(signature, result.codegen), []
        for folder in folders():
            try:
                write(folder / name, entry)
            except OSError as error:
                errors.append(error)
            else:
                return
        report(f"compiled code can't be kept in {folders()[0]}", errors[0])

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    disable = flush = enable


def write(path: Path, entry: bytes) -> None:
    """Write an entry whole or not at all; a new folder takes the place of old ones."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        prune(path.parent)
    aside = path.with_name(f"{path.name}.{uuid4().hex[:16]}")
    try:
        aside.write_bytes(entry)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def prune(folder: Path) -> None:
    """Delete the folders of other sources but the newest.

    One in use may go: its process finds nothing and compiles, or makes the folder again.
    """
    others = {}
    for each in folder.parent.glob(NAME + "*"):
        if each != folder:
            try:
                others[each] = each.stat().st_mtime
            except FileNotFoundError:  # another process was faster
                continue
    for each in sorted(others, key=others.__getitem__, reverse=True)[KEPT:]:
        rmtree(each, ignore_errors=True)
