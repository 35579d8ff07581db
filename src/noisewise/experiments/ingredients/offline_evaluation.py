"""Judging a policy by a log of decisions, for the study `replay`."""

import numpy as np
from numpy.typing import NDArray

from ...protocols import AnyPolicy, Array
from .. import Record
from . import datasets

BASE, SPREAD = 0.0046, 0.7  # rate and sd of scores of drawn clicks, before the level
WAYS = ("replay", "whole log")
SHOP, EVEN = "shop's Thompson sampling", "even draw"


def catalogue(log: datasets.Log) -> Array:
    """Return the features of all items, their one number scaled to [-1, 1]; known beforehand."""
    x = log.features.copy()
    x[:, 1] /= np.abs(x[:, 1]).max()
    return x


def drawn_rates(x: Array, level: float, rng: np.random.Generator) -> Array:
    """Return click rates whose logits are linear in the features, with mean ``level * BASE``."""
    score = (x - x.mean(axis=0)) @ rng.standard_normal(x.shape[1])
    rates = 1 / (1 + np.exp(-(np.log(level * BASE) + SPREAD * score / score.std())))
    return np.asarray(np.minimum(rates * level * BASE / rates.mean(), 0.95))


def judged(
    policy: AnyPolicy,
    x: Array,
    item: NDArray[np.int64],
    click: Array,
    rng: np.random.Generator,
    rates: Array | None = None,
) -> list[Record]:
    """Judge a policy on a log of an even draw in both ways; with ``rates`` known, its value."""
    K, N = len(x), len(item)
    rows = []
    for way in WAYS:
        asked = ask(policy, x, item, click, rng, whole=way == "whole log")
        met = asked == item
        clicks, matched = int(click[met].sum()), int(met.sum())
        scale = K / N if way == "whole log" else 1 / max(matched, 1)
        low, high = poisson_interval(clicks)
        row = {"way": way, "matched": matched, "clicks": clicks, "scale": scale}
        row |= {"rate": scale * clicks, "low": scale * low, "high": scale * high}
        if rates is not None:
            played = rates[asked if way == "whole log" else asked[met]]
            row["truth"] = float(played.mean()) if len(played) else np.nan
        rows.append(row)
    return rows


def ask(
    policy: AnyPolicy,
    x: Array,
    item: NDArray[np.int64],
    click: Array,
    rng: np.random.Generator,
    whole: bool,
) -> NDArray[np.int64]:
    """Return what the policy would have shown at every event, learning matched or all events."""
    state = policy.start(x.shape[1])
    asked = np.empty(len(item), dtype=np.int64)
    for t, (shown, reward) in enumerate(zip(item.tolist(), click.tolist(), strict=True)):
        asked[t] = policy.select(state, x, rng)
        if whole or asked[t] == shown:
            policy.update(state, x[shown], reward)
    return asked


def poisson_interval(count: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a Poisson mean (Garwood).

    >>> [round(end, 3) for end in poisson_interval(3)]
    [0.619, 8.767]
    """
    from scipy.stats import gamma

    tail = (1 - level) / 2
    return float(gamma.ppf(tail, count)) if count else 0.0, float(gamma.isf(tail, count + 1))


def across(campaign: str) -> list[Record]:
    """Value of each logging policy from its own log and, by propensities, from the other's.

    ``matched`` is the effective number of events. The shop's policy moved during the week and its
    log tells the probabilities of what was shown only, so on the other log it is taken as how often
    it showed an item at a position.
    """
    from scipy.stats import chisquare

    even, shop = (datasets.open_bandit(campaign, by) for by in ("random", "bts"))
    K = len(even.features)
    shown = np.zeros((3, K))
    np.add.at(shown, (shop.position, shop.item), 1.0)
    often = shown / shown.sum(axis=1, keepdims=True)
    weights = {
        (EVEN, "own log"): (even, np.ones(len(even.item))),
        (EVEN, "other log"): (shop, 1 / (K * shop.propensity)),
        (SHOP, "own log"): (shop, np.ones(len(shop.item))),
        (SHOP, "other log"): (even, K * often[even.position, even.item]),
    }
    uneven = float(chisquare(np.bincount(even.item, minlength=K)).pvalue)
    rows = []
    for (name, way), (log, w) in weights.items():
        value = w * log.click
        rate, error = float(value.mean()), float(value.std() / np.sqrt(len(w)))
        row = {"policy": name, "way": way, "rate": rate, "error": error, "uneven": uneven}
        row |= {"clicks": int(log.click.sum()), "matched": int(w.sum() ** 2 / (w**2).sum())}
        rows.append(row | {"low": rate - 1.96 * error, "high": rate + 1.96 * error})
    return rows
