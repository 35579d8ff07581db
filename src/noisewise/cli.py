"""The command line. Heavy modules are imported inside the commands, so that help is instant."""

import os
import sys
from importlib import import_module
from pathlib import Path

import click

from . import POLICIES, REGRESSORS, __version__
from .experiments import EXPERIMENTS, Record
from .file_commands import evaluate, fit, predict, writable
from .service.commands import COMMANDS
from .support.supported import install


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="noisewise", message="%(prog)s %(version)s")
def main() -> None:
    """Online regression and bandits for observations that differ in precision."""


@main.command(short_help="Run the studies and write a page.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--trials", type=click.IntRange(1), help="Trials per setting; each study has a default."
)
@click.option(
    "--rounds", type=click.IntRange(2), help="Rounds per trial, in place of the study's own."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all draws."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    help="Number of processes; one per core by default.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run the trials on the Dask cluster at tcp://HOST:PORT.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for the results.",
)
@click.option("--list", "listing", is_flag=True, help="List the studies and stop.")
@click.option(
    "--regressor",
    "own",
    multiple=True,
    metavar="MODULE:NAME",
    help="Add your own regressor to the study regressors; may be repeated.",
)
@click.option(
    "--policy",
    "own_policies",
    multiple=True,
    metavar="MODULE:NAME",
    help="Add your own policy to the study bandits; may be repeated.",
)
@click.option(
    "--policies",
    type=click.Choice(["all"]),
    help="In the study bandits: play every policy, slow ones and special worlds included.",
)
def reproduce(
    names: tuple[str, ...],
    trials: int | None,
    rounds: int | None,
    seed: int,
    jobs: int,
    scheduler: str | None,
    out: Path,
    listing: bool,
    own: tuple[str, ...],
    own_policies: tuple[str, ...],
    policies: str | None,
) -> None:
    """Run the studies (all by default) and write tables, figures and a page.

    An interrupted run continues where it stopped, and a run with more trials reuses those already
    done. Trials of other sources or versions are kept but not used; damaged ones are run again.
    Claims are statistical: one that fails is marked and counted, and the exit code stays 0.
    """
    from time import perf_counter

    if listing:
        for name, home in EXPERIMENTS.items():
            click.echo(f"{name:<18}{_title(home)}")
        return
    for name in names:
        if name not in EXPERIMENTS:
            raise click.UsageError(f"no study {name!r}; there are {', '.join(EXPERIMENTS)}")
    for option, given, name in (
        ("--regressor", own, "regressors"),
        ("--policy", own_policies, "bandits"),
        ("--policies", policies, "bandits"),
    ):
        if given and names and name not in names:
            raise click.UsageError(f"{option} is for the study {name}; add its name")
    try:
        report = import_module("noisewise.report")
        runner = import_module("noisewise.experiments.runner")
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"studies need {error.name}; install it with: {install('studies')}"
        ) from None
    try:
        added = {
            "regressors": runner.user_algorithms("--regressor", own),
            "bandits": runner.user_algorithms("--policy", own_policies),
        }
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    writable(out)
    began, claims, undecided = perf_counter(), 0, 0
    failed = []
    try:
        for name in names or EXPERIMENTS:
            wanted = policies if name == "bandits" else None
            mine = added.get(name, ())
            run = runner.Run(name, out, trials, rounds, seed, jobs, mine, wanted, scheduler)
            if not names and (missing := run.missing_requirement):
                click.echo(f"{name}: left out, {missing}")
                continue
            summary = run.execute()
            claims += len(summary["holds"])
            undecided += len(summary["measured"]) - len(summary["holds"])
            failed += [name for held in summary["holds"].values() if not held]
            _verdicts(name, summary)
        page = report.write(out, click.echo)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(
            f"--out {out} can't be written ({error.strerror or error}); what was done is kept, the "
            "same command continues there"
        ) from None
    except RuntimeError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        click.echo("\ninterrupted; the same command continues where it stopped", err=True)
        sys.exit(130)
    click.echo(f"page: {page}")
    mark = click.style(f"{len(failed)} of {claims} claims failed", fg="red" if failed else "green")
    rest = f", {undecided} undecided" if undecided else ""
    click.echo(f"{mark}{rest}; {perf_counter() - began:.0f} s")


def _title(home: str) -> str:
    """Return the title of a study, read from its source: importing it would take a while."""
    import ast
    from importlib.util import find_spec

    spec = find_spec(home)
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TITLE":
            return str(ast.literal_eval(node.value))
    return ""


def _verdicts(name: str, summary: Record) -> None:
    words = {True: ("holds", "green"), False: ("FAILS", "red"), None: ("?", "yellow")}
    for claim, measured in summary["measured"].items():
        word, colour = words[summary["holds"].get(claim)]
        text = f"{claim} ({measured})" if measured else claim
        click.echo(f"{name}: {click.style(f'{word:<5}', fg=colour)}  {text}")


