"""Finished batches of a study: Parquet files whose names say what they hold, with a checksum.

The checksum covers folder, name and content: a part that was damaged, cut short, renamed or taken
from another run is noticed. Parts are only a cache, so such a one is removed and its trials are run
again.
"""

import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from .. import files
from . import Record, provenance

NAME = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]{16})\.parquet")


@dataclass
class Held:
    """What the parts of a folder hold: every trial of every cell once."""

    frames: list[pd.DataFrame] = field(default_factory=list)
    trials: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    machines: list[dict[str, str]] = field(default_factory=list)

    @property
    def table(self) -> pd.DataFrame:
        """All rows by cell (the column ``_cell``) and trial."""
        table = pd.concat(self.frames).sort_values(["_cell", "trial"], kind="stable")
        return table.reset_index(drop=True)


def write(folder: Path, cell: int, trials: list[int], rows: list[Record]) -> None:
    """Write the rows of consecutive trials of a cell."""
    keep(folder, cell, trials, content_of(rows))


def content_of(rows: list[Record]) -> bytes:
    """Return rows as the content of a part, with the machine that made them."""
    frame = pd.DataFrame(rows)
    frame.attrs["machine"] = provenance.machine()
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def keep(folder: Path, cell: int, trials: list[int], content: bytes) -> None:
    """Write the content of a part under a name that says what it holds."""
    span = f"{cell}-{trials[0]}-{trials[-1] + 1}"
    path = folder / f"{span}-{_checksum(folder, span, content)}.parquet"
    files.replace(path, lambda part: part.write_bytes(content))


def read(folder: Path, trials: int, tell: Callable[[str], object]) -> Held:
    """Return what is held of the first ``trials``; ``tell`` hears of parts that are not used.

    Where two parts hold the same trial, from two machines say, that of the lower name counts.
    """
    held = Held()
    for path, cell, first, last, checksum in _named(folder, tell):
        if first >= trials:
            continue
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # found damaged by another run
            continue
        fault = ""
        if checksum != _checksum(folder, f"{cell}-{first}-{last}", content):
            fault = "its checksum is wrong"
        else:
            frame = pd.read_parquet(io.BytesIO(content))
            if {*frame["_cell"]} != {cell} or {*frame["trial"]} != {*range(first, last)}:
                fault = "it holds other trials than its name says"
        if fault:
            tell(f"{path} is damaged ({fault}); removed, its trials are run again")
            path.unlink(missing_ok=True)
            continue
        machine = frame.attrs.pop("machine")
        if machine not in held.machines:
            held.machines.append(machine)
        new = frame["trial"].between(0, trials - 1) & ~frame["trial"].isin(held.trials[cell])
        if new.any():
            held.frames.append(frame[new])
        held.trials[cell].update(frame.loc[new, "trial"].tolist())
    return held


def _named(
    folder: Path, tell: Callable[[str], object]
) -> Iterator[tuple[Path, int, int, int, str]]:
    for path in sorted(folder.glob("*.parquet")):
        name = NAME.fullmatch(path.name)
        if name is None or not path.is_file():
            tell(f"{path} is no file named as parts are; left alone, not used")
            continue
        yield path, int(name[1]), int(name[2]), int(name[3]), name[4]


def _checksum(folder: Path, span: str, content: bytes) -> str:
    return hashlib.sha256(f"{folder.name}/{span} ".encode() + content).hexdigest()[:16]
