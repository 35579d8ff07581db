"""Figures of studies as elements of the page: lines and shapes, and nothing else a file may hold.

Scripts, links, pictures, style sheets and text are left out, and names get the study's in front, so
that a figure can't reach beyond itself.
"""

import html
import re
from pathlib import Path
from xml.parsers import expat

GROUPS = ("svg", "g", "defs", "clipPath")
SHAPES = ("path", "use", "rect")
PLACES = ("d", "x", "y", "width", "height", "viewBox", "transform")
LOOKS = re.compile(r"fill(-opacity|-rule)?|stroke(-[a-z]+)?|opacity")
PLAIN = re.compile(r"[\w\s.,()%+-]*", re.ASCII)
VALUE = re.compile(r"#?[\w\s.,%-]+", re.ASCII)
NAME, LINK, CLIP = (
    re.compile(form, re.ASCII) for form in (r"([\w.-]+)", r"#([\w.-]+)", r"url\(#([\w.-]+)\)")
)


def inline(path: Path) -> str | None:
    """Return the figure as an element, None where there is none or it is no SVG of this folder.

    It is never shown so small that its letters can't be read, nor blown up.
    """
    try:
        here = path.resolve().parent == path.parent.resolve() and path.is_file()
        return element(path.stem, path.read_bytes()) if here else None
    except (OSError, RuntimeError, LookupError, expat.ExpatError, ValueError):
        return None


def element(name: str, content: bytes) -> str:
    """Return an SVG as an element, whose names begin with ``name``."""
    return _Figure(name, content).text


class _Figure:
    """Reads an SVG and keeps what is allowed."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name, self.kept, self.open = name, list[str](), list[str]()
        self.skipped = 0  # how deep inside something that is left out
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.EntityDeclHandler = self._refuse
        parser.Parse(content, True)
        self.text = "".join(self.kept)

    def _refuse(self, *_: object) -> None:
        raise ValueError("a figure declares no entities")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.open and not self.skipped and tag != "svg":
            raise ValueError("not an SVG")
        allowed = (*GROUPS[1:], *SHAPES) if self.open else GROUPS[:1]
        if self.skipped or tag not in allowed:
            self.skipped += 1
            return
        words = [word for key, value in attributes.items() if (word := self._word(key, value))]
        if tag == "svg":
            words.append(_size(attributes.get("width", "")))
        self.kept.append(f"<{' '.join((tag, *words))}{'/>' if tag in SHAPES else '>'}")
        if tag in SHAPES:
            self.skipped += 1
        else:
            self.open.append(tag)

    def _end(self, tag: str) -> None:
        if self.skipped:
            self.skipped -= 1
        else:
            self.kept.append(f"</{self.open.pop()}>")

    def _word(self, key: str, value: str) -> str:
        """Return an attribute as it is kept, empty where it is not."""
        if key in PLACES and PLAIN.fullmatch(value):
            return f'{key}="{value}"'
        if key == "style":
            parts = (part.partition(":")[::2] for part in value.split(";"))
            kept = [(k.strip(), v.strip()) for k, v in parts]
            looks = (f"{k}: {v}" for k, v in kept if LOOKS.fullmatch(k) and VALUE.fullmatch(v))
            return f'style="{"; ".join(looks)}"'
        forms = {
            "id": (NAME, 'id="{}"'),
            "xlink:href": (LINK, 'xlink:href="#{}"'),
            "clip-path": (CLIP, 'clip-path="url(#{})"'),
        }
        form, shown = forms.get(key, (NAME, ""))
        found = form.fullmatch(value)
        return shown.format(html.escape(f"{self.name}-{found[1]}")) if found else ""


def _size(width: str) -> str:
    found = re.fullmatch(r"([\d.]{1,9})pt", width, re.ASCII)
    points = float(found[1]) if found else 600.0
    return f'style="min-width: {0.8 * points:.0f}pt; max-width: {1.2 * points:.0f}pt"'