@main.command()
@click.option(
    "--link",
    default="identity",
    show_default=True,
    help="Link function; noisewise info lists them.",
)
@click.option("--dim", type=click.IntRange(1), required=True, help="Number of features.")
@click.option("--rounds", type=click.IntRange(1), required=True, help="Number of rounds.")
@click.option("--sigma", type=float, required=True, help="Standard deviation of the noise.")
@click.option("--noise-bound", type=float, help="Largest noise; sub-Gaussian noise if left out.")
@click.option(
    "--feature-bound", type=float, default=1.0, show_default=True, help="Largest norm of a row."
)
@click.option(
    "--parameter-bound",
    type=float,
    default=1.0,
    show_default=True,
    help="Largest norm of the parameter.",
)
@click.option("--ridge", type=float, help="That of the theorem by default.")
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability that a bound may fail.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bound(
    link: str,
    dim: int,
    rounds: int,
    sigma: float,
    noise_bound: float | None,
    feature_bound: float,
    parameter_bound: float,
    ridge: float | None,
    delta: float,
    as_json: bool,
) -> None:
    """Print the regret bounds of FTRL for a problem."""
    import json
    import math

    from . import theory
    from .model.glm import GLM
    from .model.noise import Bounded, SubGaussian

    try:
        glm = GLM(link, feature_bound, parameter_bound)
        noise = SubGaussian(sigma) if noise_bound is None else Bounded(noise_bound, sigma)
        if noise_bound is not None and noise_bound < sigma:
            raise ValueError(
                f"--noise-bound {noise_bound:g} is below --sigma {sigma:g}; noise within a bound "
                "has at most the bound as standard deviation"
            )
        at: Record = {"dim": dim, "horizon": rounds, "delta": delta, "ridge": ridge}
        rows = {}
        if noise_bound is None:  # the lower bound is for Gaussian noise
            rows["lower"] = glm.min_slope * theory.basis_lower_bound(
                dim,
                rounds,
                sigma=sigma / glm.max_slope,
                feature_bound=feature_bound,
                parameter_bound=parameter_bound,
            )
        rows["mean"] = theory.mean_bound(glm, noise, **at)
        rows["sharp"] = theory.sharp_bound(glm, noise, **at)
        # the paper states its theorems for the prescribed ridge only
        if ridge is None or math.isclose(ridge, glm.ridge):
            rows["repaired"] = theory.repaired_bound(glm, noise, **at)
            rows["printed"] = theory.printed_bound(glm, noise, **at)
    except (ValueError, OverflowError) as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        used = glm.ridge if ridge is None else ridge
        click.echo(json.dumps({"ridge": used, "bounds": rows}, indent=1))
        return
    proved = max(0.0, 1 - 2 * delta)
    words = {
        "lower": "lower bound on the worst-case mean regret of any method (basis design)",
        "mean": "upper bound on FTRL's mean regret",
        "sharp": f"FTRL's regret in all rounds, with probability {1 - delta:g} or more",
        "repaired": f"the paper's theorem, corrected, with probability {proved:g} or more",
        "printed": f"the paper's theorem as printed, with probability {proved:g} or more",
    }
    for name, value in rows.items():
        click.echo(f"{name:<9}{value:>12.4g}  {words[name]}")


@main.command()
def info() -> None:
    """Print versions, links, algorithms and studies."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from .model.links import LINKS

    click.echo(f"noisewise {__version__}, python {platform.python_version()}")
    for package in ("numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib", "joblib"):
        try:
            click.echo(f"  {package} {version(package)}")
        except PackageNotFoundError:
            click.echo(f"  {package} not installed")
    click.echo(f"links       {', '.join(LINKS)}")
    click.echo(f"regressors  {', '.join(REGRESSORS)}")
    click.echo(f"policies    {', '.join(POLICIES)}")
    click.echo(f"studies     {', '.join(EXPERIMENTS)}")


@main.command(short_help="Check a link, regressor, policy or environment.")
@click.argument("target", metavar="MODULE:NAME")
def check(target: str) -> None:
    """Run the public checks on a link, regressor, policy or environment of your own.

    It is the object NAME of the module MODULE, which is looked for in the current folder, too.
    """
    from . import checks

    try:
        thing = checks.find(target)
        named = list(checks.yield_checks(thing))
        waived = checks.not_promised(thing)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    failed = 0
    for name, test in named:
        try:
            test()
            click.echo(f"{click.style('pass', fg='green')}  {name}")
        except (AssertionError, *checks.FAULTS) as error:
            failed += 1
            sentence = str(error) if isinstance(error, AssertionError) else repr(error)
            click.echo(f"{click.style('FAIL', fg='red')}  {name}: {sentence}")
    for name in waived:
        click.echo(f"----  {name}: not promised")
    click.echo(f"{len(named) - failed} passed, {failed} failed")
    if failed:
        sys.exit(1)


@main.command("warm-up", short_help="Compile all kernels in advance.")
def warm_up() -> None:
    """Compile all kernels in advance, so that first calls on this machine are fast.

    The code is kept on disk, in NUMBA_CACHE_DIR if that is set, for this version and processor.
    """
    from .kernels.compiling import warm_up as kernels

    for module, compiled, found in kernels.warm_up():
        click.echo(f"{module:<12}  {compiled:>2} compiled  {found:>2} found")
    folder = kernels.kept_in()
    if folder is None:
        raise click.ClickException("nothing could be kept on disk, so every process compiles again")
    click.echo(f"kept in {folder}")


for command in (fit, predict, evaluate, *COMMANDS):
    main.add_command(command)
