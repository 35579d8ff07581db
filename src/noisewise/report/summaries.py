"""Summaries of studies as they are found in a folder: read, and checked before they are shown."""

import json
import re
from pathlib import Path

from ..experiments import Record

NAME = re.compile(r"[A-Za-z0-9_-]+")
WORDS = ("study", "title", "claim", "command", "digest", "sources")
WANTED = {*WORDS[:-1], "trials", "seconds", "holds", "measured", "numbers", "versions"}


def read(path: Path) -> Record | None:
    """Return a study's summary, None if the file is something else."""
    if not path.is_file():  # a pipe would keep us waiting
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not found.keys() >= WANTED:
        return None
    found = {"sources": "", "decisions": False, "machines": [], **found}
    return found if _sound(found) and found["study"] == path.stem else None


def _sound(found: Record) -> bool:
    """Tell whether everything is of the kind that a study writes."""
    holds, measured, machines = found["holds"], found["measured"], found["machines"]
    return (
        all(isinstance(found[name], str) for name in WORDS)
        and NAME.fullmatch(found["study"]) is not None
        and _number(found["trials"])
        and _number(found["seconds"])
        and isinstance(found["decisions"], bool)
        and all(_named(each, str) for each in (measured, found["versions"]))
        and _named(holds, bool)
        and holds.keys() <= measured.keys()
        and isinstance(machines, list)
        and all(_named(each, str) for each in machines)
        and _rows(found["numbers"])
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(value: object, kind: type) -> bool:
    return isinstance(value, dict) and all(isinstance(each, kind) for each in value.values())


def _rows(numbers: object) -> bool:
    """Tell whether it is a table: rows as long as the head, of single values."""
    if not isinstance(numbers, dict) or numbers.keys() != {"columns", "data"}:
        return False
    head, data = numbers["columns"], numbers["data"]
    lists = isinstance(head, list) and isinstance(data, list)
    if not lists or not all(isinstance(row, list) and len(row) == len(head) for row in data):
        return False
    return not any(isinstance(value, list | dict) for row in (head, *data) for value in row)
