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
# where a formula of so many characters may be cut
LONG = 30
TOKEN = re.compile(r"\\[a-zA-Z]+\s*|\\.|.", re.DOTALL)
OPENING, CLOSED = ("(", "[", "{", r"\{"), (")", "]", "}", r"\}")
RELATION = re.compile(r"[=<>]|\\(le|ge|preceq|succeq|sim|in)\s*")
UNARY = re.compile(r"([=<>,({^_]|\\[a-z]+)\s*$")  # a sign after these is no sum
FAULTS = tuple(e for e in vars(exceptions).values() if isinstance(e, type))


def mathml(node, source, display):
    """Return a formula of a node; what can't be read is a warning at its place."""
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
    """Write a formula within a line, a long one in parts between which the line may break."""
    *first, last = (mathml(node, part, "inline") for part in parts(node.astext()))
    if node.get("after"):
        last = f'<span class="unbroken">{last}{node["after"]}</span>'
    self.body.append("".join([*first, last]))
    raise nodes.SkipNode


def keep_commas(app, doctree, name):
    """Give a formula the comma or full stop after it, with which no line shall begin."""
    for node in list(doctree.findall(nodes.math)):
        after = node.parent[node.parent.index(node) + 1 :][:1]
        found = re.match(r"[.,;:)]+", after[0].astext()) if after else None
        if found and isinstance(after[0], nodes.Text):
            node["after"] = found[0]
            node.parent.replace(after[0], nodes.Text(after[0].astext()[found.end() :]))


def parts(source):
    r"""Return a formula cut before relations and sums outside of all brackets, if it is long.

    >>> parts(r"a+b\le c")
    ['a+b\\le c']
    >>> parts(r"(1+x)^2\le\frac{1}{2}+\plus{i=1}^ny_i")
    ['(1+x)^2', '\\le\\frac{1}{2}', '{}+\\plus{i=1}^ny_i']
    """
    if len(source) < LONG or r"\left" in source or r"\text" in source:
        return [source]
    found, depth, norm = [""], 0, False
    for token in TOKEN.findall(source):
        depth += (token in OPENING) - (token in CLOSED)
        norm ^= token in (r"\|", "|")
        plus, relation = token in "+-" and not UNARY.search(found[-1]), RELATION.fullmatch(token)
        if depth == 0 and not norm and found[-1].strip() and (plus or relation):
            found.append("{}" if plus else "")
        found[-1] += token
    return found


def block(self, node):
    """Write a formula on its own line."""
    self.body.append(f'<div class="math">{mathml(node, node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("doctree-resolved", keep_commas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
