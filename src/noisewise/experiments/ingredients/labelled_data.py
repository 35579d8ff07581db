"""Classification data of installed packages, played as bandits: an arm is a class."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...environments.practical import Deliveries
from ...protocols import Array, BanditRounds
from .datasets import require

BINS = 5  # of the diabetes target
PACKAGES = ("sklearn", "river", "statsmodels")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with a class each: ``features`` (n, p), ``label`` (n,) from 0 to K - 1."""

    features: Array
    label: NDArray[np.int64]

    def bandit(self, rng: np.random.Generator, rounds: int) -> Deliveries:
        """Return the rows in a drawn order as rounds: reward 1 for the right class, else 0.

        Where there are fewer rows than ``rounds``, they are repeated, in another order.
        Features are standardised over all rows; the arm of class k holds (1, x) in block k, zeros
        elsewhere.
        """
        spread = self.features.std(axis=0)
        x = (self.features - self.features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        n, K = rounds, int(self.label.max()) + 1
        passes = [rng.permutation(len(x)) for _ in range(-(-n // len(x)))]
        order = np.concatenate(passes)[:n]
        row = np.column_stack([np.ones(n), x[order]])
        arms = np.zeros((n, K, K, row.shape[1]))
        arms[:, range(K), range(K)] = row[:, None]
        rewards = np.eye(K)[self.label[order]]
        table = BanditRounds(arms.reshape(n, K, -1), rewards, rewards, np.ones(n))
        return Deliveries(table, "binomial", True, np.arange(n))


def _coded(features: object, label: object) -> Labelled:
    x = np.asarray(features, dtype=np.float64)
    return Labelled(x, np.unique(np.asarray(label), return_inverse=True)[1].astype(np.int64))


def _sklearn(name: str) -> Labelled:
    from sklearn import datasets

    return _coded(*getattr(datasets, f"load_{name}")(return_X_y=True))


def _digits() -> Labelled:
    """Digits of 8 x 8 pixels, each 2 x 2 of them averaged: 16 features, not 64."""
    fine = _sklearn("digits")
    x = fine.features.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    return Labelled(x, fine.label)


def _diabetes() -> Labelled:
    """Which fifth of all patients the progression of one lies in."""
    from sklearn import datasets

    x, y = datasets.load_diabetes(return_X_y=True)
    edges = np.quantile(y, np.arange(1, BINS) / BINS)
    return _coded(x, np.searchsorted(edges, y))


def _river(file: str, label: str) -> Labelled:
    table = pd.read_csv(require("river") / "datasets" / file)
    return _coded(table.drop(columns=label), table[label])


def _modechoice() -> Labelled:
    """How 210 travellers go: by air, train, bus or car; what each way costs them, and two more."""
    from statsmodels.datasets import modechoice

    table = modechoice.load_pandas().data
    wide = table.pivot_table(index="individual", columns="mode")
    x = np.column_stack([
        *(wide[name].to_numpy() for name in ("ttme", "invc", "invt", "gc")),
        *(wide[name].to_numpy()[:, 0] for name in ("hinc", "psize")),
    ])  # fmt: skip
    return _coded(x, wide["choice"].to_numpy().argmax(axis=1))


LABELLED: dict[str, Callable[[], Labelled]] = {
    "iris": lambda: _sklearn("iris"),
    "wine": lambda: _sklearn("wine"),
    "breast cancer": lambda: _sklearn("breast_cancer"),
    "digits": _digits,
    "diabetes": _diabetes,
    "ImageSegments": lambda: _river("segment.csv.zip", "category"),
    "Phishing": lambda: _river("phishing.csv.gz", "is_phishing"),
    "modechoice": _modechoice,
}


@cache
def labelled(name: str) -> Labelled:
    """Return data by name; they come with `PACKAGES`."""
    return LABELLED[name]()
