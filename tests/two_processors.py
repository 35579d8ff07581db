"""Runs studies as two processors would, and compares: python tests/two_processors.py OUT [WORDS]

The words are those of `noisewise reproduce`. The second processor is one of 2004: OpenBLAS, numpy
and compiled code use no instruction that is younger.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from personalities import environment


def reproduce(out, words, variables):
    """Run studies; return their summaries by name."""
    command = [sys.executable, "-c", "from noisewise.cli import main; main()", "reproduce", *words]
    done = subprocess.run(
        [*command, "--out", str(out)], env={**os.environ, **variables},
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {path.stem: json.loads(path.read_text()) for path in sorted(Path(out).glob("*.json"))}


def compare(out, words):
    """Yield (study, decisions, verdicts equal, digests equal) of this processor and the old one."""
    out = Path(out)
    here = reproduce(out / "here", words, {})
    there = reproduce(out / "old", words, environment("prescott", out / "cache"))
    assert here.keys() == there.keys()
    for name, one in here.items():
        other = there[name]
        assert one["machines"] != other["machines"], "both ran as the same processor"
        judged = (
            one["holds"] == other["holds"] and one["measured"].keys() == other["measured"].keys()
        )
        yield name, one["decisions"], judged, one["digest"] == other["digest"]


if __name__ == "__main__":
    failed = 0
    for name, decides, judged, same in compare(sys.argv[1], sys.argv[2:]):
        print(f"{name:<18}verdicts {'equal' if judged else 'DIFFER':<8}", end="")
        print(f"digests {'equal' if same else 'differ'}{', decides' if decides else ''}")
        failed += not judged or not (same or decides)
    sys.exit(failed > 0)
