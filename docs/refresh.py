"""Figures, verdicts and tables of studies, for the pages: python docs/refresh.py results"""

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from noisewise.experiments import EXPERIMENTS

PICTURES = Path(__file__).parent / "pictures"


def shrink(svg: str) -> str:
    """Return the figure with coordinates of two decimals, short names of glyphs, no indents."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"^ +", "", svg.replace("DejaVuSans-", "D"), flags=re.MULTILINE)
    paths = re.compile(r'(?<= )(d|x|y|points)="[^"]*"|translate\([^)]*\)')
    number = re.compile(r"-?\d+\.\d{3,}")
    return paths.sub(lambda p: number.sub(lambda n: f"{float(n[0]):.2f}", p[0]), svg)


def everyone(table: pd.DataFrame) -> list[dict[str, object]]:
    """Return a line a world and policy: mean regret at the end, its standard error, the worst
    seed's, and the median over trials of the microseconds per decision."""
    last = table[table["rounds"] == table["rounds"].max()]
    grouped = last.groupby(["world", "policy"], sort=False)
    lines = grouped["regret"].agg(["mean", "sem", "max"])
    lines["microseconds"] = grouped["microseconds"].median()
    return json.loads(lines.reset_index().to_json(orient="records", double_precision=4))


def trials(run: dict[str, str]) -> int:
    """Return the trials of a run that a page shows."""
    words = run["command"].split()
    return int(words[words.index("--trials") + 1])


def main(results: Path) -> None:
    """Write picture, verdicts and table of every study that was run.

    A run of all policies goes to the page of the field, the study keeps that of the usual ones. A
    page keeps a larger run than the one given; delete its file to replace it.
    """
    for name in EXPERIMENTS:
        if not (results / f"{name}.json").exists():
            continue
        run = json.loads((results / f"{name}.json").read_text())
        if "--policies all" in run["command"]:
            lines = everyone(pd.read_parquet(results / f"{name}.parquet"))
            kept = {key: run[key] for key in ("command", "trials", "holds", "measured")}
            text = json.dumps(kept | {"lines": lines}, indent=1)
            (PICTURES / "field.json").write_text(f"{text}\n")
            print(f"field: {len(lines)} lines")
            continue
        shown = PICTURES / f"{name}.json"
        if shown.exists() and trials(json.loads(shown.read_text())) > run["trials"]:
            print(f"{name}: the page keeps its larger run")
            continue
        kept = {key: run[key] for key in ("command", "holds", "measured", "numbers")}
        when = datetime.fromtimestamp((results / f"{name}.json").stat().st_mtime, UTC)
        kept["date"] = f"{when:%Y-%m-%d}"
        shown.write_text(f"{json.dumps(kept, indent=1)}\n")
        picture = shrink((results / f"{name}.svg").read_text())
        (PICTURES / f"{name}.svg").write_text(picture)
        print(f"{name}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
