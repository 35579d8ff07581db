"""A table of coefficients with their intervals, as text and in notebooks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

import numpy as np

from ..confidence import Interval
from ..inputs import probability
from ..regression.intervals.span import words
from ..support.printing import clean
from .estimator_state import AnyModel

HEADS = "", "estimate", "std. error", "anytime", "textbook", "prediction"
WIDTH = 110  # letters of a line of notes
ORDER = "Anytime intervals follow the order in which rows were learnt."
ABOUT = (
    "estimate: {}, with its standard error; intervals are around it. prediction: with ridge, what "
    "predictions rest on. {} intervals for each coefficient; anytime: at all times at once; "
    "textbook: at one time fixed in advance."
)


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Coefficients and their intervals: prints as a table, and draws one in a notebook.

    Attributes
    ----------
    names : tuple of str
        The features, and the intercept last if there is one.
    estimates, errors : tuple of float
        Unpenalised coefficients and their standard errors, nan where rows and labels tell nothing.
    anytime, textbook : Interval
        For each estimate: at all times at once, and at one time fixed in advance.
    freedom : tuple of float
        The degrees of freedom of each standard error, infinite where the variance is known.
    coefficients : tuple of float
        Those of the predictions, with ridge.
    dispersion, dispersion_weighted : float
        Pearson's, and that of rows weighted by their information; nan where it can't be seen, as
        for "gaussian" and for labels 0 and 1.
    title : str
    notes : tuple of str
    """

    title: str
    names: tuple[str, ...]
    estimates: tuple[float, ...]
    errors: tuple[float, ...]
    anytime: Interval
    textbook: Interval
    freedom: tuple[float, ...]
    coefficients: tuple[float, ...]
    dispersion: float
    dispersion_weighted: float
    notes: tuple[str, ...]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        ends = np.vstack([*self.anytime, *self.textbook]).T
        rows = zip(self.names, self.estimates, self.errors, self.coefficients, ends, strict=True)
        for name, estimate, error, coefficient, (a, b, c, d) in rows:
            known = _number(estimate, 4), _number(error, 3)
            intervals = f"[{a:.4g}, {b:.4g}]", f"[{c:.4g}, {d:.4g}]"
            yield clean(name), *known, *intervals, f"{coefficient:.4g}"

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
        notes = [line for note in self.notes for line in wrap(clean(note), WIDTH)]
        return "\n".join([self.title, *lines, *notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{each}</th>" for each in HEADS)
        body = "".join(
            f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(c)}</td>" for c in cells)
            + "</tr>"
            for name, *cells in self._cells()
        )  # fmt: skip
        notes = "<br>".join(escape(clean(note)) for note in self.notes)
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
    numbers: tuple[list[float], ...] = [], [], [], []
    found: tuple[list[Interval], list[Interval]] = [], []
    said: list[str] = [*about]
    for key, model in models.items():
        coef, intercept = model.coefficients()
        own = [*(columns or (f"x{i}" for i in range(len(coef)))), "intercept"]
        for held, always in zip(found, (True, False), strict=True):
            held.append(model.coefficient_interval(noise, delta, always))
        table = (*model.estimates(noise), np.append(coef, intercept))
        count = len(table[0])  # without an intercept, one less
        for into, values in zip(numbers, table, strict=True):
            into += values[:count].tolist()
        names += [f"{key}{name}" for name in own[:count]]
        doubts = [words(each, own) for each in model.ties]
        doubts += filter(None, (found[0][-1].note, model.caution))
        said += [*model.scatter(noise), *(f"{key}{each[0].upper()}{each[1:]}." for each in doubts)]
    said += [
        ABOUT.format(model.centre, f"{100 * (1 - delta):g} %"),
        f"Intervals rest on {found[0][0].rests_on}. {ORDER}",
    ]
    notes = tuple(dict.fromkeys(said))
    anytime, textbook = map(_joined, found)
    estimates, errors, freedom, coefficients = map(tuple, numbers)
    return Summary(
        title, tuple(names), estimates, errors, anytime, textbook, freedom, coefficients,
        *model.dispersion, notes,
    )  # fmt: skip


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def _joined(intervals: list[Interval]) -> Interval:
    first, (lower, upper) = intervals[0], zip(*intervals, strict=True)
    return Interval(np.hstack(lower), np.hstack(upper), first.promise, first.rests_on, first.note)
