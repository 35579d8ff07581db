"""The commands for people with a file: fit, predict and evaluate. Heavy imports are inside."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from .storage import files
from .support.printing import clean, count_of
from .support.shell_words import in_shell_words, refusal
from .support.supported import install


def _names(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """Return the names in comma-separated lists; an option may be repeated."""
    return [name for each in value for name in map(str.strip, each.split(",")) if name]


def _tabular(name: str) -> ModuleType:
    """Import what reads tables, or say how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"files need {error.name}; install it with: {install('studies')}"
        ) from None


FILE = click.Path(path_type=Path)
# columns of what `noisewise loops export` writes that are not of the context
EXPORTED = ["event_id", "at", "group", "slot", "trials", "sigma"]
DELTA = click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Probability that an interval may miss.",
)


@click.command(short_help="Fit a model to a CSV or Parquet file.")
@click.argument("file", type=FILE)
@click.option("--target", metavar="COLUMN", help="Column to predict.")
@click.option("--events", metavar="COLUMN", help="In place of --target: events among --trials.")
@click.option("--trials", metavar="COLUMN", help="Number of trials of --events.")
@click.option(
    "--family",
    type=click.Choice(["gaussian", "binomial", "poisson"]),
    show_default="gaussian, with --trials binomial",
    help="Numbers; 0 and 1, or shares of --weight trials; or counts.",
)
@click.option(
    "--success", metavar="VALUE", help="For a target of words: the value that counts as 1."
)
@click.option("--weight", metavar="COLUMN", help="Inverse noise variance, or number of trials.")
@click.option("--exposure", metavar="COLUMN", help="Of counts: time, area or people they are of.")
@click.option("--offset", metavar="COLUMN", help="Added to the score: mean, or log mean of counts.")
@click.option(
    "--noise",
    type=click.Choice(["auto", "likelihood", "asymptotic"]),
    default="auto",
    show_default=True,
    help="Of shares and counts, what intervals assume: dispersion estimated and at least 1, none, "
    "or any.",
)
@click.option(
    "--nonlinear",
    is_flag=True,
    help="Predict also from functions of the columns; effects and intervals stay linear.",
)
@click.option(
    "--features",
    multiple=True,
    callback=_names,
    metavar="A,B,...",
    help="Columns to predict from; all others if left out.",
)
@click.option(
    "--categorical",
    multiple=True,
    callback=_names,
    metavar="A,B,...",
    help="Columns of categories.",
)
@click.option("--drop-missing", is_flag=True, help="Leave out rows with missing values.")
@click.option(
    "--shuffle",
    type=click.IntRange(0),
    metavar="SEED",
    help="Learn rows in random order, for a file sorted by the target; holds them in memory.",
)
@DELTA
@click.option(
    "--out", type=FILE, metavar="DIR", help="Folder to write; FILE's name and -fit by default."
)
def fit(file: Path, out: Path | None, **asked: object) -> None:
    """Fit a model to a CSV or Parquet file, or to a folder of Parquet files.

    Prints effects with intervals, and how well each row was predicted from those before it in the
    file, compared with the running mean and a textbook fit. Writes the model of all rows, which
    does not depend on their order and which noisewise predict uses, and a page (index.html). The
    file is read twice, by chunks; a gaussian model needs no more memory for a larger file,
    unless it is nonlinear. The files of a folder are read in the order of their names.
    """
    fitting = _tabular("noisewise.tabular.fitting")
    saving = _tabular("noisewise.tabular.saving")
    report = _tabular("noisewise.report.fit")
    folder = Path(f"{file.name.split('.')[0]}-fit") if out is None else out
    try:
        found = fitting.fit(file, fitting.Options(**asked))
        folder.mkdir(parents=True, exist_ok=True)
        saving.save(folder, found.model, found.encoding)
        saving.save_page(folder, report.page(folder, found))
    except ValueError as error:
        raise click.UsageError(refusal(error)) from None
    except OSError as error:
        raise click.UsageError(f"--out {folder} can't be written ({error})") from None
    click.echo(f"{found.summary}\n")
    click.echo(f"{found.evaluation}\n")
    notes = *found.column_notes, *found.notes, *found.doubts, found.order
    for note in filter(None, notes):
        click.echo(clean(f"note: {note}"))
    click.echo(clean(f"page: {folder / 'index.html'}"))
    click.echo(clean(f"model: {folder}, for noisewise predict {folder} FILE"))


