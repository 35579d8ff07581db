"""The commands of docs/errata.md: the quick ones print what the page says, studies exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

from noisewise.experiments import EXPERIMENTS

TEXT = (ROOT / "docs" / "errata.md").read_text()
BLOCKS = re.findall(r"```\n(.*?)```", TEXT, flags=re.DOTALL)
QUICK = [
    re.sub(r"^noisewise reproduce .*\n", "", block, flags=re.MULTILINE)
    for block in BLOCKS
    if "# -> " in block
]


def test_every_erratum_has_a_command():
    sections = re.split(r"\*\*E(\d+)\.", TEXT)
    assert sorted(map(int, sections[1::2])) == list(range(1, 17))
    assert all("```" in body for body in sections[2::2])
    for name in re.findall(r"^noisewise reproduce (\S+)", TEXT, flags=re.MULTILINE):
        assert name in EXPERIMENTS


@pytest.mark.parametrize("block", QUICK, ids=lambda block: block.split("print(")[-1][:30])
def test_quick_commands_print_what_the_page_says(block):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", block], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
    said = re.search(r"^# -> (.*)$", block, flags=re.MULTILINE)[1]
    assert said in done.stdout
