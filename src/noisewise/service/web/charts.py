"""Charts as SVG, as wide as the page lets them, in the colours of its style sheet.

Places from left to right are shares of the width, heights are pixels: so letters and lines keep
their size on every screen. Each chart has a title and a description for those who can't see it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from ...support.printing import clean

TOP, PLOT, FOOT, WIDE = 10, 150, 26, 1000
ROW = 22  # height of an interval
Values = Sequence[float | None]


class Line(NamedTuple):
    """Values at places from 0 to 1, and a band around them; None leaves a gap."""

    colour: str
    places: Sequence[float]
    values: Values
    lower: Values = ()
    upper: Values = ()


class Axis(NamedTuple):
    """The values at the foot and the top of a chart, and those with a line."""

    low: float
    high: float
    ticks: list[float]

    def y(self, value: float) -> float:
        """Return where a value lies, in pixels from the top."""
        return TOP + PLOT * (self.high - value) / self.size

    @property
    def size(self) -> float:
        """From one end to the other."""
        return self.high - self.low

    def x(self, value: float) -> float:
        """Return where a value lies from left to right, in percent."""
        return 100 * min(max((value - self.low) / self.size, 0.0), 1.0)


def axis(low: float, high: float, most: int = 4) -> Axis:
    """Return an axis around two values whose ends and steps are round numbers.

    >>> axis(0.0, 0.83).ticks
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    size = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(size / most))
    step = next(power * k for k in (1, 2, 2.5, 5, 10, 20) if size / (power * k) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last += last == first
    return Axis(first * step, last * step, [step * k for k in range(first, last + 1)])


def lines(
    title: str, words: str, axis: Axis, ends: Sequence[str], series: Sequence[Line],
    notes: Sequence[str] = (),
) -> Markup:  # fmt: skip
    """Return lines over time; ``ends`` are written below, ``notes`` shown where one points."""
    drawn = [part for each in series for part in (_band(axis, each), _line(axis, each))]
    plot = Markup('<svg width="100%" height="{}" viewBox="0 0 {} {}" {}>{}</svg>').format(
        TOP + PLOT, WIDE, TOP + PLOT, Markup('preserveAspectRatio="none"'), Markup().join(drawn)
    )
    return _framed(title, words, axis, ends, plot + _notes(notes))


def stacks(
    title: str, words: str, ends: Sequence[str], columns: Sequence[Sequence[float]],
    notes: Sequence[str] = (),
) -> Markup:  # fmt: skip
    """Return columns of shares over time, in the colours s0, s1 and so on from the foot up."""
    bars, shown, wide = Markup(), axis(0.0, 1.0), 100 / max(len(columns), 1)
    for i, column in enumerate(columns):
        foot = 0.0
        for k, share in enumerate(column):
            if share > 1e-9:
                top = shown.y(foot + share)
                bars += Markup(
                    '<rect class="s{}" x="{:.3f}%" width="{:.3f}%" y="{:.1f}" height="{:.1f}"/>'
                ).format(k, i * wide, 0.86 * wide, top, shown.y(foot) - top)
            foot += share
    return _framed(title, words, shown, ends, bars + _notes(notes), unit=100)


def bars(title: str, words: str, names: Sequence[str], values: Sequence[float]) -> Markup:
    """Return a bar for each share, with its name below and its value above."""
    most, wide, drawn = max(values, default=0.0) or 1.0, 100 / max(len(names), 1), Markup()
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        high, middle = (PLOT - 20) * value / most, (i + 0.5) * wide
        foot = TOP + PLOT
        drawn += Markup(
            '<rect class="s0" x="{:.2f}%" width="{:.2f}%" y="{:.1f}" height="{:.1f}"/>'
            '<text class="middle" x="{:.2f}%" y="{}">{}</text>'
        ).format(i * wide + 0.1 * wide, 0.8 * wide, foot - high, high, middle, foot + 17, name)
        if value:
            drawn += Markup('<text class="middle" x="{:.2f}%" y="{:.1f}">{}</text>').format(
                middle, foot - high - 6, f"{100 * value:.0f} %" if value >= 0.005 else "<1 %"
            )
    drawn += Markup('<line class="grid zero" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(foot)
    return _svg("chart flush", TOP + PLOT + FOOT, title, words, drawn)


def interval(
    title: str, shown: Axis, estimate: float, lower: float, upper: float, mark: float | None = None
) -> Markup:
    """Return an estimate as a dot on its interval, with a tick at ``mark``."""
    y = ROW / 2
    drawn = Markup('<line class="track" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(y)
    drawn += Markup('<line class="span" x1="{:.2f}%" x2="{:.2f}%" y1="{}" y2="{}"/>').format(
        shown.x(lower), shown.x(upper), y, y
    )
    if mark is not None:
        drawn += Markup('<line class="tick" x1="{0:.2f}%" x2="{0:.2f}%" y1="3" y2="{1}"/>').format(
            shown.x(mark), ROW - 3
        )
    drawn += Markup('<circle class="dot" cx="{:.2f}%" cy="{}" r="4.5"/>').format(
        shown.x(estimate), y
    )
    return _svg("interval", ROW, title, "", drawn)


def scale(shown: Axis) -> Markup:
    """Return the numbers of an axis from left to right, as the foot of a column of intervals."""
    drawn, ticks = Markup(), shown.ticks[:: 2 if len(shown.ticks) > 4 else 1]
    for tick in ticks:
        drawn += Markup('<text class="{}" x="{:.2f}%" y="14">{}</text>').format(
            _anchor(shown.x(tick) / 100), shown.x(tick), _tick(tick)
        )
    return Markup('<svg class="interval" width="100%" height="18" aria-hidden="true">{}</svg>'
                  ).format(drawn)  # fmt: skip


def _svg(kind: str, height: float, title: str, words: str, drawn: Markup) -> Markup:
    desc = Markup("<desc>{}</desc>").format(clean(words)) if words else Markup()
    return Markup(
        '<svg class="{}" width="100%" height="{}" role="img"><title>{}</title>{}{}</svg>'
    ).format(kind, height, clean(title), desc, drawn)


def _framed(
    title: str, words: str, shown: Axis, ends: Sequence[str], plot: Markup, unit: float = 1
) -> Markup:
    """Return a plot between lines with numbers on the left and times below."""
    grid, y = Markup(), TOP + PLOT + 18
    for tick in shown.ticks:
        grid += Markup(
            '<line class="grid{}" x1="0" x2="100%" y1="{:.1f}" y2="{:.1f}"/>'
            '<text class="end" x="-8" y="{:.1f}">{}</text>'
        ).format(
            " zero" if abs(tick) < 1e-12 else "", shown.y(tick), shown.y(tick), shown.y(tick) + 4,
            _tick(unit * tick),
        )  # fmt: skip
    for i, word in enumerate(ends):
        place = i / max(len(ends) - 1, 1)
        grid += Markup('<text class="{}" x="{:.1f}%" y="{}">{}</text>').format(
            _anchor(place), 100 * place, y, word
        )
    return _svg("chart", TOP + PLOT + FOOT, title, words, grid + plot)


def _anchor(place: float) -> str:
    return "start" if place < 0.02 else "end" if place > 0.98 else "middle"


def _tick(value: float) -> str:
    """Return a number with few letters.

    >>> _tick(0.25), _tick(-20_000.0), _tick(1.5e6)
    ('0.25', '−20,000', '1.5 M')
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.4g} M".replace("-", "−")
    form = ",.0f" if abs(value) >= 1e4 else ",.4g"
    return f"{value if abs(value) > 1e-12 else 0.0:{form}}".replace("-", "−")


def _line(shown: Axis, line: Line) -> Markup:
    path, alone, pen, values = "", "", "M", [*line.values, None]
    for place, value, after in zip(line.places, line.values, values[1:], strict=True):
        if value is None:
            pen = "M"
            continue
        at = f"{WIDE * place:.1f} {shown.y(value):.1f}"
        # a point between two gaps is a line of no length, which round ends make a dot
        alone += f"M{at}h0" if pen == "M" and after is None else ""
        path, pen = f"{path}{pen}{at}" + ("h0" if pen == "M" else ""), "L"
    drawn = Markup('<path class="line {}" d="{}"/>').format(line.colour, path)
    if alone:
        drawn += Markup('<path class="line alone {}" d="{}"/>').format(line.colour, alone)
    return drawn


def _band(shown: Axis, line: Line) -> Markup:
    points = [
        (WIDE * place, shown.y(low), shown.y(high))
        for place, low, high in zip(line.places, line.lower, line.upper, strict=False)
        if low is not None and high is not None
    ]
    there = [f"{x:.1f} {max(high, -WIDE):.1f}" for x, _, high in points]
    back = [f"{x:.1f} {min(low, WIDE):.1f}" for x, low, _ in reversed(points)]
    path = f"M{'L'.join(there + back)}Z" if points else ""
    return Markup('<path class="band {}" d="{}"/>').format(line.colour, path)


def _notes(notes: Sequence[str]) -> Markup:
    wide, found = 100 / max(len(notes), 1), Markup()
    for i, note in enumerate(notes):
        found += Markup(
            '<rect class="hit" x="{:.3f}%" width="{:.3f}%" y="{}" height="{}">'
            "<title>{}</title></rect>"
        ).format(i * wide, wide, TOP, PLOT, clean(note))
    return found


def number(value: float | None, sign: str = "", size: float = 0.0) -> str:
    """Return three digits, or those that matter beside numbers that vary by ``size``.

    >>> number(1234.5), number(0.12345), number(-0.5, "+"), number(0.5, "", 0.27), number(None)
    ('1,234', '0.123', '−0.5', '0.500', '–')
    """
    if value is None:
        return "–"
    if size > 0:
        form = f"{value:{sign},.{min(max(1 - math.floor(math.log10(size / 4)), 0), 9)}f}"
    else:
        form = f"{value:{sign},.0f}" if 1000 <= abs(value) < 1e9 else f"{value:{sign}.3g}"
    return form.replace("-", "−")
