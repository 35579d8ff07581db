"""The page over a folder whose files others may have written."""

import copy
import json
import os
from html.parser import HTMLParser

import pytest
from places import ROOT

from noisewise import report
from noisewise.report import figures
from noisewise.support import provenance

PICTURE = ROOT / "docs" / "pictures" / "links.svg"
EVIL = """<script>alert(1)</script><img src=x onerror="alert(1)">'"&</pre></style>\ud800"""
GOOD = {
    "study": "links", "title": "A title", "claim": "A claim", "command": "noisewise reproduce",
    "digest": "0123456789abcdef", "trials": 3, "seconds": 1.5, "decisions": False,
    "sources": provenance.sources(),
    "holds": {"it holds": True}, "measured": {"it holds": "3 of 3", "open": ""},
    "numbers": {"columns": ["link", "error"], "data": [["a = b", 0.5], [None, 1]]},
    "versions": {"numpy": "2.0"}, "machines": [{"processor": "one", "BLAS": "two"}],
}  # fmt: skip
OPTIONAL = ("decisions", "machines", "sources")


class Page(HTMLParser):
    """What is on a page: elements, attributes, and whether they are nested as they should be."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.open, self.text, self.names = set(), set(), [], "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes, closed=False):
        self.tags.add(tag)
        if not closed and tag != "meta":
            self.open.append(tag)
        for key, value in attributes:
            assert not key.startswith("on"), (tag, key)
            assert key not in ("src", "srcdoc", "action", "formaction", "data")
            if "href" in key:
                self.links.add(value)
            if key == "id":
                self.names.append(value)
            if key == "style":
                assert "url" not in value

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes, closed=True)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


HTML = {"html", "head", "meta", "title", "style", "body", "header", "main", "h1", "h2", "p", "nav",
        "ul", "li", "a", "code", "section", "figure", "div", "table", "thead", "tbody", "tr", "th",
        "td", "pre", "span", "details", "summary", "strong"}  # fmt: skip
DRAWN = {"svg", "g", "defs", "clippath", "path", "use", "rect"}


def written(folder, summary=GOOD, figure=None, name="links"):
    """Return the page over one study, read, and what was told."""
    (folder / f"{name}.json").write_text(json.dumps(summary))
    if figure is not None:
        (folder / f"{name}.svg").write_text(figure)
    told = []
    page = Page(report.write(folder, told.append).read_text("utf-8"))
    assert page.tags <= HTML | DRAWN
    assert all(link.startswith("#") for link in page.links)
    return page, told


def test_a_study_is_shown_whole(tmp_path):
    page, told = written(tmp_path, figure=PICTURE.read_text())
    assert not told
    for words in (
        "A title", "A claim", "it holds", "3 of 3", "noisewise reproduce", "numpy 2.0",
        "0123456789ab", "3 trials, 1.5 s", "processor: one, BLAS: two", "0.5",
    ):  # fmt: skip
        assert words in page.text
    assert {"#links", "links"} <= page.links | set(page.names)
    assert "choices amplify" not in page.text
    again, _ = written(tmp_path, GOOD | {"decisions": True})
    assert "choices amplify" in again.text


def test_what_is_undecided_is_explained_at_the_top(tmp_path):
    measured = {**GOOD["measured"], "who knows": "1 of 2; undecided, since runs are few"}
    page, _ = written(tmp_path, GOOD | {"measured": measured})
    top = page.text.partition("Claims, and what was measured")[0]
    assert "Undecided: who knows 1 of 2; undecided, since runs are few" in top


def test_results_of_other_sources_are_marked(tmp_path):
    for summary, marked in (
        (GOOD, False),
        (GOOD | {"sources": "other"}, True),
        ({key: value for key, value in GOOD.items() if key != "sources"}, True),
    ):
        page, told = written(tmp_path, summary)
        assert not told
        assert ("Other sources" in page.text) == marked


def test_our_figures_keep_every_line(tmp_path):
    text = PICTURE.read_text()
    inline = figures.inline(PICTURE)
    for tag in ("path", "use", "clipPath", "rect"):
        assert text.count(f"<{tag} ") == inline.count(f"<{tag} ") > 0
    for word in ('d="', 'style="fill', "clip-path=", "transform=", 'xlink:href="#'):
        assert text.count(word) == inline.count(word) > 0
    ids = Page(inline).names
    assert len(ids) == text.count(' id="')
    assert all(name.startswith("links-") for name in ids)
    targets = {link.removeprefix("#") for link in Page(inline).links}
    assert targets <= set(ids)


def spoil(value, evil):
    """Yield copies with one text, at any depth, key or value, replaced."""
    if isinstance(value, dict):
        for key in value:
            for other in spoil(value[key], evil):
                yield {**value, key: other}
            if value is not GOOD and key not in ("columns", "data"):
                yield {(evil if k == key else k): v for k, v in value.items()}
    elif isinstance(value, list):
        for i, each in enumerate(value):
            for other in spoil(each, evil):
                yield [*value[:i], other, *value[i + 1 :]]
    else:
        yield evil


def test_texts_are_shown_as_text(tmp_path):
    shown = 0
    for bad in spoil(GOOD, EVIL):
        page, told = written(tmp_path, bad)
        assert len(told) in (0, 1)
        shown += not told
    both = dict.fromkeys((EVIL, "b"), EVIL)
    page, told = written(tmp_path, GOOD | {"holds": {EVIL: False}, "measured": both})
    assert not told
    assert "alert(1)" in page.text
    assert shown > 10


WRONG = [None, True, 0, -1.5, 10**300, float("nan"), "", "x", [], [1], ["x"], [[1]], [{}], {},
         {"a": 1}, {"a": None}, {"a": []}, {"columns": 1}, {"columns": [], "data": [[1]]},
         {"columns": ["a"], "data": [[[]]]}, {"columns": ["a"], "data": [1]}]  # fmt: skip


@pytest.mark.parametrize("key", GOOD)
def test_a_field_of_the_wrong_kind_leaves_the_page_whole(tmp_path, key):
    (tmp_path / "fine.json").write_text(json.dumps(GOOD | {"study": "fine"}))
    left_out = 0
    for value in WRONG:
        page, told = written(tmp_path, {**copy.deepcopy(GOOD), key: value})
        assert "#fine" in page.links
        assert told in ([], [told and told[0]])
        left_out += len(told)
    short = {k: v for k, v in GOOD.items() if k != key}
    assert len(written(tmp_path, short)[1]) == (key not in OPTIONAL)
    assert left_out >= 12


@pytest.mark.parametrize("name", ["a b", "ä", "a.b", 'x" onload="alert(1)', "a\n", "<b>", "-->"])
def test_names_are_plain(tmp_path, name):
    page, told = written(tmp_path, GOOD | {"study": name}, name=name)
    assert len(told) == 1
    assert "\n" not in told[0]
    assert not page.links


def test_a_study_has_the_name_of_its_file(tmp_path):
    for name in ("../links", "other", ""):
        assert len(written(tmp_path, GOOD | {"study": name})[1]) == 1


def test_other_files_are_left_out(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{}")
    (tmp_path / "long.json").write_text('{"trials": ' + "1" * 10_000 + "}")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "nowhere.json").symlink_to("nothing")
    page, told = written(tmp_path)
    assert len(told) == 5
    assert "A title" in page.text


SVG = '<svg xmlns="a" xmlns:xlink="b" width="100pt" viewBox="0 0 9 9">{}</svg>'


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        "<g><svg><script>alert(1)</script></svg></g>",
        "<path><script>alert(1)</script></path>",
        '<g onload="alert(1)" onclick="alert(1)"/>',
        "<foreignObject><iframe src='x'/><body onload='alert(1)'/></foreignObject>",
        '<image xlink:href="http://x/y.png"/>',
        '<use xlink:href="http://x/y.svg#a"/><use href="data:x"/><use xlink:href="javascript:a"/>',
        '<a xlink:href="javascript:alert(1)"><path d="M 0 0"/></a>',
        "<style>@import 'x'; .no {display: none}</style>",
        '<path style="fill: url(http://x/y); position: fixed; background: url(x)"/>',
        '<path style="fill: red&quot; onclick=&quot;alert(1)"/>',
        '<path d="M 0 0&quot; onclick=&quot;alert(1)" clip-path="url(http://x)" class="no"/>',
        '<set attributeName="href" to="javascript:alert(1)"/><animate attributeName="d"/>',
        '<x:script xmlns:x="a">alert(1)</x:script>',
        "<!-- --><![CDATA[<script>alert(1)</script>]]>&lt;script>alert(1)",
        '<g id="links&quot;"/>',
    ],
)
def test_figures_do_nothing_but_draw(tmp_path, inside):
    page, _ = written(tmp_path, figure=SVG.format(f'<rect id="kept"/>{inside}'))
    text = (tmp_path / "index.html").read_text().partition("<figure>")[2].partition("</figure>")[0]
    assert "links-kept" in page.names
    for word in ("alert", "http", "javascript", "import", "position: fixed", "red", "foreign"):
        assert word not in text
    assert page.names.count("links") == 1


def test_what_is_no_figure_is_not_shown(tmp_path):
    entity = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    outside = '<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    for text in (
        "", "text", "<html/>", "<svg>", SVG.format("<g>"), entity + SVG.format("&b;"),
        outside + SVG.format("&a;"), SVG.format("") + "<script/>",
    ):  # fmt: skip
        page, _ = written(tmp_path, figure=text)
        assert "links.svg is not there, or is none of ours" in page.text
        assert "svg" not in page.tags


def test_no_figure_comes_from_outside_its_folder(tmp_path):
    inside = tmp_path / "results"
    inside.mkdir()
    (tmp_path / "secret.svg").write_text(SVG.format('<rect id="secret"/>'))
    figure = inside / "links.svg"
    for target in ("../secret.svg", tmp_path / "secret.svg", "links.svg", "nothing"):
        figure.symlink_to(target)
        page, _ = written(inside)
        assert "is not there" in page.text
        assert not any("secret" in name for name in page.names)
        figure.unlink()
    (inside / "beside.svg").write_text(SVG.format('<rect id="beside"/>'))
    figure.symlink_to("beside.svg")
    assert "links-beside" in written(inside)[0].names
    figure.unlink()
    os.mkfifo(figure)
    assert "is not there" in written(inside)[0].text
