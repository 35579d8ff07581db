"""Files that are there whole or not at all, also after a crash."""

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # no locks on this system: files that killed writers left are not removed
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".noisewise-part"


def replace(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a new file beside ``path``, then rename it to ``path``.

    A link stays and its target is replaced. An existing file keeps its mode, a new one has what
    the umask gives. File and folder are flushed to the disk. What a killed writer of the same file
    left is removed. A path that can't be written is a ValueError, a full disk an OSError; the old
    file is then as it was.
    """
    target = Path(os.path.realpath(path))
    try:
        old = _old(target)
        _remove_leftovers(target)
        with _part(target, 0o600 if old else 0o666) as part:
            write(part)
            with _flushed(part, os.O_RDWR):
                if old:
                    _pass_on(old, part)
            os.replace(part, target)
        if os.name == "posix":  # elsewhere folders can't be flushed
            with _flushed(target.parent, os.O_RDONLY):
                pass
    except OSError as error:
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise ValueError(
                f"path is {str(path)!r}, which can't be written ({error.strerror}); choose another "
                "or change its permissions"
            ) from None
        raise
    return Path(path)


def require_regular(path: Path) -> None:
    """Raise for a pipe or device, which can't be read twice and may never end.

    What is not there, and a folder, are left to whoever opens them.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a pipe or device; save what it gives to a file, and pass that")


def _old(target: Path) -> os.stat_result | None:
    """Return what is known of the file to be replaced, None where there is none."""
    if not target.parent.is_dir():
        raise ValueError(
            f"path is {str(target)!r}, but {str(target.parent)!r} is no folder; create it"
        )
    try:
        found = target.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise ValueError(f"path is {str(target)!r}, a folder; add the name of a file")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"path is {str(target)!r}, which is no regular file; choose another")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "write-protected")
    return found


def _pass_on(old: os.stat_result, part: Path) -> None:
    """Give the new file the mode of the old one, and its owner where that is allowed."""
    new = part.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):  # not allowed, or no owner that is known here
            os.chown(part, old.st_uid, old.st_gid)
    part.chmod(stat.S_IMODE(old.st_mode))


@contextmanager
def _part(target: Path, mode: int) -> Iterator[Path]:
    """Create a file beside ``target``, locked while its writer lives; remove it in the end."""
    while True:
        part = target.with_name(f"{_stem(target)}{secrets.token_hex(8)}{SUFFIX}")
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            try:
                if not _lock(descriptor):
                    file.close()  # without locks, Windows: open files are not renamed there
                elif os.fstat(descriptor).st_nlink == 0:
                    continue  # taken for a leftover before it was locked
                yield part
                return
            finally:
                part.unlink(missing_ok=True)


def _stem(target: Path) -> str:
    """Return the beginning of the names of parts, short enough for any file system."""
    return f".{os.fsdecode(os.fsencode(target.name)[:200])}."


def _lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file until it is closed; False where another has it or there are no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            return False
        raise
    return True


def _remove_leftovers(target: Path) -> None:
    """Remove parts of the same target that nobody holds a lock on."""
    names = re.compile(re.escape(_stem(target)) + "[0-9a-f]{16}" + re.escape(SUFFIX))
    for name in os.listdir(target.parent):
        if not names.fullmatch(name):
            continue
        left = target.with_name(name)
        if left.is_symlink() or not left.is_file():  # nothing that we have written
            continue
        with suppress(FileNotFoundError, PermissionError):  # just renamed, or another user's
            descriptor = os.open(left, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(descriptor, wait=False):
                    left.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def _flushed(path: Path, flags: int) -> Iterator[None]:
    """Flush a file or folder to the disk in the end, where the file system can."""
    descriptor = os.open(path, flags)
    try:
        yield
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
    finally:
        os.close(descriptor)
