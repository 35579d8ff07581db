"""The rules of the house: what may import what, what imports cost, what files may say."""

import ast
import dis
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import import_module
from types import ModuleType

import pytest
from places import ROOT

import noisewise
from noisewise.kernels.compiling import cache

SOURCE = ROOT / "src/noisewise"
TESTED = "studies", "data", "serve", "postgres", "dev"
HEAVY = {"numba", "pandas", "matplotlib", "sklearn", "pyarrow", "joblib"}


def modules_after(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_is_light():
    assert not modules_after("import noisewise") & (HEAVY | {"numpy", "scipy"})
    used = "import noisewise as nw; nw.LINKS; nw.GLM; nw.FTRL; nw.save"
    assert not modules_after(used) & HEAVY


def test_a_spec_is_made_without_numba():
    """Whatever its parameters: no learner is started to check them."""
    code = (
        "from noisewise.bandits import POLICIES\n"
        "import noisewise as nw\n"
        "for name in POLICIES:\n"
        "    getattr(nw, name)()\n"
        "for noise in ('sub-gaussian', 'bounded', 'likelihood', 'estimated'):\n"
        "    nw.FTRLUCB(nw.GLM('logistic'), noise, 1.0, radius='practical')\n"
        "nw.FTRLUCB(nw.GLM(), 'bounded', 1.0, radius='freedman')\n"
        "nw.MORUCB(as_printed=True)"
    )
    assert not modules_after(code) & HEAVY


def test_a_first_decision_and_reward_import_little():
    """Half a second is promised for both; `scipy.special` alone would take a third of it."""
    code = (
        "import sys, numpy as np, noisewise as nw\n"
        "agent = nw.Agent.for_binary_rewards(dim=2)\n"
        "agent.choose(np.eye(2), key=0); agent.learn(0, 1.0)\n"
        "assert not {'scipy.special', 'noisewise.bandits.optimistic.ftrl_ucb'} & {*sys.modules}"
    )
    modules_after(code)


def test_help_is_quick():
    """0.3 s of CPU is promised; the imports behind --help are what decides, so they are tested."""
    code = "from click.testing import CliRunner; from noisewise.cli import main\n"
    code += "assert CliRunner().invoke(main, ['--help']).exit_code == 0"
    assert not modules_after(code) & (HEAVY | {"numpy", "scipy"})


def test_numba_only_in_kernels():
    for path in (ROOT / "src").rglob("*.py"):
        if {*cache.ROOMS} & {*path.parts}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "numba" for name in names), path


def test_kernels_call_only_parts_that_are_compiled_with_them():
    """A cached callee would make results depend on what else lay in the cache."""
    from numba import njit

    Dispatcher = type(njit(lambda: 0))
    seen = 0
    source = ROOT / "src/noisewise"
    for path in sorted(each for room in cache.ROOMS for each in (source / room).rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        module = import_module(f"noisewise.{name}")
        for kernel in [thing for thing in vars(module).values() if isinstance(thing, Dispatcher)]:
            seen += 1
            part = None
            for word in dis.get_instructions(kernel.py_func):
                if word.opname == "LOAD_GLOBAL":
                    part = kernel.py_func.__globals__.get(word.argval)
                elif isinstance(part, ModuleType) and word.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                    part = getattr(part, word.argval)
                if isinstance(part, Dispatcher):
                    assert part.stats.cache_path is None, (kernel, part)
    assert seen > 20


def test_what_numba_does_not_document_is_used_in_three_files():
    """Each imported for tested versions alone, see `compile_options.py`; 300 lines together."""
    private = re.compile(r"numba\.(core|np|misc|cpython|typed)\b|llvmlite (import|\.ir)")
    paths = (ROOT / "src").rglob("*.py")
    found = [path for path in paths if private.search(path.read_text())]
    assert {path.name for path in found} <= {"borrowed.py", "linked_parts.py", "vector_sweep.py"}
    assert sum(len(path.read_text().splitlines()) for path in found) <= 300


def folders():
    """Return every folder of the package that holds modules, the package itself first."""
    return sorted(path.parent for path in SOURCE.rglob("__init__.py"))


def modules(folder):
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


@pytest.mark.parametrize(
    "folder", folders()[1:], ids=lambda path: path.relative_to(SOURCE).as_posix()
)
def test_a_folder_lists_its_files_and_folders(folder):
    words = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()), clean=False)
    listed = re.findall(r"^    (\w+/?) +\S", words.partition("\nFiles\n")[2], re.MULTILINE)
    inner = {f"{path.name}/" for path in folders() if path.parent == folder}
    assert sorted(listed) == sorted(modules(folder) | inner)


def test_folders_are_small_and_of_two_levels_and_their_files_have_names_of_their_own():
    assert len(modules(SOURCE)) <= 8
    names = Counter()
    for folder in folders():
        assert len(folder.relative_to(SOURCE).parts) <= 2, folder
        assert len(modules(folder)) <= 16, folder
        names.update(modules(folder))
    studies = modules(SOURCE / "experiments" / "studies")  # a study has the name of what it studies
    assert {name for name, count in names.items() if count > 1} <= studies


def test_tests_lie_in_folders_of_the_names_of_those_they_test():
    known = {path.relative_to(SOURCE).as_posix() for path in folders()}
    for path in (ROOT / "tests").rglob("test_*.py"):
        home = path.parent.relative_to(ROOT / "tests").as_posix()
        assert home == "package" or home in known, path


def test_there_are_at_most_ten_layers_and_every_room_is_in_one():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert len(contract["layers"]) <= 10
    assert contract["exhaustive"]


def test_the_architecture_is_one_screen_and_names_every_room():
    lines = (ROOT / "ARCHITECTURE.md").read_text().splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 120
    rooms = {f"{path.name}/" for path in folders() if path.parent == SOURCE}
    assert {line.split("`")[1] for line in lines if re.match(r"\| `\w+/` ", line)} == rooms


def test_lowest_versions_promised_are_those_tested():
    """`make test-lowest` installs the lower bound of every package that the tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(each for key in TESTED for each in extras[key])]
    lock = (ROOT / "requirements-lowest.lock").read_text()
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE))
    bounds = [each.split(">=") for each in wanted if ">=" in each]
    assert len(bounds) > 15
    for name, bound in bounds:
        least = re.split("[,;]", bound)[0]
        assert f"{locked[name]}.".startswith(f"{least}."), name


def test_every_public_name_is_there_and_documented():
    for name in noisewise.__all__:
        thing = getattr(noisewise, name)
        assert name in ("__version__", "LINKS") or thing.__doc__, name
    assert set(noisewise.__all__) <= set(dir(noisewise))
    with pytest.raises(AttributeError, match="nothing"):
        noisewise.nothing  # noqa: B018


def test_rooms_know_their_algorithms_and_states_are_not_public():
    assert noisewise.bandits.OFUL is noisewise.OFUL
    assert noisewise.regression.Ridge is noisewise.Ridge
    with pytest.raises(AttributeError, match=r"'noisewise\.bandits' has no attribute 'Ridge'"):
        noisewise.bandits.Ridge  # noqa: B018
    assert not [name for name in noisewise.__all__ if name.endswith("State")]


def test_listing_names_imports_nothing_heavy():
    words = "import sys, noisewise; assert noisewise.POLICIES; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", words], check=True)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path):
    subprocess.run([sys.executable, path], check=True, capture_output=True, cwd=path.parent)


def test_markdown_links_point_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"
