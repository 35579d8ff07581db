"""The command line. Heavy modules are imported inside the commands, so that help is instant."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from . import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="noisewise", message="%(prog)s %(version)s")
def main() -> None:
    """Online regression and bandits for observations of unequal noise."""


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--trials", type=click.IntRange(1), help="Trials a cell; the study's own by default.")
@click.option("--rounds", type=click.IntRange(2), help="Replaces the study's horizons.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--jobs", type=click.IntRange(1), default=lambda: os.cpu_count() or 1, help="Processes."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("results"), show_default=True)
@click.option("--list", "listing", is_flag=True, help="List the studies and stop.")
def reproduce(
    names: tuple[str, ...],
    trials: int | None,
    rounds: int | None,
    seed: int,
    jobs: int,
    out: Path,
    listing: bool,
) -> None:
    """Run the studies (all by default) and write tables, figures and a page.

    An interrupted run continues where it stopped; more trials reuse those that are there.
    """
    from .experiments import EXPERIMENTS

    if listing:
        for name in EXPERIMENTS:
            click.echo(name)
        return
    for name in names:
        if name not in EXPERIMENTS:
            raise click.UsageError(f"no study {name!r}; there are {', '.join(EXPERIMENTS)}")
    _writable(out)
    try:
        report = import_module("noisewise.report")
        runner = import_module("noisewise.experiments.runner")
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"studies need {error.name}; install them with: pip install 'noisewise[studies]'"
        ) from None
    for name in names or EXPERIMENTS:
        run = runner.Run(name, out, trials, rounds, seed, jobs)
        try:
            summary = run.execute()
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        except RuntimeError as error:
            raise click.ClickException(str(error)) from None
        for claim, held in summary["holds"].items():
            mark = click.style("holds", fg="green") if held else click.style("FAILS", fg="red")
            click.echo(f"{name}: {mark}  {claim}")
    click.echo(f"page: {report.write(out)}")


def _writable(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".write"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise click.UsageError(f"--out {out} can't be written ({error.strerror})") from None


@main.command()
def info() -> None:
    """Print versions, links, algorithms and studies."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from .experiments import EXPERIMENTS
    from .links import LINKS
    from .regression import REGRESSORS

    click.echo(f"noisewise {__version__}, python {platform.python_version()}")
    for package in ("numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib", "joblib"):
        try:
            click.echo(f"  {package} {version(package)}")
        except PackageNotFoundError:
            click.echo(f"  {package} not installed")
    click.echo(f"links       {', '.join(LINKS)}")
    click.echo(f"regressors  {', '.join(REGRESSORS)}")
    click.echo(f"studies     {', '.join(EXPERIMENTS)}")


@main.command()
@click.argument("target", metavar="MODULE:NAME")
def check(target: str) -> None:
    """Check your own link or regressor, an object NAME in a Python MODULE."""
    from . import checks

    thing = _find(target)
    try:
        named = list(checks.yield_checks(thing))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    failed = 0
    for name, test in named:
        try:
            test()
            click.echo(f"{click.style('pass', fg='green')}  {name}")
        except (AssertionError, ValueError, TypeError, AttributeError, LookupError) as error:
            failed += 1
            sentence = str(error) if isinstance(error, AssertionError) else repr(error)
            click.echo(f"{click.style('FAIL', fg='red')}  {name}: {sentence}")
    click.echo(f"{len(named) - failed} passed, {failed} failed")
    if failed:
        sys.exit(1)


def _find(target: str) -> Any:
    module, _, name = target.partition(":")
    if not module or not name:
        raise click.UsageError(f"{target!r} is not of the form MODULE:NAME")
    sys.path.insert(0, os.getcwd())
    try:
        home = import_module(module)
    except ImportError as error:
        raise click.UsageError(f"can't import {module!r}: {error}") from None
    if not hasattr(home, name):
        raise click.UsageError(f"module {module!r} has no {name!r}")
    thing = getattr(home, name)
    return thing() if isinstance(thing, type) else thing
