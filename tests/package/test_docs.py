"""What the pages say is run: Python blocks, and commands with what they print."""

import doctest
import json
import math
import re
import runpy
import shlex
import sys
from importlib import import_module
from types import ModuleType

import pandas as pd
import pytest
from click.testing import CliRunner
from places import ROOT

import noisewise
from noisewise.bandits import POLICIES
from noisewise.cli import main
from noisewise.experiments import EXPERIMENTS
from noisewise.experiments.ingredients import bandit_lineup
from noisewise.experiments.ingredients.fixed_settings import SETTINGS
from noisewise.experiments.studies import bandits

BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
WITH_BLOCKS = [page for page in PAGES if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_of_a_page_run_in_turn(page, monkeypatch, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)  # what a page writes stays there
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


def test_the_page_of_tools_shows_the_figures_of_its_run(monkeypatch):
    """`python -m benchmarks.progressive` writes both; the sentences are checked here."""
    monkeypatch.syspath_prepend(ROOT)
    progressive = import_module("benchmarks.progressive")
    found = json.loads((progressive.PICTURES / "progressive.json").read_text())
    page = progressive.PAGE.read_text()
    assert progressive.fill(page, found) == page
    assert {name: [row["data"] for row in rows] for name, rows in found.items()} == {
        "tables": list(progressive.TABLES), "held_out": list(progressive.HELD_OUT)
    }  # fmt: skip
    first, most = progressive.summary(found["tables"])
    assert f"best on {first} of the eleven" in page
    assert f"at most {100 * (most - 1):.1f} % behind" in page
    assert f"best on {progressive.summary(found['held_out'])[0]} of the three" in page
    ratios = {row["data"]: row["ratio"] for row in found["held_out"]}
    assert f"On grunfeld its error is {100 * ratios['grunfeld'] - 100:.0f} % larger" in page
    assert f"SolarFlare {100 * ratios['SolarFlare'] - 100:.1f} % larger" in page
    assert first >= progressive.BEST
    assert most <= progressive.MOST
    for row in [*found["tables"], *found["held_out"]]:
        losses = {name: each["loss"] for name, each in row["peers"].items()}
        assert row["best"] == min(losses, key=losses.get)
        assert row["ratio"] == pytest.approx(row["ours"] / min(losses.values()))


def test_readme_and_page_show_the_run_of_all_tasks(monkeypatch):
    """`python -m benchmarks.real_pictures` writes both from losses and rewards of all tasks."""
    monkeypatch.syspath_prepend(ROOT)
    pictures, real = (import_module(f"benchmarks.real_{name}") for name in ("pictures", "data"))
    found = real.read(pictures.RUN)
    readme, page = pictures.README.read_text(), pictures.PAGE.read_text()
    assert pictures.fill(readme, pictures.sentence(found)) == readme
    assert pictures.fill(page, pictures.section(found["predictions"])) == page
    assert pictures.fill(page, pictures.bandit_section(found["bandits"]), "bandits") == page
    for kind, least in (("predictions", 800), ("bandits", 80)):
        run = found[kind]
        assert run["half"] in real.HALVES
        assert run["versions"].keys() == set(real.PACKAGES)
        assert len({row["task"] for row in run["tasks"]}) == len(run["tasks"]) > least


def test_standings_are_those_of_their_definition(monkeypatch, tmp_path):
    """Three tasks by hand: ahead, level, and behind a peer that is not the one that diverges."""
    monkeypatch.syspath_prepend(ROOT)
    real = import_module("benchmarks.real_data")
    row = {"family": "gaussian", "rows": 100, "dim": 2, "running mean": 2.0}
    losses = [(1.0, 0.5, 2.0, 4.0), (2.0, 1.0, 2.0, math.inf), (3.0, 1.0, 2.0, 2.0)]
    names = "noisewise", "noisewise nonlinear", "river BLR", "vowpalwabbit"
    rows = [
        {"task": f"t{i}", **row, **dict(zip(names, each, strict=True))}
        for i, each in enumerate(losses)
    ]
    found = real.standing(rows, "noisewise")
    assert (found.tasks, found.first, found.worst, found.over_mean) == (3, 2 / 3, 1.5, 1.5)
    assert found.mean == pytest.approx(0.75 ** (1 / 3))
    assert real.standing(rows, "noisewise nonlinear").worst == 0.5
    assert [real.ratio(each, "river BLR") for each in rows] == [2.0, 1.0, 1.0]
    assert real.ratio(rows[1], "vowpalwabbit") == math.inf
    diverged = rows[0] | dict.fromkeys(names[2:], math.inf)
    assert real.ratio(diverged, "noisewise") == 0.5  # of the running mean
    assert [each["task"] for each in real.worst(rows, "noisewise")] == ["t2", "t1", "t0"]
    assert real.groups(rows).keys() == {"all", "gaussian", "80-149 rows"}
    runs = {"predictions": {"half": "open", "date": "today", "versions": {}, "tasks": rows}}
    real.write(tmp_path / "run.json", runs)
    assert real.read(tmp_path / "run.json") == runs


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


FIRST = [p for p in (ROOT / "docs").rglob("*") if p.suffix in (".md", ".rst")]


@pytest.mark.parametrize("page", FIRST, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_page_says_first_for_whom_it_is(page):
    text = page.read_text()
    if included := re.match(r"```{include} (\S+)", text):  # a file of the project as a page
        text = (page.parent / included[1]).read_text()
    assert re.match(r"#? ?[^\n]+\n(=+\n)?\nFor \w", text)


def test_a_symbol_of_the_notation_has_one_meaning():
    rows = re.findall(r"^\| (.+?) \|", (ROOT / "docs" / "notation.md").read_text(), re.MULTILINE)
    names = [re.split(r"[=(]", each)[0].strip() for row in rows for each in row.split(", ")]
    assert len(names) > 30
    assert len({*names}) == len(names)


def test_long_formulas_break_at_relations_outside_of_brackets():
    pytest.importorskip("latex2mathml")  # of the extra `docs`, too
    parts = runpy.run_path(str(ROOT / "docs" / "mathml.py"))["parts"]
    assert parts("a+b=c") == ["a+b=c"]  # short
    whole = r"\|x-y\|_{H_{t+1}}\le(1+x)^2-\frac{a=b}{c}+\sum_{i<n}y_i=-1"
    ends = [r"\|x-y\|_{H_{t+1}}", r"\le(1+x)^2", r"{}-\frac{a=b}{c}", r"{}+\sum_{i<n}y_i", "=-1"]
    assert parts(whole) == ends


@pytest.fixture
def standings(monkeypatch):
    pytest.importorskip("docutils")  # of the extra `docs`, which the lowest versions are without
    monkeypatch.syspath_prepend(ROOT / "docs")
    return runpy.run_path(str(ROOT / "docs" / "standings.py"))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_has_formula_reference_use_and_cost(name, standings):
    words = getattr(noisewise, name).__doc__
    assert "math:" in words
    assert "References\n" in words or name == "Uniform"
    use, cost = standings["advice"](name)
    assert use
    assert " per round" in cost


def test_the_field_shows_every_policy_in_every_world(standings):
    """`make field` makes its table; contestants that changed since would be missing."""
    run = json.loads((ROOT / "docs" / "pictures" / "field.json").read_text())
    played = {(line["world"], line["policy"]) for line in run["lines"]}
    worlds = [cell["world"] for cell in bandits.cells(10, "all")]
    expected = {
        (w, name) for w in worlds for name in bandit_lineup.contestants(w, 10, everyone=True)
    }
    assert played == expected
    assert run["trials"] >= 10
    models = re.findall(r"field:: (.*)", (ROOT / "docs" / "field.rst").read_text())
    text = "".join(standings["standings"](run["lines"], model) for model in models)
    heads = [line.strip(" *-") for line in text.splitlines()]
    assert all(heads.count(world.replace("%", " %")) == 1 for world in worlds)
    linked = set(re.findall(r"<noisewise\.(\w+)>", text))
    assert linked == set(POLICIES)
    line = next(line for line in run["lines"] if line["policy"] == "OFUL")
    assert f"± {line['sem']:.{1 if line['sem'] >= 0.95 else 2}f} (" in text
    for reason in bandit_lineup.REASONS.values():
        assert reason in text


def test_the_gallery_says_where_a_setting_is_ahead(standings):
    columns = ["world", "noisewise", *SETTINGS]
    data = [
        ["first", "10.0 (20.0)", "5.0 (90)", *["30.0 (31)"] * (len(SETTINGS) - 1)],
        ["second", "10.0 (20.0)", *["30.0 (31)"] * len(SETTINGS)],
        ["over all", "–", *["0.5"] * len(SETTINGS)],
    ]
    behind, ahead = standings["gallery"](columns, data)
    first = next(iter(SETTINGS))
    assert behind == [["first", "10.0 (20.0)", first, "5.0 (90)", "2.00"]]
    assert [line[0] for line in ahead] == ["second"]


def test_a_line_of_the_field_by_hand(standings):
    everyone = runpy.run_path(str(ROOT / "docs" / "refresh.py"))["everyone"]
    ends = {"regret": [1.0, 3.0], "microseconds": [5.0, 7.0]}
    rows = [
        {"world": "fixed-linear", "policy": "OFUL", "rounds": t, "trial": trial, "regret": regret,
         "microseconds": spent}
        for trial, (regret, spent) in enumerate(zip(*ends.values(), strict=True))
        for t, regret in ((1, 0.0), (50, regret))
    ]  # fmt: skip
    (line,) = everyone(pd.DataFrame(rows))
    assert line == {
        "world": "fixed-linear", "policy": "OFUL", "mean": 2.0, "sem": 1.0, "max": 3.0,
        "microseconds": 6.0,
    }  # fmt: skip
    assert standings["_cell"](line, 2.0, None) == "| **2.0** ± 1.0 (3.0)\n       | 6.0 µs"
    assert standings["_cell"](line, 1.0, None).startswith("| 2.0 ±")
    assert standings["_cell"](None, 1.0, "why") == "*why*"


def test_names_for_data_scientists_come_first():
    """On the page and in ``help(noisewise)``; the docstring misses no public name."""
    pytest.importorskip("docutils")
    catalogue = runpy.run_path(str(ROOT / "docs" / "catalogue.py"))
    groups = catalogue["public_names"]()
    assert [*groups][:3] == ["Estimators", "Agent", "Evaluation"]
    assert "Others" not in groups
    names = [name for found in groups.values() for name in found]
    assert names[:3] == ["OnlineGLM", "OnlineGLMClassifier", "Agent"]
    assert len(names) == len({*names})
    assert names.index("Ellipsoid") > names.index("save")
    for name in {*noisewise.__all__} - {*noisewise.REGRESSORS, *POLICIES, "__version__"}:
        assert re.search(rf"\b{name}\b", noisewise.__doc__), name


def test_a_page_keeps_its_larger_run(tmp_path, capsys):
    main = runpy.run_path(str(ROOT / "docs" / "refresh.py"))["main"]
    kept, results = tmp_path / "kept", tmp_path / "results"
    kept.mkdir()
    results.mkdir()
    main.__globals__["PICTURES"] = kept
    run = {"holds": {}, "measured": {}, "numbers": {}}
    (results / "agents.svg").write_text("<svg/>")
    for trials, told in ((3, "agents: 0 kB"), (100, "agents: 0 kB"), (3, "larger run")):
        made = run | {"command": f"noisewise reproduce agents --trials {trials}", "trials": trials}
        (results / "agents.json").write_text(json.dumps(made))
        main(results)
        assert told in capsys.readouterr().out
    shown = json.loads((kept / "agents.json").read_text())
    assert shown["command"].endswith("--trials 100")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", shown["date"])
