"""A table of coefficients with their intervals, as text and in notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ..confidence import Interval
from ..inputs import probability
from .models import AnyModel

HEADS = "", "coefficient", "anytime", "textbook"


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Coefficients and their intervals: prints as a table, and draws one in a notebook.

    Attributes
    ----------
    names : tuple of str
        The features, and the intercept last if there is one.
    coefficients : tuple of float
        Those of the predictions; intervals are around least squares.
    anytime, textbook : Interval
        For each coefficient: at all times at once, and at one time fixed in advance.
    title : str
    notes : tuple of str
    """

    title: str
    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    anytime: Interval
    textbook: Interval
    notes: tuple[str, ...]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        ends = np.vstack([*self.anytime, *self.textbook]).T
        for name, coefficient, row in zip(self.names, self.coefficients, ends, strict=True):
            a, b, c, d = row
            yield name, f"{coefficient:.4g}", f"[{a:.4g}, {b:.4g}]", f"[{c:.4g}, {d:.4g}]"

    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the table's head and rows."""
        return HEADS, list(self._cells())

    def __repr__(self) -> str:
        table = [HEADS, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])))
            for row in table
        ]
        return "\n".join([self.title, *lines, *self.notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{each}</th>" for each in HEADS)
        body = "".join(
            f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(c)}</td>" for c in cells)
            + "</tr>"
            for name, *cells in self._cells()
        )  # fmt: skip
        notes = "<br>".join(map(escape, self.notes))
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{notes}</p>"
        )


def summarise(
    title: str,
    models: Mapping[str, AnyModel],
    columns: Sequence[str] | None,
    noise: object,
    delta: float,
    *about: str,
) -> Summary:
    """Return the coefficients of models; the key of each stands before the names of its features.

    Notes begin with what is said ``about`` the table.
    """
    probability("delta", delta)
    names: list[str] = []
    coefficients: list[float] = []
    found: tuple[list[Interval], list[Interval]] = [], []
    for key, model in models.items():
        coef, intercept = model.coefficients()
        own = [*(columns or (f"x{i}" for i in range(len(coef)))), "intercept"]
        for held, always in zip(found, (True, False), strict=True):
            held.append(model.coefficient_interval(noise, delta, always))
        count = np.size(found[0][-1].lower)  # without an intercept, one less
        names += [f"{key}{name}" for name in own[:count]]
        coefficients += [*coef.tolist(), intercept][:count]
    level = f"{100 * (1 - delta):g} %"
    notes = (
        *about,
        f"{level} intervals for each coefficient, around {model.centre}. anytime: valid at all",
        "times at once; textbook: valid at one sample size fixed in advance. Coefficients are",
        "those of predictions, with ridge and forgetting: they need not lie in the middle.",
        f"Intervals rest on {found[0][0].rests_on}.",
        model.caution,
    )
    anytime, textbook = map(_joined, found)
    kept = tuple(filter(None, notes))
    return Summary(title, tuple(names), tuple(coefficients), anytime, textbook, kept)


def _joined(intervals: list[Interval]) -> Interval:
    first, (lower, upper) = intervals[0], zip(*intervals, strict=True)
    return Interval(np.hstack(lower), np.hstack(upper), first.promise, first.rests_on)
