"""Files that are there whole or not at all."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path


def replace(path: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` make a file beside ``path``, then rename it to ``path``."""
    part = path.with_name(f"{path.name}.{os.getpid()}-{uuid.uuid4().hex}.part")
    try:
        write(part)
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)
