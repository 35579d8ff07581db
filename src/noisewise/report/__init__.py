"""The page over all studies of a folder: one file, nothing fetched from outside.

Files
    figures       SVG reduced to lines and shapes
    summaries     summaries of studies, checked before they are shown
    fit           the page of a model of a file
    fit_pictures  its pictures
    sentences     its sentences, computed from the fit
    values        the page of `noisewise evaluate`
"""

import html
import math
import re
from collections.abc import Callable, Sequence
from importlib.resources import files as resources
from pathlib import Path
from string import Template

from ..experiments import EXPERIMENTS, Record
from ..storage import files
from ..support import provenance
from . import figures, summaries

AMPLIFIED = " (on this kind of processor: choices amplify the last bit of a number)"

STALE = "Other sources of noisewise made this; run the command again to see what these do."


def write(folder: Path, tell: Callable[[str], object] = print) -> Path:
    """Write ``folder/index.html`` over every study found in ``folder`` and return its path.

    ``tell`` hears of every JSON file that is no study's. Nothing in these files can do more than be
    read on the page.
    """
    studies = []
    for path in sorted(folder.glob("*.json")):
        study = summaries.read(path)
        if study is None:
            tell(f"left out of the page: {str(path)!r} (not the summary of a study)")
        else:
            studies.append(study)
    order = list(EXPERIMENTS)
    studies.sort(key=lambda s: order.index(s["study"]) if s["study"] in order else len(order))
    page = framed(
        "page.html",
        {"title": "noisewise: studies"},
        verdict=_count([mark for study in studies for mark in _marks(study).values()]),
        doubtful="".join(_doubtful(study) for study in studies),
        contents="".join(_line(study) for study in studies),
        studies="".join(_section(study, folder) for study in studies),
    )
    content = page.encode("utf-8", "replace")  # JSON can spell half of a character
    return files.replace(folder / "index.html", lambda part: part.write_bytes(content))


def _marks(study: Record) -> dict[str, str]:
    """Return whether each claim holds: yes, no, or open."""
    words = {True: "yes", False: "no", None: "open"}
    return {claim: words[study["holds"].get(claim)] for claim in study["measured"]}


def _count(marks: list[str]) -> str:
    held, failed, undecided = (marks.count(each) for each in ("yes", "no", "open"))
    rest = [f"{failed} failed"] * bool(failed) + [f"{undecided} undecided"] * bool(undecided)
    return ", ".join([f"{held} of {len(marks)} claims hold", *rest])


def _line(study: Record) -> str:
    """Return a study's line of the table of contents."""
    marks = list(_marks(study).values())
    worst = "no" if "no" in marks else "open" if "open" in marks else "yes"
    title, name = html.escape(study["title"]), study["study"]
    return f'<li class="{worst}"><a href="#{name}">{title}</a>: {_count(marks)}</li>'


def _doubtful(study: Record) -> str:
    """Return links to the claims that failed or are undecided, with what was measured and why."""
    words, place = {"no": "Failed", "open": "Undecided"}, f'href="#{study["study"]}"'
    return "".join(
        f'<li class="{mark}">{words[mark]}: <a {place}>{html.escape(claim)}</a>'
        f"{_found(study, claim)}</li>"
        for claim, mark in _marks(study).items()
        if mark in words
    )


def _section(study: Record, folder: Path) -> str:
    picture = folder / f"{study['study']}.svg"
    figure = figures.inline(picture) or (
        f"<p>The figure {picture.name} is not there, or is none of ours; run the command again.</p>"
    )
    texts = {
        "name": study["study"],
        "title": study["title"],
        "claim": study["claim"],
        "command": study["command"],
        "trials": study["trials"],
        "seconds": study["seconds"],
        "digest": study["digest"][:12],
        "where": AMPLIFIED if study["decisions"] else "",
        "stale": "" if study["sources"] == provenance.sources() else STALE,
        "versions": _listed(study["versions"]),
        "machines": "".join(f"; on {_listed(each, ': ')}" for each in study["machines"]),
    }
    marks = _marks(study)
    return _template("study.html").substitute(
        {name: html.escape(str(text)) for name, text in texts.items()},
        verdict=_count(list(marks.values())),
        open="" if {*marks.values()} <= {"yes"} else " open",
        holds="".join(_claim(study, claim, mark) for claim, mark in marks.items()),
        figure=figure,
        table=table(**study["numbers"]),
    )


def _listed(named: dict[str, str], between: str = " ") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in named.items())


def _claim(study: Record, claim: str, mark: str) -> str:
    return f'<li class="{mark}">{html.escape(claim)}{_found(study, claim)}</li>'


def _found(study: Record, claim: str) -> str:
    measured = html.escape(study["measured"][claim])
    return f' <span class="small">{measured}</span>' if measured else ""


def framed(name: str, texts: dict[str, str], **elements: str) -> str:
    """Return a page of its own: a template of this folder with its title and the style."""
    return _template("frame.html").substitute(
        title=texts["title"],
        style=(resources(__package__) / "style.css").read_text(),
        body=_template(name).substitute(texts, **elements).rstrip(),
    )


def _template(name: str) -> Template:
    return Template((resources(__package__) / name).read_text())


def table(
    columns: Sequence[object], data: Sequence[Sequence[object]], left: int | None = None
) -> str:
    """Return a table; the first ``left`` columns, or those that hold words, are aligned left."""
    words = [
        any(isinstance(row[i], str) for row in data) if left is None else i < left
        for i in range(len(columns))
    ]
    side = [' class="words"' if word else "" for word in words]
    heads = [str(name).replace("_", " ") for name in columns]
    names = [html.escape(head).replace(" = ", "&nbsp;=&nbsp;") for head in heads]
    head = "".join(f"<th{s}>{name}</th>" for s, name in zip(side, names, strict=True))
    places = [_places([row[i] for row in data]) for i in range(len(columns))]
    lines = (
        "".join(f"<td{s}>{_cell(v, p)}</td>" for s, p, v in zip(side, places, row, strict=True))
        for row in data
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _places(column: list[object]) -> str:
    """Return the format of a column's numbers: equal decimals, unless they differ too much."""
    sizes = [abs(v) for v in column if isinstance(v, float) and math.isfinite(v) and v]
    if not sizes or max(sizes) > 1e4 * min(sizes):
        return ".3g"
    return f",.{max(0, 2 - math.floor(math.log10(max(sizes))))}f"


def _cell(value: object, places: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return format(value, places)
    return html.escape(re.sub(r"(?<=\d)%", " %", str(value)))
