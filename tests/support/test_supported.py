"""What noisewise is used with: versions it works with, and tables of other packages as input."""

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from places import ROOT

import noisewise as nw
from noisewise.support.supported import NUMBA_BEYOND, check_numba, check_python

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 2))
Y = 1 + X @ [1.0, -0.5] + RNG.normal(size=60)


def test_numba_is_capped_at_what_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = (each for each in project["dependencies"] if each.startswith("numba"))
    beyond = "{}.{}".format(*NUMBA_BEYOND)
    assert wanted.endswith(f"<{beyond}")
    locked = re.search(r"^numba==(\d+)\.(\d+)", (ROOT / "requirements.lock").read_text(), re.M)
    assert (int(locked[1]), int(locked[2]) + 1) == NUMBA_BEYOND


@pytest.mark.parametrize("found", ["0.69.0", "0.69rc1", "0.100.0", "1.0", "0.70.0dev0+3.gabc"])
def test_a_numba_beyond_is_refused_with_what_to_install(monkeypatch, found):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: found)
    with pytest.raises(ImportError, match=re.escape(f"numba {found}")) as error:
        check_numba()
    assert "pip install 'numba<0.69'" in str(error.value)


def test_tested_versions_pass(monkeypatch):
    check_numba()
    check_python()
    for found in ("0.61.0", "0.68.1", "0.68.2rc1"):
        monkeypatch.setattr(importlib.metadata, "version", lambda name, found=found: found)
        check_numba()


def test_a_python_without_the_lock_is_refused_at_import(monkeypatch):
    code = "import sysconfig; sysconfig.get_config_var = lambda name: 1; import noisewise"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: noisewise does not work with a free-threaded build" in done.stderr
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1)
    with pytest.raises(ImportError, match="global interpreter lock"):
        check_python()


def test_kernels_ask_for_the_version_when_they_are_imported():
    code = (
        "import importlib.metadata as m; m.version = lambda name: '9.9'\n"
        "import noisewise as nw; nw.FTRL"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(
        "ImportError: noisewise is not tested with numba"
    )


def arrow(columns):
    return pa.table(columns)


def record_batch(columns):
    return pa.table(columns).to_batches()[0]


def polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def columns(*names):
    return {name: X[:, "ab".index(name)] for name in names}


TABLES = [pd.DataFrame, arrow, record_batch, polars]


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_read_by_the_names_of_their_columns(table):
    model, wanted = nw.OnlineGLM().fit(table(columns("a", "b")), Y), nw.OnlineGLM().fit(X, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.predict(table(columns("b", "a"))), wanted.predict(X))
    with pytest.raises(ValueError, match="now missing"):
        model.predict(table(columns("a")))
    classes = np.where(Y > 0, "high", "low")
    found = nw.OnlineGLMClassifier().fit(table(columns("a", "b")), classes)
    assert found.feature_names_in_.tolist() == ["a", "b"]
    glm = nw.GLM("identity", 10.0, 10.0)
    rows = table({**columns("a", "b"), "y": Y})
    state = nw.fit_partitions(glm, [rows], target="y", ridge=0.5)
    np.testing.assert_array_equal(state.theta, nw.fit_partitions(glm, [(X, Y)], ridge=0.5).theta)


def test_labels_may_be_columns_of_other_packages():
    wanted = nw.OnlineGLM().fit(X, Y).predict(X)
    for labels in (pd.Series(Y), pa.array(Y), pa.chunked_array([Y[:9], Y[9:]])):
        np.testing.assert_array_equal(nw.OnlineGLM().fit(X, labels).predict(X), wanted)
    series = pytest.importorskip("polars").Series(Y)
    np.testing.assert_array_equal(nw.OnlineGLM().fit(X, series).predict(X), wanted)


def test_a_query_that_has_not_been_run_is_refused():
    lazy = pytest.importorskip("polars").DataFrame({**columns("a", "b"), "y": Y}).lazy()
    model = nw.OnlineGLM().fit(X, Y)
    for call in (
        lambda: nw.OnlineGLM().fit(lazy, Y),
        lambda: model.predict(lazy),
        lambda: nw.fit_partitions(nw.GLM(), [lazy], target="y", ridge=0.5),
    ):
        with pytest.raises(ValueError, match=r"LazyFrame, a query .* collect\(\)"):
            call()
