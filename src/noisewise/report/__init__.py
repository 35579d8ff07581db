"""The page over all studies of a folder: one file, nothing fetched from outside."""

import html
import json
import re
from collections.abc import Callable
from importlib.resources import files as resources
from pathlib import Path
from string import Template
from typing import Any

from ..experiments import EXPERIMENTS, files


def write(folder: Path, tell: Callable[[str], object] = print) -> Path:
    """Write ``folder/index.html`` over every study found in ``folder`` and return its path.

    ``tell`` hears of every JSON file that is no study's.
    """
    studies = []
    for path in sorted(folder.glob("*.json")):
        study = _read(path)
        if study is None:
            tell(f"left out of the page: {path} (not the summary of a study)")
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
    return files.replace(folder / "index.html", lambda part: part.write_text(page))


def _read(path: Path) -> dict[str, Any] | None:
    """Return a study's summary, None if the file is something else."""
    try:
        found = json.loads(path.read_text())
    except ValueError:
        return None
    wanted = {"study", "title", "claim", "command", "trials", "holds", "measured", "numbers",
              "digest", "seconds", "versions"}  # fmt: skip
    return found if isinstance(found, dict) and wanted <= set(found) else None


def _section(study: dict[str, Any], folder: Path) -> str:
    return _template("study.html").substitute(
        name=study["study"],
        title=html.escape(study["title"]),
        claim=html.escape(study["claim"]),
        holds="".join(_claim(study, claim) for claim in study["measured"]),
        figure=_inline(folder / f"{study['study']}.svg"),
        table=_table(**study["numbers"]),
        command=html.escape(study["command"]),
        trials=study["trials"],
        seconds=study["seconds"],
        digest=study["digest"][:12],
        versions=html.escape(", ".join(f"{k} {v}" for k, v in study["versions"].items())),
    )


def _claim(study: dict[str, Any], claim: str) -> str:
    mark = {True: "yes", False: "no", None: "open"}[study["holds"].get(claim)]
    measured = html.escape(study["measured"][claim])
    found = f' <span class="small">{measured}</span>' if measured else ""
    return f'<li class="{mark}">{html.escape(claim)}{found}</li>'


def _template(name: str) -> Template:
    return Template((resources(__package__) / name).read_text())


def _inline(path: Path) -> str:
    """Return the SVG as an element of an HTML page: no prolog, metadata or namespace addresses.

    It is never shown so small that its letters can't be read, nor blown up.
    """
    if not path.is_file():
        return f"<p>The figure {html.escape(path.name)} is not there; run the command again.</p>"
    text = path.read_text()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    found = re.search(r'<svg[^>]*?width="([\d.]+)pt"', text)
    width = float(found[1]) if found else 600.0
    style = f'style="min-width: {0.8 * width:.0f}pt; max-width: {1.2 * width:.0f}pt"'
    return text.replace("<svg", f"<svg {style}", 1)


def _table(columns: list[str], data: list[list[Any]]) -> str:
    words = [any(isinstance(row[i], str) for row in data) for i in range(len(columns))]
    side = [' class="words"' if word else "" for word in words]
    names = [html.escape(str(name)).replace(" = ", "&nbsp;=&nbsp;") for name in columns]
    head = "".join(f"<th{s}>{name}</th>" for s, name in zip(side, names, strict=True))
    lines = (
        "".join(f"<td{s}>{_cell(v)}</td>" for s, v in zip(side, row, strict=True)) for row in data
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
