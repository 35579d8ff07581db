"""What the pages say is run: Python blocks, and commands with what they print."""

import doctest
import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from noisewise.cli import main
from noisewise.experiments import EXPERIMENTS

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
WITH_BLOCKS = [page for page in PAGES if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_of_a_page_run_in_turn(page, monkeypatch):
    module = ModuleType(f"page_{page.stem}")  # a real one, so that a class on it can be saved
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = vars(module)
    text = page.read_text()
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 1
        kind, code = block.groups()
        if kind == "console":
            run_commands(code)
        elif ">>>" in code:
            run_dialogue(code, names, page, line)
        else:
            exec(compile(code, f"{page.name}:{line}", "exec"), names)


def run_dialogue(code, names, page, line):
    dialogue = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
    report = []
    doctest.DocTestRunner().run(dialogue, out=report.append, clear_globs=False)
    names.update(dialogue.globs)
    assert not report, "".join(report)


def run_commands(code):
    """Run every ``$ noisewise`` line and compare what follows it, if anything does."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        program, *words = shlex.split(command)
        assert program == "noisewise"
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        assert not output.strip() or done.output.split() == output.split()


def test_the_commands_of_the_pages_are_compared():
    with pytest.raises(AssertionError):
        run_commands("$ noisewise --version\nnoisewise 0.0.0\n")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_study_has_its_picture(name):
    """`make pictures` makes them; a claim that failed would be shown as failed."""
    pictures = ROOT / "docs" / "pictures"
    run = json.loads((pictures / f"{name}.json").read_text())
    assert run["command"].startswith(f"noisewise reproduce {name} ")
    assert (pictures / f"{name}.svg").stat().st_size < 400_000


def test_shrunk_figures_keep_all_but_decimals():
    shrink = runpy.run_path(str(ROOT / "docs" / "refresh.py"))["shrink"]
    before = '<path d="M 1.23456 -7.0009" transform="scale(0.015625)"/>'
    assert shrink(before) == '<path d="M 1.23 -7.00" transform="scale(0.015625)"/>'
