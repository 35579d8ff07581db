"""Figures, verdicts and tables of studies, for the pages: python docs/refresh.py results"""

import json
import re
import sys
from pathlib import Path

from noisewise.experiments import EXPERIMENTS

PICTURES = Path(__file__).parent / "pictures"


def shrink(svg: str) -> str:
    """Return the figure with coordinates of two decimals, a hundredth of a point."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    paths = re.compile(r'(?<= )(d|x|y|points)="[^"]*"')
    number = re.compile(r"-?\d+\.\d{3,}")
    return paths.sub(lambda p: number.sub(lambda n: f"{float(n[0]):.2f}", p[0]), svg)


def main(results: Path) -> None:
    """Write picture, verdicts and table of every study that was run."""
    for name in EXPERIMENTS:
        if not (results / f"{name}.json").exists():
            continue
        run = json.loads((results / f"{name}.json").read_text())
        kept = {key: run[key] for key in ("command", "holds", "measured", "numbers")}
        (PICTURES / f"{name}.json").write_text(f"{json.dumps(kept, indent=1)}\n")
        picture = shrink((results / f"{name}.svg").read_text())
        (PICTURES / f"{name}.svg").write_text(picture)
        print(f"{name}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
