"""Run the quick suite as if on other processors: `python tests/personalities.py host prescott`.

A personality chooses the loops of OpenBLAS, of numpy and of compiled code; what follows ``--`` goes
to pytest. Between personalities sums may differ in their last bit, what is promised may not.
"""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from numpy._core import _multiarray_umath as loops

# those that this processor has and numpy would choose beyond what it needs at least
FAST_LOOPS = [each for each in loops.__cpu_dispatch__ if loops.__cpu_features__[each]]
PERSONALITIES = {
    "host": {},
    "nehalem": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NUMBA_CPU_NAME": "x86-64-v2",
        "NUMBA_CPU_FEATURES": "",
    },
    "prescott": {
        "OPENBLAS_CORETYPE": "Prescott",
        "NUMBA_CPU_NAME": "x86-64",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": " ".join(FAST_LOOPS),
    },
}
ROOT = Path(__file__).resolve().parents[1]


def environment(name: str, cache: Path | None = None) -> dict[str, str]:
    """Return the variables of a personality, with a place of its own for compiled code."""
    if name == "host":
        return {}
    place = cache or ROOT / ".cpu_cache" / name
    return {**PERSONALITIES[name], "NUMBA_CACHE_DIR": str(place)}


def run(name: str, options: list[str]) -> tuple[bool, str]:
    """Run the suite; return whether it passed, and its last line."""
    env = {**os.environ, **environment(name)}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *options]
    line = ""
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=ROOT) as suite:
        for line in suite.stdout or ():
            print(line, end="", flush=True)
    return suite.returncode == 0, re.sub(r"^=+ | =+$", "", line.strip())


def main() -> int:
    """Run the suite under every personality named; return 0 if all pass."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    names, options = words[:at], words[at + 1 :]
    if not names or not set(names) <= set(PERSONALITIES):
        raise SystemExit(f"pass some of {', '.join(PERSONALITIES)}; passed were {names}")
    if platform.machine().lower() not in ("x86_64", "amd64") and names != ["host"]:
        raise SystemExit(f"this processor is {platform.machine()}; only 'host' runs here")
    results = {name: run(name, options) for name in names}
    for name, (_, line) in results.items():
        print(f"{name}: {line}")
    return 0 if all(passed for passed, _ in results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