@click.command(short_help="Predict the rows of a file.")
@click.argument("model", type=FILE)
@click.argument("file", type=FILE)
@click.option(
    "--kind",
    type=click.Choice(["mean", "observation"]),
    default="mean",
    show_default=True,
    help="Intervals for the mean, or for one new label.",
)
@DELTA
@click.option(
    "--keep", multiple=True, callback=_names, metavar="A,B,...", help="Columns to copy from FILE."
)
@click.option(
    "--formulas", is_flag=True, help="Keep words as they are, also those that a spreadsheet runs."
)
@click.option("--out", type=FILE, metavar="CSV", help="File to write; standard output by default.")
def predict(
    model: Path,
    file: Path,
    kind: str,
    delta: float,
    keep: list[str],
    formulas: bool,
    out: Path | None,
) -> None:
    """Predict the rows of FILE with a MODEL that noisewise fit has written; write CSV.

    Columns are prediction, lower and upper. Columns of exposure, offset and trials that the model
    was fitted with are used where FILE has them. Rows with a missing value, or with a level that
    the model has not seen, have empty cells. Predictions stay near the range of the labels seen and
    intervals do not, so for unusual rows a prediction may lie outside its interval.

    Words of kept columns that a spreadsheet would run as a formula (they begin with = + - @, a tab
    or a line break) are written behind an apostrophe, unless --formulas is given.
    """
    saving = _tabular("noisewise.tabular.saving")
    predicting = _tabular("noisewise.tabular.predicting")
    try:
        found = predicting.Predictions(*saving.load(model), file, delta, kind, keep, formulas)
        if out is None:
            found.write(sys.stdout)
        else:

            def fill(part: Path) -> None:
                with part.open("w", encoding="utf-8", newline="") as opened:
                    found.write(opened)

            files.replace(out, fill)
    except ValueError as error:
        raise click.UsageError(refusal(error)) from None
    except BrokenPipeError:  # a reader such as head has seen enough
        sys.stdout = None
        sys.exit(0)
    except OSError as error:
        raise click.UsageError(f"--out {out} can't be written ({error})") from None
    for note in found.notes:
        click.echo(clean(f"note: {note}"), err=True)
    if out is not None:
        click.echo(f"predictions: {clean(str(out))}, {count_of(found.rows, 'row')}")


def writable(out: Path) -> None:
    """Make a folder, or say why nothing can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".write"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise click.UsageError(f"--out {out} can't be written ({error.strerror})") from None


@click.command(short_help="Estimate what other policies would have earned.")
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--action", default="action", show_default=True, metavar="COLUMN", help="Action taken."
)
@click.option(
    "--reward", default="reward", show_default=True, metavar="COLUMN", help="Reward of the action."
)
@click.option(
    "--probability",
    default="probability",
    show_default=True,
    metavar="COLUMN",
    help="Probability with which the action was taken.",
)
@click.option(
    "--estimate-probability",
    is_flag=True,
    help="For a log without probabilities: estimate them from the context.",
)
@click.option(
    "--context",
    multiple=True,
    callback=_names,
    metavar="A,B,...",
    help="Columns of the context; if left out all others, but for those that only `noisewise "
    "loops export` adds.",
)
@click.option("--policy", metavar="ACTION", help="Also report the gain of always taking ACTION.")
@click.option(
    "--reward-range",
    type=(float, float),
    metavar="LEAST MOST",
    help="Least and largest possible reward; 0 1 if all rewards are within.",
)
@DELTA
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write; LOG's name and -evaluation by default.",
)
def evaluate(
    log: Path,
    action: str,
    reward: str,
    probability: str,
    estimate_probability: bool,
    context: list[str],
    policy: str | None,
    reward_range: tuple[float, float] | None,
    delta: float,
    out: Path | None,
) -> None:
    """Estimate what other policies would have earned, from a LOG of decisions.

    LOG is a CSV or Parquet file, or one of vowpalwabbit's (.dsjson, .json or .jsonl).

    The log has one row per decision, in order of time: columns of the context, the action taken,
    its reward, and the probability with which it was taken. A column "probabilities", as an agent
    writes it, also shows which actions had probability 0.

    Compared are what was played, each single action, and the greedy policy: it takes the action
    with the largest predicted reward, by a model of the first half of the log, and is judged on the
    second half. Lines that can't be relied on are marked as unreliable, with the reason: use their
    anytime interval. Prints the table and writes a page (index.html).

    Where probabilities were not recorded, --estimate-probability fits them to the columns of the
    context. That is right if the log's policy was one fixed function of these columns, which no log
    can show.
    """
    import warnings

    page = _tabular("noisewise.report.values")
    from .evaluation.off_policy.off_policy import off_policy_value

    folder = Path(f"{log.name.split('.')[0]}-evaluation") if out is None else out
    try:
        with warnings.catch_warnings(record=True, action="always") as said:
            rows = page.read(log, action)
        if {*EXPORTED} <= {*rows.columns} and not {*EXPORTED} & {*context}:
            rows = rows.drop(columns=EXPORTED)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # in the table
            found = off_policy_value(
                rows, policy, context=context or None, action=action,
                reward=reward, probability=probability, greedy=True, reward_range=reward_range,
                estimate_probability=estimate_probability, delta=delta,
            )  # fmt: skip
        writable(folder)
        written = page.write(folder, log.name, found, f"noisewise evaluate {log}")
    except ValueError as error:
        raise click.UsageError(refusal(error)) from None
    except OSError as error:
        raise click.UsageError(f"--out {folder} can't be written ({error})") from None
    for note in said:
        click.echo(clean(f"note: {note.message}"), err=True)
    click.echo(f"{in_shell_words(found)}\npage: {clean(str(written))}")
