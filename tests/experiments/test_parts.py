"""Parts of studies: what is damaged, swapped or of other sources is never counted."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import two_processors

import noisewise
from noisewise.experiments import EXPERIMENTS, digest, parts
from noisewise.experiments.runner import Run
from noisewise.support import provenance

RNG = np.random.default_rng


def rows(cell, trials, seed=0):
    rng = RNG([seed, cell])
    return [
        {"world": "w", "rounds": t, "regret": rng.normal(), "trial": trial, "_cell": cell}
        for trial in trials
        for t in (1, 10)
    ]


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "0123456789abcdef"
    made.mkdir()
    for cell in (0, 1):
        for trials in ([0, 1], [2]):
            parts.keep(made, cell, trials, parts.content_of(rows(cell, trials)))
    return made


def read(folder, trials=3):
    notes = []
    return parts.read(folder, trials, notes.append), notes


def test_parts_are_read_as_they_were_written(folder):
    held, notes = read(folder)
    assert not notes
    assert held.missing(0) == held.missing(1) == []
    assert held.missing(2) == [0, 1, 2]
    assert held.machines == [provenance.machine()]
    wanted = [row for cell in (0, 1) for trials in ([0, 1], [2]) for row in rows(cell, trials)]
    pd.testing.assert_frame_equal(held.table, pd.DataFrame(wanted))
    assert read(folder, 2)[0].table["trial"].max() == 1


def test_five_hundred_flipped_bits_are_noticed(folder):
    for path in folder.glob("1-*"):
        path.unlink()
    rng, whole, noticed = RNG(6), sorted(folder.iterdir()), 0
    before = {path: path.read_bytes() for path in whole}
    for _ in range(500):
        path = whole[rng.integers(len(whole))]
        content = bytearray(before[path])
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(content)
        held, notes = read(folder)
        cell, first = map(int, path.name.split("-")[:2])
        noticed += len(notes) == 1 and path.name in notes[0] and first in held.missing(cell)
        assert len(held.spans) == len(whole) - 1
        path.write_bytes(before[path])
    assert noticed == 500


def test_parts_cut_short_are_noticed(folder):
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            _, notes = read(folder)
            assert len(notes) == 1
            assert path.name in notes[0]
            assert not path.exists()
        path.write_bytes(whole)


def test_swapped_and_renamed_parts_are_noticed(folder, tmp_path):
    one, two = sorted(folder.glob("*-0-2-*"))
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    two.write_bytes(contents[0])
    held, notes = read(folder)
    assert len(notes) == 2
    assert held.missing(0) == held.missing(1) == [0, 1]
    third = next(folder.glob("0-2-3-*"))
    for name in (third.name.replace("0-2-3", "1-2-3"), third.name.replace("0-2-3", "0-1-2")):
        path = shutil.copy(third, folder / name)
        assert len(read(folder)[1]) == 1
        assert not path.exists()
    other = tmp_path / "fedcba9876543210"  # of another seed, say
    other.mkdir()
    shutil.copy(third, other)
    assert not read(other)[0].spans
    (folder / "other.parquet").write_bytes(third.read_bytes())
    held, notes = read(folder)
    assert len(notes) == 1
    assert (folder / "other.parquet").exists()
    assert len(held.spans) == 2


def test_a_part_must_hold_what_its_name_says(folder):
    for cell, trials, wrong in (
        (5, [0], rows(6, [0])),
        (5, [0, 1], rows(5, [0])),
        (5, [0], rows(5, [0, 1])),
    ):
        parts.keep(folder, cell, trials, parts.content_of(wrong))
        held, notes = read(folder)
        assert held.missing(5) == [0, 1, 2]
        assert "other trials" in notes[0]


def test_a_trial_of_two_machines_counts_once(folder, tmp_path):
    """Both wrote it, with other last bits: which is taken depends on the parts alone."""
    others = [{**row, "regret": row["regret"] * (1 + 1e-15)} for row in rows(0, [0, 1])]
    tables = []
    for order in (1, -1):
        place = tmp_path / str(order) / folder.name
        place.mkdir(parents=True)
        for each in (rows(0, [0, 1]), others)[::order]:
            parts.keep(place, 0, [0, 1], parts.content_of(each))
        parts.keep(place, 0, [1, 2], parts.content_of(rows(0, [1, 2])))
        assert len(list(place.iterdir())) == 3
        tables.append(read(place)[0].table)
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].groupby(["_cell", "trial", "rounds"]).size().eq(1).all()
    assert len(tables[0]) == 6


def test_the_digest_does_not_see_last_bits_but_the_sixth_digit_hardly():
    """A chance of 1e-6 that one of 2000 numbers crosses an edge."""
    rng = RNG(3)
    table = pd.DataFrame({
        "name": ["a", "b"] * 500, "missed": [True, None] * 500, "count": range(1000),
        "large": rng.normal(size=1000) * 10.0 ** rng.integers(-3, 4, 1000),
        "zero": np.where(np.arange(1000) % 2, rng.normal(size=1000), 0.0),
    })  # fmt: skip
    table.loc[5:7, "large"] = np.nan, np.inf, -np.inf
    before = digest.of_table(table)
    noise = 1e-15 * rng.normal(size=1000)
    assert digest.of_table(table.assign(large=table["large"] * (1 + noise))) == before
    assert digest.of_table(table.assign(zero=table["zero"] + noise)) == before
    for column, change in (("large", -np.inf), ("large", np.nan), ("zero", 1e-3), ("count", 3)):
        other = table.copy()
        other.loc[6, column] = change
        assert digest.of_table(other) != before
    other = table.copy()
    other["large"] *= 1 + 1e-4
    assert digest.of_table(other) != before


@pytest.mark.parametrize("value", [1.0, 0.1, 1e-3, 1 / 256, 0.5, 2.5e-5, 123456.5, 1 / 3])
def test_round_numbers_lie_off_the_edges_of_rounding(value):
    for sign in (1, -1):
        near = sign * value * (1 + np.linspace(-1e-9, 1e-9, 201))
        both = np.array([digest.rounded(np.array([v, 1.0]))[:, 0] for v in near])
        assert (both == both[0]).all()


def test_parts_depend_on_sources_and_versions(tmp_path, monkeypatch):
    run = Run("links", tmp_path)
    places = {run.parts}
    assert run.parts in places
    monkeypatch.setattr(provenance, "sources", lambda: "other")
    places.add(run.parts)
    for package in ("numpy", "scipy", "numba", "python"):
        with monkeypatch.context() as patch:
            other = {**provenance.versions(), package: "9.9.9"}
            patch.setattr(provenance, "versions", lambda other=other: other)
            places.add(run.parts)
    assert len(places) == 6


def test_a_run_stops_when_the_sources_change_under_it(tmp_path, monkeypatch):
    from noisewise.experiments import runner

    run = Run("links", tmp_path, trials=1, rounds=5, jobs=1)
    batch = runner._local_batch

    def edited(*words):
        monkeypatch.setattr(provenance, "sources", lambda: "edited")
        return batch(*words)

    monkeypatch.setattr(runner, "_local_batch", edited)
    with pytest.raises(ValueError, match="sources changed"):
        run.execute()
    assert not list(tmp_path.rglob("*.parquet"))


EDIT = """

