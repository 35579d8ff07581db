"""What an evaluation found: numbers, a table and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...protocols import Array
from ...support.printing import aligned, as_html, count_of
from .looks import Looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Comparison:
    """Losses over the same rows for all: their number, the first of them, and sums up to times.

    ``errors`` are the standard errors of the difference between the first one's average loss and
    each other's.
    """

    rows: int
    first: int
    times: Array
    weights: Array
    totals: Array
    errors: Array

    @property
    def averages(self) -> list[float]:
        """The average loss of each, NaN for one that has not predicted all of these rows."""
        return [float(each) for each in self.totals[:, -1] / self.weights[-1]]


def _short(loss: float) -> str:
    """Return a loss with four digits, or as a whole number: 39,240 rather than 3.924e+04."""
    if np.isnan(loss):
        return "–"
    return f"{loss:,.0f}" if 1e4 <= loss < 1e12 else f"{loss:.4g}"


def _ratio(loss: float, base: float) -> str:
    return f"{loss / base:.3f}" if base > 0 else "–"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How well models predicted each row before they learnt it.

    Averages are over rows that all of them predicted, the same for all.

    Attributes
    ----------
    title : str
    loss : str
        What is averaged, weighted by the sample weights; the first row is not counted.
    names : tuple of str
        The model first, then what it is compared with.
    rows : int
    compared, all_rows : Comparison
        Losses over the rows that all predicted, and over all rows.
    looks : Looks
        Widths of intervals, and the share of observations inside.
    predictions : (n,) array
        One-step-ahead means; probabilities of the second class, or of all, for a classifier.
    sample : (m, 3) array
        Some rows, evenly spaced: time, mean predicted and label.
    model : the fitted copy
    about : tuple of str
        What those it is compared with do, or why one is left out.
    """

    title: str
    loss: str
    names: tuple[str, ...]
    rows: int
    compared: Comparison
    all_rows: Comparison
    looks: Looks
    predictions: Array | None
    sample: Array
    model: object
    about: tuple[str, ...] = ()

    @property
    def times(self) -> Array:
        """When losses were summed up, (k,), geometrically spaced, the last row included."""
        return self.compared.times

    @property
    def weights(self) -> Array:
        """Sums of weights up to each time, (k,)."""
        return self.compared.weights

    @property
    def totals(self) -> Array:
        """Sums of weighted losses of each up to each time, (len(names), k)."""
        return self.compared.totals

    @property
    def losses(self) -> dict[str, float]:
        """The average loss of each."""
        return dict(zip(self.names, self.compared.averages, strict=True))

    @property
    def errors(self) -> dict[str, float]:
        """The standard error of the difference between the model's average loss and each one's."""
        return dict(zip(self.names, map(float, self.compared.errors), strict=True))

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
        base, partly = self.losses[self.names[-1]], self.compared.rows < self.all_rows.rows
        later = self._compared_rows if partly else f"after row {self.half:,}"
        heads = ("", "all rows", later, f"over {self.names[-1]}")
        first = dict(zip(self.names, self.all_rows.averages, strict=True))
        second = self.losses if partly else self.late_losses
        rows = [
            (name, _short(first[name]), _short(second[name]), _ratio(loss, base))
            for name, loss in self.losses.items()
        ]
        lines: list[tuple[str, ...]] = [heads, *rows]
        if not partly and self.half == self.rows:  # nothing came after
            lines = [(*line[:2], *line[3:]) for line in lines]
        return lines if len(rows) > 1 else [line[:-1] for line in lines]

    @property
    def _compared_rows(self) -> str:
        found = self.compared
        whole = found.rows == self.all_rows.rows - found.first + self.all_rows.first
        return f"from row {found.first:,} on" if whole else f"{found.rows:,} rows"

    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the table's head and rows."""
        head, *rows = self._lines()
        return head, rows

    def notes(self) -> list[str]:
        """Return what was measured, in sentences."""
        loss = self.loss[0].upper() + self.loss[1:]
        notes = [f"{loss} of predictions made before each row was learnt, from the second row on."]
        notes += filter(None, (self.looks.sentence(), *self.about))
        return notes

    @property
    def _caption(self) -> str:
        return f"{self.title}, {count_of(self.rows, 'row')}"

    def __repr__(self) -> str:
        return "\n".join([self._caption, *aligned(self._lines()), *self.notes()])

    def _repr_html_(self) -> str:
        return as_html(self._caption, self._lines(), self.notes(), named=True)

    def plot(self) -> Figure:
        """Draw the average loss over time, and how wide and how right intervals were.

        Returns
        -------
        array of matplotlib axes
        """
        from .evaluation_plots import draw

        return draw(self)
