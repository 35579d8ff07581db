"""Rows that can't be used, counted by reason."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...support.printing import count_of


@dataclass(repr=False)
class LeftOut:
    """How many rows were left out for which reason, and the first of each."""

    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    @property
    def used(self) -> int:
        """How many rows were not left out."""
        return self.rows - sum(self.left_out.values())

    def leave_out(self, reason: str, rows: Sequence[int]) -> None:
        """Count rows that are left out for a reason."""
        if len(rows):
            self.left_out[reason] = self.left_out.get(reason, 0) + len(rows)
            self.first.setdefault(reason, int(rows[0]))

    def sentence(self, verb: str, row: str, counted: str = "") -> str:
        """Return what became of the rows.

        >>> lines = LeftOut(3)
        >>> lines.leave_out("it is no JSON", [2])
        >>> lines.sentence("read", "line")
        'read 2 of 3 lines; left out: 1 since it is no JSON (first at line 2)'
        """
        said = f"{verb} {self.used:,} of {count_of(self.rows, row)}"
        parts = [
            f"{count:,} since {reason} (first at {row} {self.first[reason]}{counted})"
            for reason, count in self.left_out.items()
        ]
        return f"{said}; left out: {', '.join(parts)}" if parts else said