_sound = ellipsoids


def ellipsoids(*words):
    return tuple(Ellipsoid(e.centre, e.inverse, 0.01 * e.radius) for e in _sound(*words))
"""


def test_an_edit_of_any_source_reruns(tmp_path):
    """Sets a hundred times too small: old parts would go on to confirm that they hold."""
    package = tmp_path / "noisewise"
    shutil.copytree(Path(noisewise.__file__).parent, package)
    words = ["reproduce", "coverage", "--trials", "2", "--rounds", "20", "--jobs", "1"]
    command = [sys.executable, "-c", "from noisewise.cli import main; main()", *words]

    def run():
        done = subprocess.run(
            [*command, "--out", "results"], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = json.loads((tmp_path / "results" / "coverage.json").read_text())
        written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("parts/*/*/*.parquet")}
        return found, written

    first, old = run()
    (claim,) = [claim for claim in first["holds"] if claim.startswith("no kind of set misses")]
    assert first["holds"][claim]
    sets = package / "regression" / "ftrl" / "sets.py"
    sets.write_text(sets.read_text() + EDIT)
    edited, all_of_them = run()
    assert len(all_of_them) == 2 * len(old)  # those of the old sources stay
    assert all(all_of_them[path] == when for path, when in old.items())
    assert not edited["holds"][claim]
    assert edited["digest"] != first["digest"]


@pytest.mark.slow
def test_two_processors_agree(tmp_path):
    """Verdicts of all studies, and digests of those without decisions, at a small scale."""
    words = ["--trials", "2", "--rounds", "60"]
    found = list(two_processors.compare(tmp_path, words))
    assert len(found) == len(EXPERIMENTS)
    assert not [name for name, _, judged, _ in found if not judged]
    assert not [name for name, decides, _, same in found if not decides and not same]
    assert {name for name, decides, _, _ in found if decides} == {
        "bandits", "unknown-variance", "real-data", "replay", "agents", "classification",
    }  # fmt: skip
