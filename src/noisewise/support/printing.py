"""How things print: objects that hold arrays on one line, shares in per cent."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, ClassVar, cast
from unicodedata import bidirectional, category

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LONGEST = 100  # characters of a repr
CONTROLS = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of characters, line separators
NOT_XML = "\ufffe\uffff"  # no characters, and a picture that holds one is damaged
DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
_ABSENT = object()


class OneLine:
    """A dataclass that prints its numbers, and the shape of each array, on one line.

    ``shown`` names attributes to print; by default ``dim``, ``count`` and then the fields. The
    dataclass is declared with ``repr=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Ball(OneLine):
    ...     radius: float
    ...     centre: np.ndarray
    >>> Ball(1 / 3, np.zeros(2))
    Ball(radius=0.3333, centre=array[2])
    """

    shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        own = fields(cast("DataclassInstance", self))
        names = self.shown or dict.fromkeys(("dim", "count", *(f.name for f in own)))
        values = {name: getattr(self, name, _ABSENT) for name in names}
        parts = [f"{name}={_brief(v)}" for name, v in values.items() if v is not _ABSENT]
        line = f"{type(self).__name__}({', '.join(parts)})"
        while len(line) > LONGEST and parts:
            parts.pop()
            line = f"{type(self).__name__}({', '.join((*parts, '...'))})"
        return line


def _brief(value: object) -> str:
    """Return a number as it is, and of anything else its kind and size."""
    import numpy as np  # the shell needs words alone, and quickly

    if isinstance(value, np.ndarray):
        return f"array{list(value.shape)}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or (isinstance(value, int | np.generic | str) and len(str(value)) <= 20):
        return repr(value)
    size = f"[{len(value)}]" if isinstance(value, list | tuple | dict | str) else ""
    return f"{type(value).__name__}{size}"


def aligned(table: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return the rows of a table as lines; the columns ``left`` are aligned left, others right.

    >>> aligned([("", "loss"), ("mean", "0.5")])
    ['      loss', 'mean   0.5']
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def as_html(
    title: str, table: Sequence[Sequence[str]], notes: Sequence[str], *, named: bool = False
) -> str:
    """Return a table whose first row has the heads, with title and notes, for a notebook.

    Where rows are ``named``, their first cells are heads, too.
    """
    heads, *rows = ([escape(cell) for cell in row] for row in table)
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    first = "th" if named else "td"
    body = "".join(
        f"<tr><{first}>{name}</{first}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p>{'<br>'.join(map(escape, notes))}</p>"
    )


def percent(share: float, digits: int = 0) -> str:
    """Return a share in per cent.

    >>> percent(0.95), percent(0.1234, 1)
    ('95 %', '12.3 %')
    """
    return f"{100 * share:.{digits}f} %"


def count_of(count: int, what: str, several: str = "") -> str:
    """Return a number with what it counts.

    >>> count_of(1, "row"), count_of(1234, "row"), count_of(2, "value is", "values are")
    ('1 row', '1,234 rows', '2 values are')
    """
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def clean(text: str) -> str:
    r"""Return text whose control characters and changes of direction are spelt out.

    They could end a line, colour a terminal or reorder what stands around them.

    >>> clean("größe\n\x1b[31m\u202egnp")
    'größe\\n\\x1b[31m\\u202egnp'
    """
    return "".join(
        char.encode("unicode_escape").decode()
        if category(char) in CONTROLS or bidirectional(char) in DIRECTIONS or char in NOT_XML
        else char
        for char in text
    )
