"""Commands that install something, on pages and in messages, can work: no index has noisewise."""

import re
import tomllib

import pytest
from places import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
PAGES = [
    *ROOT.glob("*.md"),
    *(p for p in (ROOT / "docs").rglob("*") if p.suffix in (".md", ".rst", ".py")),
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "benchmarks").rglob("*.py"),
    *(ROOT / "examples").rglob("*.py"),
]
COMMAND = re.compile(
    r"\b(?:pip|pipx|uv|conda|mamba) (?:pip )?(?:install|add)((?: +(?:'[^']*'|[^\s`'\";)]+))+)"
)
HINT = re.compile(r"\binstall\(['\"](\w*)['\"]\)")  # noisewise.support.supported
OURS = re.compile(r"noisewise\b(?!/)")


def wrong(text):
    """Return the commands that would ask an index for noisewise, or for an extra there is not."""
    found = []
    for command in COMMAND.finditer(text):
        words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command[1])]
        what = next((word for word in words if not word.startswith("-")), "")
        extras = re.findall(r"^\.\[([\w,]*)\]$", what)
        unknown = {each for part in extras for each in part.split(",")} - {*EXTRAS}
        if OURS.match(what) or unknown:
            found.append(command[0])
    return found + [hint[0] for hint in HINT.finditer(text) if hint[1] not in EXTRAS]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_page_or_message_names_a_command_that_cannot_work(page):
    assert not wrong(page.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "pip install noisewise", "`pip install 'noisewise[river]'`", "pip install -U noisewise==1",
        "uv add noisewise", "uv pip install noisewise", "RUN pip install noisewise && true",
        "pip install '.[rivers]'", "pip install '.[data,rivers]'", "{install('rivers')}",
    ],
)  # fmt: skip
def test_such_commands_are_found(text):
    assert wrong(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install .", "pip install '.[data,river]' in a checkout of noisewise",
        "pip install --no-deps obp==0.4.1", "pip install /noisewise", "install('studies')",
    ],
)  # fmt: skip
def test_others_are_left_alone(text):
    assert not wrong(text)


def test_there_are_commands_to_check():
    texts = [page.read_text() for page in PAGES]
    assert sum(len(COMMAND.findall(text)) for text in texts) >= 5
    assert sum(len(HINT.findall(text)) for text in texts) >= 8
