"""Data that come with other packages, read where these are installed; none is kept here."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...protocols import Array
from ...support.supported import install

INSTALL = {
    "statsmodels": install("data"),
    "obp": "pip install --no-deps obp==0.4.1",  # only its data are read
    "sklearn": install("sklearn"),
    "river": install("river"),
}
CAMPAIGNS = ("men", "women", "all")


class MissingData(ValueError):
    """A package whose data a study needs is not installed."""


def require(package: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise MissingData(f"data come with {package}, not installed; get it: {INSTALL[package]}")
    return Path(found.submodule_search_locations[0])


@dataclass(frozen=True, eq=False)
class Districts:
    """School districts: ``features`` (n, 12), and how many pupils were tested and did well."""

    features: Array
    above: NDArray[np.int64]
    tested: NDArray[np.int64]

    @property
    def rate(self) -> Array:
        """The share of pupils above the national median."""
        return self.above / self.tested


@cache
def star98() -> Districts:
    """Return the 303 unified school districts of California in 1998, from statsmodels.

    Mathematics scores of Gill, *Generalized Linear Models: A Unified Approach* (2000). The twelve
    measured features only: the other eight are their products.
    """
    require("statsmodels")
    from statsmodels.datasets import star98 as source

    table = source.load_pandas().data
    above, below = (table[name].to_numpy(dtype=np.int64) for name in ("NABOVE", "NBELOW"))
    x = table.loc[:, "LOWINC":"PCTYRRND"].to_numpy(dtype=np.float64)
    return Districts(x, above, above + below)


@dataclass(frozen=True, eq=False)
class Log:
    """A log of decisions in order of time: which of ``features`` (K, d) was shown, where, and why.

    ``item``, ``position`` (0 to 2), ``click`` and ``propensity`` are (n,).
    """

    features: Array
    item: NDArray[np.int64]
    position: NDArray[np.int64]
    click: Array
    propensity: Array


@cache
def open_bandit(campaign: str, logged_by: str = "random") -> Log:
    """Return 10,000 decisions of a fashion shop, ``logged_by`` "random" or "bts", from obp.

    A week's sample of the Open Bandit Dataset (Saito, Aihara, Matsutani and Narita, 2021; CC BY
    4.0). Features of an item: 1, its one number, and which of the values of its first and last
    category it has.
    """
    folder = require("obp") / "dataset" / "obd" / logged_by / campaign
    used = ["item_id", "position", "click", "propensity_score"]
    log = pd.read_csv(folder / f"{campaign}.csv", usecols=used)
    items = pd.read_csv(folder / "item_context.csv", index_col=0).sort_values("item_id")
    kinds = pd.get_dummies(items[["item_feature_1", "item_feature_3"]]).to_numpy(dtype=np.float64)
    x = np.column_stack([np.ones(len(items)), items["item_feature_0"], kinds])
    item, position = (log[name].to_numpy(dtype=np.int64) for name in ("item_id", "position"))
    click, chance = (log[name].to_numpy(dtype=np.float64) for name in ("click", used[-1]))
    return Log(x, item, position - 1, click, chance)
