"""Every message and note of `noisewise fit` and `noisewise predict`, word by word, once."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from noisewise.cli import main
from noisewise.report import sentences
from noisewise.tabular import predict
from noisewise.tabular.choosing import Options
from noisewise.tabular.fitting import fit

RNG = np.random.default_rng(0)
N = 60
TABLE = pd.DataFrame(
    {
        "Area": RNG.normal(70, 20, N).round(1),
        "rooms": RNG.integers(1, 6, N),
        "n": RNG.integers(1, 9, N),
        "k": 1,
        "years": RNG.uniform(1, 2, N).round(2),
        "city": RNG.choice(["Roma", "Bari"], N),
    }
)
TABLE["rent"] = (9 * TABLE["Area"] + 30 * TABLE["rooms"] + RNG.normal(0, 60, N)).round()
SMALL = "--features", "Area,rooms"


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    TABLE.to_csv("data/f.csv", index=False)


def said(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


COLUMNS = "'Area', 'rooms', 'n', 'k', 'years', 'city', 'rent'"
ERRORS = {
    (): "say what to predict: --target COLUMN, or --events COLUMN --trials COLUMN",
    ("--target", "rent", "--events", "k"): (
        "--target and --events both say what to predict; drop one"
    ),
    ("--events", "k"): "--events was passed without --trials; pass both, or --target",
    ("--target", "k", "--trials", "n"): (
        "--trials was passed without --events; pass both, or --target"
    ),
    ("--events", "k", "--trials", "n", "--family", "poisson"): (
        "--events and --trials are for --family binomial, not poisson; drop --family"
    ),
    ("--events", "k", "--trials", "n", "--success", "1"): (
        "--success is for a --target of words, not for --events; drop one"
    ),
    ("--events", "k", "--trials", "n", "--weight", "rooms"): (
        "--trials are the weights; drop --weight"
    ),
    ("--target", "rent", "--success", "1"): "--success is for --family binomial; add that",
    ("--target", "rent", "--exposure", "years"): "--exposure is for counts; add --family poisson",
    ("--target", "k", "--offset", "n", "--family", "binomial"): (
        "--offset is for --family gaussian and poisson; shares take none"
    ),
    ("--target", "rent", "--noise", "likelihood"): (
        "--noise likelihood is for --family binomial and poisson; leave it out"
    ),
    ("--target", "rent", "--weight", "rent"): (
        "--weight and --target are both 'rent'; drop one"
    ),
    ("--target", "rent", "--features", "rent"): (
        "--features holds 'rent', which is the --target too; drop one"
    ),
    ("--target", "rent", "--features", "n", "--categorical", "city"): (
        "--categorical holds 'city', which is not among the features"
    ),
    ("--target", "rnet"): (
        "--target names the column 'rnet', which data/f.csv does not have; did you mean 'rent'?"
    ),
    ("--target", "rent", "--features", "AREA"): (
        "--features names the column 'AREA', which data/f.csv does not have; did you mean 'Area'?"
    ),
    ("--target", "price"): (
        f"--target names the column 'price', which data/f.csv does not have; its columns are "
        f"{COLUMNS}"
    ),
    ("--target", "rent"): (
        "data/f.csv can't be used as it is:\n  column 'city' holds text ('{first}' in row 1); add "
        "--categorical 'city', or leave it out (--features)\nRows are counted from 1, without the "
        "line of column names."
    ),
    ("--target", "rent", "--family", "binomial", *SMALL): (
        "data/f.csv can't be used as it is:\n  the target 'rent' goes from {low:g} to {high:g}; "
        "--family binomial takes 0 and 1, shares with the trials as --weight, or --events and "
        "--trials"
    ),
    ("--events", "n", "--trials", "years", *SMALL): (
        "data/f.csv can't be used as it is:\n  the number of trials 'years' must be whole"
    ),
    ("--events", "rent", "--trials", "n", *SMALL): (
        "data/f.csv has {rent:g} 'rent' in {n:g} 'n'; events can't exceed trials"
    ),
    ("--target", "rent", "--features", "k"): (
        "every feature of data/f.csv is constant; nothing can be learnt"
    ),
}  # fmt: skip


@pytest.mark.parametrize("options", ERRORS, ids=" ".join)
def test_what_is_refused(options):
    done = said("fit", "data/f.csv", *options)
    rent = TABLE["rent"]
    words = ERRORS[options].format(
        first=TABLE["city"][0], low=rent.min(), high=rent.max(), rent=rent[0], n=TABLE["n"][0]
    )
    assert done.exit_code == 2
    assert done.output.partition("Error: ")[2] == f"{words}\n"
    assert not Path("f-fit").exists()


TARGET, SHARES = ("--target", "y"), ("--events", "y", "--trials", "x")
COUNTS = "--target", "y", "--family", "poisson", "--exposure", "x"
FILES = [
    ("y,x,y\n1,2,3\n", TARGET, "data/g.csv has 2 columns named 'y'; rename or remove one"),
    ("y,x\n", TARGET, "data/g.csv has column names but no rows; pass a file with rows"),
    ("y\n1\n2\n", TARGET, "data/g.csv has no column besides 'y'; features are missing"),
    (
        "y,x\n1,2\n,3\n",
        (*TARGET, "--drop-missing"),
        "data/g.csv has 1 complete row; at least 2 are needed",
    ),
    (
        "y,z,x\n1,2,0\n2,1,-1\n",
        COUNTS,
        "data/g.csv can't be used as it is:\n  the exposure 'x' must be above 0 (it goes down to "
        "-1)",
    ),
    (
        "y,z,x\n1,2,1e300\n2,1,1e-200\n",
        COUNTS,
        "data/g.csv can't be used as it is:\n  the exposure 'x' goes to 1e+300, too large to "
        "compute with; rescale it\n  the exposure 'x' goes down to 1e-200, too small to compute "
        "with; rescale it",
    ),
    (
        "y,z,x\n1,0,1\n-2,1,1\n",
        SHARES,
        "data/g.csv can't be used as it is:\n  the number of events 'y' falls below 0 (-2)",
    ),
    (
        "y,z,x\n1,0,1\n0,1,-3\n",
        SHARES,
        "data/g.csv can't be used as it is:\n  the number of trials 'x' falls below 0 (-3)",
    ),
]


@pytest.mark.parametrize(("text", "options", "words"), FILES)
def test_files_that_are_refused(text, options, words):
    Path("data/g.csv").write_text(text)
    done = said("fit", "data/g.csv", *options)
    assert done.exit_code == 2
    assert done.output.partition("Error: ")[2] == f"{words}\n"


def test_two_columns_of_a_parquet_file_have_one_name():
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    ones = pa.array([1.0, 2.0, 3.0])
    pq.write_table(pa.Table.from_arrays([ones, ones, ones], ["x", "x", "y"]), "data/g.parquet")
    done = said("fit", "data/g.parquet", "--target", "y")
    assert done.exit_code == 2
    assert "Error: data/g.parquet has 2 columns named 'x'; rename or remove one\n" in done.output


def made(frame, **options):
    frame.to_csv("data/g.csv", index=False)
    return fit(Path("data/g.csv"), Options(**options))


def test_notes_on_columns():
    days = pd.date_range("2024-01-01", periods=N)
    frame = pd.DataFrame(
        {
            "nr": range(1, N + 1),
            "user_id": RNG.permutation(1000)[:N],
            "name": [f"p{i}" for i in range(N)],
            "city": TABLE["city"],
            "k": 1,
            "day": days.strftime("%d.%m.%Y"),
            "due": days[::-1].strftime("%Y-%m-%d"),
            "x": TABLE["Area"].where(TABLE.index != 7),
            "y": TABLE["rent"],
        }
    )
    found = made(frame, target="y", categorical=["city"], drop_missing=True)
    common = TABLE["city"].drop(7).mode()[0]
    assert list(found.column_notes) == [
        "Left out: 'nr' numbers the rows; to use it, name it in --features.",
        "Left out: 'user_id' identifies the rows by its name: whole numbers, all different; to use "
        "it, name it in --features.",
        "Left out: 'name' identifies the rows: words, all different.",
        f"'city' has 2 levels, compared with {common!r}, the most frequent.",
        "Left out: 'k' is constant, so it explains nothing.",
        "'day' counts as days since 1970-01-01, read as day.month.year.",
        "'due' counts as days since 1970-01-01.",
    ]
    assert found.notes == ("1 of 60 rows lacks a value: left out.",)
    assert found.order == (
        "Rows are in order of 'day': errors are those of predicting later rows from earlier ones. "
        "If that order means nothing, add --shuffle 0."
    )
    assert sentences.columns(found) == "4 columns gave 4 features, 4 were left out."
    assert [use.what for use in found.uses] == [
        "target", "left out: numbers the rows",
        "left out: identifies the rows by its name: whole numbers, all different",
        "left out: identifies the rows: words, all different",
        f"category of 2 levels, compared with {common!r}", "left out: constant",
        "date, days since 1970-01-01, read as day.month.year", "date, days since 1970-01-01",
        f"number from {TABLE['Area'].drop(7).min():.4g} to {TABLE['Area'].drop(7).max():.4g}",
    ]  # fmt: skip


def test_notes_on_the_order():
    frame = TABLE[["Area", "rooms", "rent"]]
    shuffle = "add --shuffle 0."
    assert made(frame, target="rent").order == ""
    assert made(frame, target="rent", shuffle=4).order == "Rows were shuffled with seed 4."
    assert made(frame.sort_values("rent"), target="rent").order == (
        "Rows are sorted by the target (rent is rising): each was predicted from rows unlike it, "
        "so errors one step ahead do not say how well new rows are predicted. To measure that, "
        f"{shuffle}"
    )
    dated = frame.sort_values("rent", ascending=False).assign(year=range(1900, 1960))
    assert made(dated, target="rent").order == (
        "Rows are in order of 'year', in which rent is falling all along: errors are those of "
        f"predicting later rows from earlier ones. If that order means nothing, {shuffle}"
    )
    walk = frame.assign(rent=np.sin(np.arange(N) / 5).round(3))
    assert made(walk, target="rent").order == (
        "Successive labels are alike (correlation 0.97): rows are taken to be in order of time. If "
        f"they are sorted or grouped by something else, {shuffle}"
    )


def test_notes_on_a_fit():
    ones = TABLE[["Area", "rooms"]].assign(y=np.arange(N) % 2)
    assert made(ones, target="y").notes == ("'y' is always 0 or 1: consider --family binomial.",)
    apart = ones.assign(y=1 * (TABLE["Area"] > 70))
    assert made(apart, target="y", family="binomial").notes == (
        "The features separate the labels, or labels are all alike, or rows are too few: without "
        "ridge no coefficient is finite, and textbook intervals are infinite. Predictions use a "
        "ridge.",
    )
    few = made(TABLE[["Area", "rooms", "rent"]][:3], target="rent")
    assert few.notes == ()
    assert "3 rows leave nothing to estimate the noise from" in " ".join(few.summary.notes)
    wild = TABLE[["Area", "rooms"]].assign(y=50 * (np.arange(N) % 2))
    doubts = made(wild, target="y", family="poisson", noise="likelihood").doubts
    assert len(doubts) == 1
    assert doubts[0].endswith("and will miss. Fit with --noise auto.")


def test_levels_that_are_equally_frequent_are_said_to_be():
    even = TABLE[["Area", "rent"]].assign(side=np.tile(["left", "right"], N // 2))
    assert made(even, target="rent", categorical=["side"]).column_notes == (
        "'side' has 2 levels, compared with 'left', none is more frequent.",
    )


def test_rows_without_trials_are_said_to_have_none():
    none = TABLE[["Area"]].assign(n=np.where(np.arange(N) == 3, 0, 5), k=np.arange(N) % 3)
    none.loc[3, "k"] = 0
    assert made(none, events="k", trials="n").notes == (
        "1 of 60 rows lacks a value or has 0 trials: left out.",
    )


def test_predictions_repeat_what_contradicts_the_likelihood():
    """And a mean that is no count is not said to be outside the interval of a new count."""
    wild = TABLE[["Area", "rooms"]].assign(y=50 * (np.arange(N) % 30 == 0))
    wild.to_csv("data/wild.csv", index=False)
    done = said("fit", "data/wild.csv", "--target", "y", "--family", "poisson", "--noise",
                "likelihood")  # fmt: skip
    assert done.exit_code == 0, done.output
    done = said("predict", "wild-fit", "data/wild.csv", "--kind", "observation", "--out", "p.csv")
    first, *others = done.stderr.splitlines()
    assert re.fullmatch(
        r"note: labels scatter \S+ times as much as poisson counts would; these intervals assume "
        "they do not and will miss. Fit with --noise auto",
        first,
    )
    assert others == ["note: the interval of a new label holds at one time"]
    with pytest.warns(UserWarning, match="and will miss"):
        found = predict("wild-fit", wild)
    assert list(found) == ["prediction", "lower", "upper"]
    assert "note" in found.attrs


def test_notes_on_predictions():
    frame = TABLE.assign(y=RNG.poisson(TABLE["years"]))
    frame.to_csv("data/g.csv", index=False)
    done = said("fit", "data/g.csv", "--target", "y", "--family", "poisson", "--exposure", "years",
                "--features", "Area,city", "--categorical", "city")  # fmt: skip
    assert done.exit_code == 0, done.output
    new = frame[["Area", "city"]][:5].copy()
    new.loc[1, "city"] = "Pisa"
    new.loc[2, "Area"] = np.nan
    new.to_csv("data/new.csv", index=False)
    done = said("predict", "g-fit", "data/new.csv", "--out", "p.csv")
    assert done.stdout == "predictions: p.csv, 5 rows\n"
    assert done.stderr.splitlines() == [
        "note: 2 rows lack a value, or have an unknown one: left empty",
        "note: data/new.csv has no column 'years': predictions are per unit of it",
        "note: column 'city': 'Pisa' (row 2) was not there when fitting",
    ]
    frame.assign(years=0).to_csv("data/new.csv", index=False)
    done = said("predict", "g-fit", "data/new.csv")
    assert done.exit_code == 2
    assert done.output.endswith(
        "data/new.csv can't be used as it is:\n  column 'years' must be above 0; it goes to 0\n"
    )
    frame.assign(years=1e90).to_csv("data/new.csv", index=False)
    done = said("predict", "g-fit", "data/new.csv")
    assert done.exit_code == 2
    assert done.output.endswith(
        "  the exposure 'years' goes to 1e+90, too large to compute with; rescale it\n"
    )
