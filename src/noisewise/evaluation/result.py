"""What an evaluation found: numbers, a table and a picture."""

from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from ..printing import percent
from ..protocols import Array
from .players import EstimatorPlayer


@dataclass(eq=False)
class Looks:
    """Intervals at a few times: how wide they were, and how many of the next labels they held.

    ``table`` has a row per time: rows learnt, width of intervals of the mean (valid at all times at
    once), width of intervals of observations (valid at that time), labels looked at, labels inside.
    Widths are medians over the rows looked at, infinite where nothing is known. Observations are
    left out where labels are 0 and 1, and where weights differ from 1.
    """

    delta: float
    rows: list[tuple[float, ...]] = field(default_factory=list)
    promises: dict[str, str] = field(default_factory=dict)

    def look(
        self, asked: EstimatorPlayer, family: str, count: int, x: Array, y: Array, w: Array
    ) -> None:
        """Ask for intervals at rows that are not learnt yet, and compare with their labels."""
        mean = asked.interval(x, self.delta, "mean")
        self.promises["mean"] = mean.promise
        width = float(np.median(mean.upper - mean.lower))
        if family == "binomial" and width >= 1:
            width = np.inf
        found = [float(count), width, np.nan, 0.0, 0.0]
        if family != "binomial" and (w == 1).all():
            label = asked.interval(x, self.delta, "observation")
            self.promises["observation"] = label.promise
            inside = (label.lower <= y) & (y <= label.upper)
            found[2:] = [
                float(np.median(label.upper - label.lower)),
                float(len(y)),
                float(inside.sum()),
            ]
        self.rows.append(tuple(found))

    @property
    def table(self) -> Array:
        """All looks, (k, 5)."""
        return np.array(self.rows).reshape(-1, 5)

    @property
    def too_few(self) -> bool:
        """Whether fewer labels were inside than chance explains: by four standard errors."""
        n, inside = self.table[:, 3:].sum(axis=0)
        return bool(inside < n * (1 - self.delta) - 4 * np.sqrt(n * self.delta * (1 - self.delta)))

    @property
    def coverage(self) -> float:
        """The share of labels inside their intervals, NaN where none were looked at."""
        *_, n, inside = self.table.T
        return float(inside.sum() / n.sum()) if n.sum() else float("nan")


def _short(loss: float) -> str:
    """Return a loss with four digits, or as a whole number: 39,240 rather than 3.924e+04."""
    return f"{loss:,.0f}" if 1e4 <= loss < 1e12 else f"{loss:.4g}"


def _ratio(loss: float, base: float) -> str:
    return f"{loss / base:.3f}" if base > 0 else "–"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How well models predicted each row before they learnt it.

    Attributes
    ----------
    title : str
    loss : str
        What is averaged, weighted by the sample weights; the first row is not counted.
    names : tuple of str
        The model first, then what it is compared with.
    rows : int
    times : (k,) array
        When losses were summed up, geometrically spaced, the last row included.
    weights, totals : (k,), (len(names), k) arrays
        Sums of weights and of losses up to then.
    looks : Looks
        Widths of intervals, and the share of observations inside.
    predictions : (n,) array
        One-step-ahead means; probabilities of the second class, or of all, for a classifier.
    sample : (m, 3) array
        Some rows, evenly spaced: time, mean predicted and label.
    model : the fitted copy
    """

    title: str
    loss: str
    names: tuple[str, ...]
    rows: int
    times: Array
    weights: Array
    totals: Array
    looks: Looks
    predictions: Array | None
    sample: Array
    model: Any

    @property
    def losses(self) -> dict[str, float]:
        """The average loss of each."""
        return dict(zip(self.names, (self.totals[:, -1] / self.weights[-1]).tolist(), strict=True))

    @property
    def curves(self) -> dict[str, Array]:
        """The average loss of each up to each time."""
        return dict(zip(self.names, self.totals / self.weights, strict=True))

    @property
    def half(self) -> int:
        """The time from which `late_losses` count, about half of the rows."""
        return int(self.times[self._half])

    @property
    def _half(self) -> int:
        return int(np.argmax(self.times >= self.rows / 2))

    @property
    def late_losses(self) -> dict[str, float]:
        """The average loss of each over about the last half of the rows."""
        i, n = self._half, self.weights[-1]
        if not self.weights[i] < n:
            return self.losses
        late = (self.totals[:, -1] - self.totals[:, i]) / (n - self.weights[i])
        return dict(zip(self.names, late.tolist(), strict=True))

    def _lines(self) -> list[tuple[str, ...]]:
        heads = ("", "all rows", f"after row {self.half:,}", f"over {self.names[-1]}")
        base = self.losses[self.names[-1]]
        rows = [
            (name, _short(loss), _short(self.late_losses[name]), _ratio(loss, base))
            for name, loss in self.losses.items()
        ]
        return [heads, *rows] if len(rows) > 1 else [row[:3] for row in (heads, *rows)]

    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the table's head and rows."""
        head, *rows = self._lines()
        return head, rows

    def notes(self) -> list[str]:
        """Return what was measured, in sentences."""
        notes = [
            f"{self.loss.capitalize()} of predictions made before each row was learnt, from the "
            "second row on."
        ]
        table = self.looks.table
        if table[:, 3].sum():
            notes.append(
                f"{100 * (1 - self.looks.delta):g} % intervals, computed at {len(table)} times for "
                f"the next rows, held {percent(self.looks.coverage, 1)} of "
                f"{table[:, 3].sum():,.0f} new labels."
            )
            if self.looks.too_few:
                notes.append("That is too few: labels vary more than these intervals assume.")
        return notes

    def __repr__(self) -> str:
        cells = self._lines()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])))
            for row in cells
        ]
        return "\n".join([f"{self.title}, {self.rows:,} rows", *lines, *self.notes()])

    def _repr_html_(self) -> str:
        heads, *rows = self._lines()
        head = "".join(f"<th>{escape(each)}</th>" for each in heads)
        body = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(c)}</td>' for c in cells)}</tr>"
            for name, *cells in rows
        )
        return (
            f"<table><caption>{escape(self.title)}, {self.rows:,} rows</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{'<br>'.join(map(escape, self.notes()))}</p>"
        )

    def plot(self) -> Any:
        """Draw the average loss over time, and how wide and how right intervals were.

        Returns
        -------
        array of matplotlib axes
        """
        from .pictures import draw

        return draw(self)
