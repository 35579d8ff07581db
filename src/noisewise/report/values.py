"""The page on what policies are worth, from a log: one file, nothing fetched from outside."""

import html
import math
from pathlib import Path

import pandas as pd

from .. import logs
from ..evaluation.off_policy.estimates import Estimate
from ..evaluation.off_policy.value_table import HEADS, OffPolicyValue
from ..experiments import plotting
from ..storage import files
from ..support.printing import clean
from ..support.shell_words import in_shell_words
from ..tabular import reading
from . import figures, framed, table

MOST = 24  # policies drawn: those of the largest estimates


def read(path: Path, action: str) -> pd.DataFrame:
    """Return the rows of a file; ``action`` is the column of names of actions, except in dsjson."""
    if {".dsjson", ".json", ".jsonl"} & {*path.suffixes}:
        return pd.DataFrame(logs.read_dsjson(path))
    frames = list(reading.chunks(path, reading.names_of(path), named=[action]))
    if not sum(map(len, frames)):
        raise ValueError(f"{path} has no rows; pass a log of decisions")
    return pd.concat(frames)


def write(folder: Path, source: str, found: OffPolicyValue, command: str) -> Path:
    """Write ``folder/index.html`` with its picture and return its path."""
    picture = folder / "values.svg"
    plotting.write(lambda _: draw(found), pd.DataFrame(), picture)
    played = found.of("played", "mean")
    reliable = [e for e in found.estimates if e.estimator == "dr" and e.reliable]
    lead = f"{found.count:,} decisions earned {played.value:.4g} each, on average. "
    if reliable:
        best = max(reliable, key=lambda e: e.value)
        lead += (
            f"The largest reliable estimate (doubly robust) is that of {best.policy!r}: "
            f"{best.value:.4g}, from {best.lower:.4g} to {best.upper:.4g}. As the largest of "
            "several it is biased upwards."
        )
    else:
        lead += (
            "No approximate interval of another policy is reliable, and the warnings say why; the "
            "picture shows the anytime intervals."
        )
    texts = {"title": f"Policies on {clean(source)}", "lead": lead, "command": clean(command)}
    doubts = [in_shell_words(clean(each)) for each in found.warnings]
    notes = map(in_shell_words, found.notes()[len(found.warnings) :])
    page = framed(
        "values.html",
        {name: html.escape(text) for name, text in texts.items()},
        warnings="".join(f'<li class="no">{html.escape(each)}</li>' for each in doubts),
        figure=figures.inline(picture) or "",
        table=table(list(HEADS), [list(row) for row in found.rows()], left=2),
        notes="".join(f"<li>{html.escape(each)}</li>" for each in notes),
    )
    return files.replace(
        folder / "index.html", lambda part: part.write_text(page, encoding="utf-8")
    )


def draw(found: OffPolicyValue) -> plotting.Figure:
    """Draw the estimate of each policy with its intervals, the largest on top.

    Pale: only the anytime interval, around its own centre.
    """
    names = list(dict.fromkeys(e.policy for e in found.estimates))
    names = sorted(names, key=lambda name: -found.of(name).value)[:MOST]
    figure, axes = plotting.panels(1, 1, width=7.0, height=1.0 + 0.28 * len(names))
    axis = axes[0, 0]
    held: dict[tuple[str, str], Estimate] = {(e.policy, e.estimator): e for e in found.estimates}
    for place, name in enumerate(names):
        always, each = held[name, "anytime"], found.of(name)
        colour = plotting.BLUE if each is not always else plotting.FAINT
        colour = plotting.BLACK if name == "played" else colour
        if math.isfinite(always.upper - always.lower):
            ends, alpha = [always.lower, always.upper], 0.5 if each is always else 0.2
            axis.plot(ends, [-place] * 2, color=colour, lw=7, alpha=alpha)
        if each is not always:
            axis.plot([each.lower, each.upper], [-place] * 2, color=colour)
        axis.plot(each.value, -place, "o", ms=4, color=colour)
    axis.axvline(found.of("played", "mean").value, color=plotting.BLACK, lw=0.8, ls=":")
    axis.set_yticks([-i for i in range(len(names))], map(clean, names), parse_math=False)
    axis.set(xlabel="mean reward per decision", ylim=(-len(names) + 0.4, 0.6))
    axis.set_title("What each policy would have earned")
    axis.grid(axis="y", visible=False)
    return figure
