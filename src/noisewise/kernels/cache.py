"""Machine code on disk is dropped when any kernel source has changed.

The compiler's cache looks at the file of a function alone, but a kernel is made of several files:
one that is unchanged would go on running code compiled against an old layout.
"""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path


def forget_stale(folder: Path) -> None:
    """Delete the cached code beside the sources in ``folder`` unless it was made from them."""
    sources = sorted(folder.glob("*.py"))
    digest = sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    mark = folder / "__pycache__" / "sources.digest"
    if mark.is_file() and mark.read_text() == digest:
        return
    with suppress(OSError):  # a read-only installation, whose files change only all together
        mark.parent.mkdir(exist_ok=True)
        for path in mark.parent.glob("*.nb?"):
            path.unlink(missing_ok=True)
        mark.write_text(digest)
