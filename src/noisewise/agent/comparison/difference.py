"""What one of two earns more than the other, as a sentence and a table."""

import math
from dataclasses import dataclass, field
from html import escape

from ...support.printing import clean, count_of

ALWAYS = "at all times at once, however often it is looked at"
LATER = f"approximately, {ALWAYS}"
FEW = 0.05  # decisions given up, per one that counts, of which a verdict need not speak


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """Mean rewards of two, and the difference with an interval; prints as a sentence and a table.

    Attributes
    ----------
    names : (str, str)
        The second is subtracted from the first.
    means : (float, float)
        Mean rewards per decision, NaN where there are none.
    counts : tuple of (str, (int, int))
        How many decisions, and subjects, of each.
    lower, upper : float
        An interval of the difference; infinite, or the whole range, where there are too few.
    delta : float
    promise, rests_on : str
        What the interval promises with probability 1 - delta, and what that assumes.
    notes : tuple of str
        What to know of the decisions that do not count.
    given_up : int
        How many decisions will never have a reward.
    """

    names: tuple[str, str]
    means: tuple[float, float]
    counts: tuple[tuple[str, tuple[int, int]], ...]
    lower: float
    upper: float
    delta: float
    promise: str
    rests_on: str
    notes: tuple[str, ...] = field(default=())
    given_up: int = 0

    @property
    def value(self) -> float:
        """The first mean less the second."""
        return self.means[0] - self.means[1]

    @property
    def sentence(self) -> str:
        """The finding in words, numbers to the third digit of the width of the interval."""
        a, b = self.names
        if math.isnan(self.value):
            return f"No reward of {' or of '.join(self._without())} counts yet."
        first, second = map(self._rounded, self.means)
        earned = f"{a[0].upper()}{a[1:]} earned {first} per decision and {b} {second}"
        if math.isinf(self.lower):
            return f"{earned}; too few for an interval of the difference."
        level = f"{100 * (1 - self.delta):g} % interval"
        ends = f"from {self._rounded(self.lower, '+')} to {self._rounded(self.upper, '+')}"
        if self.lower > 0 or self.upper < 0:
            verdict = f"{a} earns {'more' if self.lower > 0 else 'less'} than {b}"
            if self.given_up > FEW * sum(self.counts[0][1]):
                verdict += (
                    f", unless the {self.given_up:,} given up without a reward are unlike these"
                )
        else:
            verdict = "it contains 0, so it is open which of them earns more"
        gap = self._rounded(self.value, "+")
        return f"{earned}: a difference of {gap}, {level} {ends}; {verdict}."

    def _rounded(self, value: float, sign: str = "") -> str:
        """Return a number to the third digit of the width of the interval."""
        width = self.upper - self.lower
        if not 0 < width < math.inf:
            return _number(value, sign)
        digits = 2 - math.floor(math.log10(width))
        return f"{round(value, digits):{sign},.{max(digits, 0)}f}"

    def _without(self) -> list[str]:
        return [n for n, mean in zip(self.names, self.means, strict=True) if math.isnan(mean)]

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table as words, heads first."""
        heads = ("group", *(name for name, _ in self.counts), "mean reward")
        lines = [
            (
                clean(name),
                *(f"{each[i]:,}" for _, each in self.counts),
                self._rounded(self.means[i]),
            )
            for i, name in enumerate(self.names)
        ]
        return [heads, *lines]

    def lines(self) -> list[str]:
        """Return what is said below the table."""
        if math.isnan(self.value) or math.isinf(self.lower):
            return [*self.notes]
        return [f"The interval holds {self.promise}. It rests on {self.rests_on}.", *self.notes]

    def __repr__(self) -> str:
        rows = self.rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([clean(self.sentence), *table, *self.lines()])

    def _repr_html_(self) -> str:
        head, *rows = self.rows()
        cells = "".join(f"<th>{escape(each)}</th>" for each in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        below = "<br>".join(map(escape, self.lines()))
        return (
            f"<p>{escape(clean(self.sentence))}</p><table><thead><tr>{cells}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{below}</p>"
        )


def notes_of(waiting: tuple[int, int], given_up: int, partial: str = "") -> tuple[str, ...]:
    """Return sentences on decisions that do not count."""
    pending, behind = waiting
    notes = []
    if pending:
        words = f"{count_of(pending, 'decision')} without a reward yet"
        if behind:
            words += f", and {behind:,} with one that were taken after the first of these"
        notes.append(
            f"Not counted: {words}. A decision counts once it and all before it have their reward; "
            "forget(key) gives one up."
        )
    if given_up:
        notes.append(
            f"{count_of(given_up, 'decision')} given up without a reward: if that depends on the "
            "reward, the interval is biased."
        )
    return (*notes, *([partial] if partial else []))


def _number(value: float, sign: str = "") -> str:
    return "–" if math.isnan(value) else f"{value:{sign}.4g}"
