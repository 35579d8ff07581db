"""Columns that number or name the rows, which a model can't use."""

import re

from .survey import Column

NUMBERED = re.compile(
    r"(^|[\W_])(id|uuid|guid|key|index|idx|nr|no|num|number|row|rownames?|rownum|case|obs|"
    r"observation|record|serial|subject|patient|customer|user)$"
    r"|[a-z](Id|ID)$",
    re.ASCII,
)
TIMES = re.compile(
    r"(^|[\W_])(t|time|date|day|week|month|quarter|year|yr|period|hour|minute|second)s?($|[\W_])",
    re.ASCII,
)


def _named(pattern: re.Pattern[str], name: str) -> bool:
    return bool(pattern.search(name) or pattern.search(name.lower()))


def why_identifier(column: Column, first: bool) -> str:
    """Return why a column identifies rows, empty if it does not; ``first`` is that of the file.

    Numbers with decimals are measurements, and so are whole numbers unless the name says otherwise
    or they count the rows in the first column, and are not times.
    """
    there = column.count - column.missing
    if column.categorical or not column.distinct or there < 2:
        return ""
    said = _named(NUMBERED, column.name)
    if column.kinds == {"text"}:
        words = column.wrong == there and (said or 2 * column.measured <= there)
        return "identifies the rows: words, all different" if words else ""
    if column.kinds != {"number"} or not column.whole:
        return ""
    if column.counting and (said or (first and not _named(TIMES, column.name))):
        return "numbers the rows"
    return "identifies the rows by its name: whole numbers, all different" if said else ""


def in_time(column: Column) -> bool:
    """Return whether rows are in order of a date, or of a number whose name is a time's."""
    dated = column.kind == "date" or (column.kind == "number" and _named(TIMES, column.name))
    return dated and column.rising and not column.constant
