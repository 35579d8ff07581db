"""Formulas as MathML, which browsers draw by themselves: no script, nothing fetched."""

import re

from docutils import nodes
from latex2mathml import exceptions
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

LOG = logging.getLogger(__name__)
# what the converter does not know, or sets otherwise than TeX does: before and after it
SPELLINGS = (
    (re.compile(r"\\arg(?![a-z])"), r"\\operatorname{arg}"),
    (re.compile(r"\\mathbb\s*\{?E\}?"), "𝔼"),
    (re.compile(r"(?<!\\)\\\n"), r"\\ "),
    (re.compile(r"\\[bB]ig[lr]?\\\|"), r"\\|"),
    (re.compile(r"(?<=[\w})])\s*\\(log|exp)(?![a-z])"), r"\\,\\\1"),
    (re.compile(r"\\(log|exp)(?=\s*[0-9A-Za-z]|\\[dt]?frac|\\sum)"), r"\\\1\\,"),
)
LIMITS = re.compile(r"\\(max|min|inf|sup)_")
POLISH = (
    (re.compile(r"<mo( [^>]*)?>([a-z]+)</mo>"), r'<mo\1 lspace="0.17em" rspace="0.17em">\2</mo>'),
    (re.compile(r"<mo>(?=&#x0002F;)"), r'<mo lspace="0" rspace="0">'),
    (re.compile(r'<mo (?=stretchy="false">&#x0007C;)'), r'<mo lspace="0" rspace="0" '),
    (
        re.compile(r"((?:\[|&#x000(?:28|2C|3D);|&#x02264;)</mo>)<mo>(?=&#x02212;)"),
        r'\1<mo form="prefix">',
    ),
)
FAULTS = tuple(e for e in vars(exceptions).values() if isinstance(e, type))


def mathml(node, display):
    """Return the formula of a node; what can't be read is a warning at its place."""
    source = node.astext()
    if display == "block" and r"\\" in source and r"\begin" not in source:
        source = rf"\begin{{split}}{source}\end{{split}}"
    for unknown, known in SPELLINGS:
        source = unknown.sub(known, source)
    if display == "block":
        source = LIMITS.sub(r"\\\1\\limits_", source)
    try:
        found = convert(source, display=display)
    except FAULTS as error:
        LOG.warning("formula %r: %r", source, error, location=node)
        return ""
    for plain, polished in POLISH:
        found = plain.sub(polished, found)
    if "\\" in found:  # the converter passes on a command it does not know
        LOG.warning("formula %r has a command without MathML", source, location=node)
    return found


def inline(self, node):
    """Write a formula within a line."""
    self.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def block(self, node):
    """Write a formula on its own line."""
    self.body.append(f'<div class="math">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
