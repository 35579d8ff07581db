"""Run the sections, print one table, write the rows as JSON."""

import json
import os
import platform
import tempfile
from pathlib import Path

import click

from .processors import PROCESSORS

COLUMNS = ["section", "stream", "dim", "rounds", "what", "us", "ratio", "passes", "factors",
           "certificate", "error", "seconds", "bytes", "regret", "worst", "lead", "asked",
           "verdict"]  # fmt: skip


@click.command()
@click.argument("names", nargs=-1)
@click.option("--repeats", default=15, show_default=True, help="Rounds of interleaved timing.")
@click.option("--largest", default=1e6, show_default=True, help="Longest stream.")
@click.option(
    "--processor",
    default="host",
    show_default=True,
    type=click.Choice([*PROCESSORS]),
    help="Compile as for this kind, into a folder of its own.",
)
@click.option("--out", default="results/bench/rows.json", type=click.Path(path_type=Path))
def main(names, repeats, largest, processor, out):
    """Measure speed against the limit and against peers (all sections, or those named)."""
    with tempfile.TemporaryDirectory() as folder:
        if processor != "host":  # read when the compiler is imported
            os.environ |= {**PROCESSORS[processor], "NUMBA_CACHE_DIR": folder}
        measure(names, repeats, largest, processor, out)


def measure(names, repeats, largest, processor, out):
    from .sections import SECTIONS

    known = {section.__name__: section for section in SECTIONS}
    unknown = set(names) - set(known)
    if unknown:
        raise click.UsageError(f"no section {', '.join(unknown)}; there are {', '.join(known)}")
    rows = []
    for name in names or known:
        click.echo(f"\n{name}: {known[name].__doc__}")
        for row in known[name](repeats, largest):
            row["processor"] = processor
            rows.append(row)
            click.echo("  " + "  ".join(_show(c, row[c]) for c in COLUMNS[1:] if c in row))
    out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "cpu": platform.machine()}
    out.write_text(json.dumps({"machine": machine, "repeats": repeats, "rows": rows}, indent=1))
    missed = [row for row in rows if row.get("verdict") == "MISSED"]
    click.echo(f"\n{len(missed)} of {sum('verdict' in row for row in rows)} targets missed; {out}")


def _show(column, value):
    if column in ("dim", "rounds", "passes", "factors"):
        return f"{column} {value:>7}"
    if column in ("stream", "what"):
        return f"{value:<22}"
    if column in ("asked", "verdict"):
        return f"{value:<7}"
    return f"{column} {value:9.3g}"


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the peers: CPU time adds up over threads
    main()
