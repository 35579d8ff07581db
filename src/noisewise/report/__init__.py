"""The page over all studies of a folder: one file, nothing fetched from outside."""

import html
import json
import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any


def write(folder: Path) -> Path:
    """Write ``folder/index.html`` over every study found in ``folder`` and return its path."""
    found = (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
    studies = [summary for summary in found if "study" in summary]
    held = sum(all(study["holds"].values()) for study in studies)
    page = _template("page.html").substitute(
        style=(files(__package__) / "style.css").read_text(),
        verdict=f"{held} of {len(studies)} studies confirm every claim on this run.",
        contents="".join(
            f'<li><a href="#{study["study"]}">{html.escape(study["title"])}</a></li>'
            for study in studies
        ),
        studies="".join(_section(study, folder) for study in studies),
    )
    part = folder / "index.html.part"
    part.write_text(page)
    return part.replace(folder / "index.html")


def _section(study: dict[str, Any], folder: Path) -> str:
    claims = "".join(
        f'<li class="{"yes" if held else "no"}">{html.escape(claim)}</li>'
        for claim, held in study["holds"].items()
    )
    return _template("study.html").substitute(
        name=study["study"],
        title=html.escape(study["title"]),
        claim=html.escape(study["claim"]),
        holds=claims,
        figure=_inline(folder / f"{study['study']}.svg"),
        table=_table(**study["numbers"]),
        command=html.escape(study["command"]),
        trials=study["trials"],
        seconds=study["seconds"],
        digest=study["digest"][:12],
        versions=html.escape(", ".join(f"{k} {v}" for k, v in study["versions"].items())),
    )


def _template(name: str) -> Template:
    return Template((files(__package__) / name).read_text())


def _inline(path: Path) -> str:
    """Return the SVG as an element of an HTML page: no prolog, metadata or namespace addresses."""
    text = path.read_text()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)


def _table(columns: list[str], data: list[list[Any]]) -> str:
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(v)}</td>" for v in row) + "</tr>" for row in data)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
