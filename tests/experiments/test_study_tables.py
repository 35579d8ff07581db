"""The table of a study, written and summarised without being in memory."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from noisewise.experiments import digest, moments, parts, tables
from noisewise.experiments.studies import figure2, figure3, lower_bound

RNG = np.random.default_rng


def rows(cell, trials):
    """Rows of cells that differ in their columns and types."""
    made = []
    for trial in trials:
        rng = RNG([cell, trial])
        for rounds in (1, 10):
            row = {"world": f"w{cell}", "rounds": rounds, "regret": rng.normal() * 10.0**cell}
            if cell == 0:
                row |= {"missed": bool(rng.random() < 0.5), "hits": int(rng.integers(9))}
            if cell == 1:
                row |= {"missed": None, "seconds": rng.random()}
            made.append(row | {"trial": trial, "_cell": cell})
    return made


def held(folder, size, trials=1100):
    place = folder / str(size) / "0123456789abcdef"
    place.mkdir(parents=True)
    for cell in (0, 1, 2):
        for run in parts.runs(list(range(trials)), size):
            parts.keep(place, cell, run, parts.content_of(rows(cell, run)))
    return parts.read(place, trials, pytest.fail)


@pytest.fixture(scope="module")
def whole():
    return pd.concat([pd.DataFrame(rows(cell, range(1100))) for cell in (0, 1, 2)])


def test_chunks_are_the_table_however_it_was_run(tmp_path, whole):
    """Batches of 300 and 700 trials cross the edges of chunks; digest as of the whole table."""
    found = []
    for size in (300, 700):
        kept, path = held(tmp_path, size), tmp_path / f"{size}.parquet"
        chunks = list(kept.chunks())
        assert [len(each) for each in chunks] == [2048, 152] * 3
        key = ["_cell", "trial", "rounds"]
        pd.testing.assert_frame_equal(
            pd.concat(chunks, ignore_index=True), whole.reset_index(drop=True), check_dtype=False
        )
        assert kept.table[key].equals(kept.table[key].sort_values(key, kind="stable"))
        found.append(tables.write(kept, path, ["seconds"]))
        assert found[-1][0] == digest.of_table(kept.table.drop(columns="seconds"))
        pd.testing.assert_frame_equal(found[-1][1], kept.table.drop(columns="_cell"))
        again = pd.read_parquet(path).replace({None: np.nan})
        pd.testing.assert_frame_equal(again, found[-1][1].replace({None: np.nan}))
    assert found[0][0] == found[1][0]
    assert "hits" in digest_columns(kept.table)  # missing elsewhere: numbers, not words


def digest_columns(table):
    whole = digest.Digest()
    whole.add(table)
    return list(whole.largest)


def test_moments_of_parts_are_those_of_the_whole(whole):
    cuts = np.array_split(np.arange(len(whole)), [3, 4, 1000, 5000])
    keys, values = ("world", "rounds"), ("regret", "seconds", "hits")
    lines = moments.joined([moments.of(whole.iloc[cut], keys, values) for cut in cuts])
    grouped = whole.groupby(list(keys), sort=False)
    for value in values:
        column = grouped[value]
        exact = {"count": column.count(), "mean": column.mean(), "max": column.max()}
        for name, series in exact.items():
            np.testing.assert_allclose(lines[value][name], series, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(moments.error(lines[value]), column.sem(), rtol=1e-12)
    assert list(lines.index) == list(grouped.size().index)
    assert moments.trials(lines["regret"]) == 1100


@pytest.mark.parametrize("study", [figure2, figure3, lower_bound])
def test_summaries_by_chunk_are_those_of_all_trials(study):
    """Two and three trials apart, against all five at once."""
    rows = [
        {**row, "trial": trial}
        for place, cell in enumerate(study.cells(60))
        for trial in range(5)
        for row in study.data(cell, RNG([place, trial]))
    ]
    table = pd.DataFrame(rows)
    first = table["trial"] < 2
    lines = moments.joined([study.condense(table[first]), study.condense(table[~first])])
    once = study.numbers(study.condense(table))
    again = study.numbers(lines)
    pd.testing.assert_frame_equal(again, once.loc[again.index], rtol=1e-9, atol=1e-12)


GROWTH = """
import json, resource, sys
from pathlib import Path
import numpy as np, pandas as pd
from noisewise.experiments.studies import figure3
from noisewise.experiments import moments, parts, tables
folder, trials = Path(sys.argv[1]), int(sys.argv[2])
rng, cells = np.random.default_rng(0), figure3.cells(figure3.ROUNDS)
if not folder.exists():
    folder.mkdir(parents=True)
    for cell, setting in enumerate(cells):
        at = [(T, setting["dimension"], s2) for s2 in figure3.VARIANCES for T in figure3.ROUNDS]
        names = ["rounds", "dimension", "variance"]
        for run in parts.runs(list(range(trials)), 2000):
            n = len(run)
            frame = pd.DataFrame(np.tile(at, (n, 1)), columns=names)
            frame["regret"], frame["mean_regret"] = rng.normal(size=(2, len(frame))) + 9
            frame["trial"], frame["_cell"] = np.repeat(run, len(at)), cell
            parts.keep(folder, cell, run, parts.content_of(frame))
    sys.exit()
held = parts.read(folder, trials, print)
digest, lines = tables.write(held, folder.parent / "table.parquet", (), figure3.condense)
found = figure3.holds(lines)
figure3.plot(lines)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
print(json.dumps({"rows": len(cells) * 9 * trials, "MiB": peak, "claims": len(found)}))
"""


@pytest.mark.slow
def test_ten_million_rows_are_summarised_in_little_memory(tmp_path):
    """111,112 trials of figure-3; the table alone takes 480 MB, a hundredth of it is the base."""
    peaks = []
    for trials in (1112, 111_112):
        place = tmp_path / str(trials) / "0123456789abcdef"
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", GROWTH, place, str(trials)], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        print(found)
        assert found["claims"] == 5
        peaks.append(found["MiB"])
    assert found["rows"] >= 10_000_000
    assert Path(tmp_path / "111112" / "table.parquet").stat().st_size > 100 * 2**20
    assert peaks[1] - peaks[0] < 150
