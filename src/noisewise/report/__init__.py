"""The page over all studies of a folder: one file, nothing fetched from outside."""

import html
from collections.abc import Callable
from importlib.resources import files as resources
from pathlib import Path
from string import Template

from .. import files
from ..experiments import EXPERIMENTS, Record, provenance
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
    held = sum(all(study["holds"].values()) for study in studies)
    open_claims = sum(len(study["measured"]) - len(study["holds"]) for study in studies)
    undecided = f", and leave {open_claims} undecided" if open_claims else ""
    page = _template("page.html").substitute(
        style=(resources(__package__) / "style.css").read_text(),
        verdict=f"{held} of {len(studies)} studies confirm every claim they decide{undecided}.",
        contents="".join(
            f'<li><a href="#{study["study"]}">{html.escape(study["title"])}</a></li>'
            for study in studies
        ),
        studies="".join(_section(study, folder) for study in studies),
    )
    content = page.encode("utf-8", "replace")  # JSON can spell half of a character
    return files.replace(folder / "index.html", lambda part: part.write_bytes(content))


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
    return _template("study.html").substitute(
        {name: html.escape(str(text)) for name, text in texts.items()},
        holds="".join(_claim(study, claim) for claim in study["measured"]),
        figure=figure,
        table=table(**study["numbers"]),
    )


def _listed(named: dict[str, str], between: str = " ") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in named.items())


def _claim(study: Record, claim: str) -> str:
    mark = {True: "yes", False: "no", None: "open"}[study["holds"].get(claim)]
    measured = html.escape(study["measured"][claim])
    found = f' <span class="small">{measured}</span>' if measured else ""
    return f'<li class="{mark}">{html.escape(claim)}{found}</li>'


def _template(name: str) -> Template:
    return Template((resources(__package__) / name).read_text())


def table(columns: list[str], data: list[list[object]]) -> str:
    """Return a table as an element of a page; columns that hold words stand on the left."""
    words = [any(isinstance(row[i], str) for row in data) for i in range(len(columns))]
    side = [' class="words"' if word else "" for word in words]
    names = [html.escape(str(name)).replace(" = ", "&nbsp;=&nbsp;") for name in columns]
    head = "".join(f"<th{s}>{name}</th>" for s, name in zip(side, names, strict=True))
    lines = (
        "".join(f"<td{s}>{_cell(v)}</td>" for s, v in zip(side, row, strict=True)) for row in data
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
