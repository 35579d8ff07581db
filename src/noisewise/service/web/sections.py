"""What the sections of the page show: charts of what happened of late, with what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from markupsafe import Markup

from ...support.printing import count_of
from ..loops import Kind
from . import charts
from .charts import Axis, Line, axis, number
from .loop_facts import Effects, Mean
from .recent import WINDOWS, Bucket, Recent

EFFECTS = 10  # that are shown
COLOURS = 7  # of actions; those less often played are one more together
UNITS = (86_400, "days"), (3600, "h"), (60, "min")
Window = list[tuple[float, Bucket]]


def latency(edges: Sequence[float], counts: Sequence[int]) -> dict[str, object] | None:
    """Return how long requests for decisions took, from counts up to each edge and beyond."""
    total = sum(counts)
    if not total:
        return None
    names = [f"{1000 * edge:g}" for edge in edges]
    sofar, half, most = 0, "", ""
    for name, count in zip([*names, f"more than {names[-1]}"], counts, strict=True):
        half = half or (name if sofar + count >= 0.5 * total else "")
        most = most or (name if sofar + count >= 0.99 * total else "")
        sofar += count
    said = f"Half of {count_of(total, 'request')} for decisions took at most {half} ms, 99 % at "
    said = f"{said}most {most} ms.".replace("at most more", "more")
    shares = [count / total for count in counts]
    return {"sentence": said, "chart": charts.bars(
        "How long requests for decisions took", said, [*names, "more"], shares
    )}  # fmt: skip


def example(kinds: Mapping[str, Kind]) -> dict[str, float | str]:
    """Return a context that a loop takes."""
    return {
        name: 1.0 if kind == "number" else kind[0] if isinstance(kind, list) else "word"
        for name, kind in kinds.items()
    }


def most_played(window: Window, actions: Sequence[str]) -> list[str]:
    """Return the actions played most often, in the order of the settings."""
    most = sum((bucket.actions for _, bucket in window), Counter[str]())
    order = {action: i for i, action in enumerate(actions)}
    return sorted((each for each, _ in most.most_common(COLOURS)), key=order.__getitem__)


def _ends(span: float) -> tuple[str, ...]:
    """Return what stands below a chart of so many seconds up to now.

    >>> _ends(210.0)
    ('3.5 min ago', '1.8 min ago', 'now')
    """
    size, unit = next((each for each in UNITS if span >= 2 * each[0]), (1, "s"))
    parts = (f"{n:.1f}".removesuffix(".0") if n < 10 else f"{n:.0f}"
             for n in (span / size, span / size / 2))  # fmt: skip
    return (*(f"{part} {unit} ago" for part in parts), "now")


def _seconds(window: Window) -> float:
    return sum(seconds for seconds, _ in window)


def _places(count: int) -> list[float]:
    return [(i + 0.5) / count for i in range(count)]


def _notes(window: Window, over: str, words: Callable[[Bucket], str]) -> list[str]:
    """Return what is said of each bucket where one points at it."""
    step, count = WINDOWS[over][1], len(window)
    return [f"{ago(step * (count - 1 - i))}: {words(each)}" for i, (_, each) in enumerate(window)]


def _full(window: Window, over: str) -> list[bool]:
    """Whether buckets are at least half over: less says nothing, unless there is no more."""
    return [len(window) == 1 or seconds >= WINDOWS[over][1] / 2 for seconds, _ in window]


def curve(recent: Recent, now: float) -> Markup | None:
    """Return the difference to the baseline over time, within three widths of its interval."""
    gain = recent.gain
    points = [each for each in recent.gains if each[1]["lower"] is not None]
    if gain is None or len(points) < 2:
        return None
    began, lower, upper = points[0][0], gain["lower"], gain["upper"]
    if lower is None or upper is None:
        return None
    width = upper - lower
    shown = axis(min(0.0, lower) - width / 2, max(0.0, upper) + width / 2)
    points.append((now, gain))
    values = [[each[what] for _, each in points] for what in ("difference", "lower", "upper")]
    places = [(at - began) / (now - began) for at, _ in points]
    return charts.lines(
        "Mean reward of the agent less that of the baseline, over time", gain["sentence"], shown,
        _ends(now - began), [Line("s0", places, *values)],
    )  # fmt: skip


def traffic(window: Window, over: str) -> dict[str, object] | None:
    """Return decisions and rewards per minute, None where there are none."""
    seen = {"decisions": [bucket.decisions for _, bucket in window],
            "rewards": [bucket.rewards for _, bucket in window]}  # fmt: skip
    if not any(map(any, seen.values())):
        return None
    totals, series, most = list[dict[str, object]](), list[Line](), 0.0
    for k, (what, counts) in enumerate(seen.items()):
        rates = [
            60 * n / max(seconds, 1.0) if full else None
            for n, (seconds, _), full in zip(counts, window, _full(window, over), strict=True)
        ]
        series.append(Line(f"s{k}", _places(len(window)), rates))
        known = [rate for rate in rates if rate is not None]
        totals.append({"name": what, "total": sum(counts), "rate": known[-1] if known else None})
        most = max(most, *known, 0.0)
    words = "; ".join(f"{sum(counts):,} {what}" for what, counts in seen.items())
    notes = _notes(window, over, lambda each: f"{each.decisions:,} decisions, "
                   f"{each.rewards:,} rewards")  # fmt: skip
    return {"totals": totals, "chart": charts.lines(
        "Decisions and rewards per minute", f"In all {words}.", axis(0.0, most or 1.0),
        _ends(_seconds(window)), series, notes,
    )}  # fmt: skip


def shares(window: Window, over: str, names: list[str]) -> dict[str, object] | None:
    """Return the share of each action over time; others than ``names`` are one together."""
    most = sum((bucket.actions for _, bucket in window), Counter[str]())
    if not (total := sum(most.values())):
        return None
    rest = total - sum(most[name] for name in names)
    legend = [(name, most[name] / total) for name in names]
    legend += [(f"{len(most) - len(names)} others", rest / total)] if rest else []
    columns = []
    for (_, bucket), full in zip(window, _full(window, over), strict=True):
        n = sum(bucket.actions.values())
        column = [bucket.actions[name] / n for name in names] if n and full else []
        columns.append([*column, 1 - sum(column)] if column else [])
    said = ", ".join(f"{name} {100 * share:.0f} %" for name, share in legend)
    notes = _notes(window, over, lambda each: ", ".join(
        f"{name} {count:,}" for name, count in each.actions.most_common(COLOURS)
    ) or "no decisions")  # fmt: skip
    return {"legend": legend, "chart": charts.stacks(
        "Share of each action over time", said, _ends(_seconds(window)), columns, notes
    )}  # fmt: skip


def widths(window: Window, over: str) -> dict[str, object] | None:
    """Return how wide the interval of the action that was played is on average, over time."""
    values = [
        bucket.width / bucket.known if bucket.known and full else None
        for (_, bucket), full in zip(window, _full(window, over), strict=True)
    ]
    known = [value for value in values if value is not None]
    if not known:
        return None
    said = f"{number(known[0])} at first, {number(known[-1])} at last."
    line = Line("s0", _places(len(window)), values)
    return {"first": known[0], "last": known[-1], "chart": charts.lines(
        "Mean width of the interval of the action that was played, over time", said,
        axis(0.0, max(known)), _ends(_seconds(window)), [line],
    )}  # fmt: skip


def effects(found: Effects | None) -> dict[str, object] | None:
    """Return what actions earn in a typical context, and the largest effects, with an axis each."""
    if found is None:
        return None
    means, changes = found["means"], found["changes"][:EFFECTS]
    return {
        "context": found["context"], "means": sorted(means, key=lambda each: -each["estimate"]),
        "means_axis": _around(means), "changes": changes, "changes_axis": _around(changes),
    }  # fmt: skip


def _around(rows: Sequence[Mean]) -> Axis | None:
    ends = [end for each in rows for end in (each["lower"], each["upper"])]
    return axis(min(ends), max(ends)) if ends else None


def ago(seconds: float) -> str:
    """Return a time in the past in words.

    >>> ago(0.4), ago(75), ago(7300)
    ('now', '75 s ago', '2 h ago')
    """
    if seconds < 1:
        return "now"
    for size, unit in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def moment(at: float) -> str:
    """Return a time as machines read it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
