"""Residuals of a fitted model at some rows, and whether they contradict it."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from ..estimators.online_glm import OnlineGLM
from ..estimators.summary import Summary
from ..evaluation.progressive.players import NamedRows
from ..model import families
from ..protocols import Array

MOST = 2000  # rows kept, at least half of them
LEAST = 1e-12  # variance of a label
GROUPS, GROUP = 10, 20  # groups of fitted values, and the fewest rows of one
FEWEST = 4  # groups: rows of fewer would not be of about the same fitted value
FALSE_ALARM = 1e-3


def groups_of(fitted: Array) -> list[Array]:
    """Return rows of about the same fitted value, as indices, at least 20 in each of 4."""
    count = min(GROUPS, len(fitted) // GROUP)
    if count < FEWEST:
        return []
    return np.array_split(np.argsort(fitted, kind="stable"), count)


class KeptRows:
    """Every k-th row of a stream, with its label; k doubles when they get many."""

    def __init__(self) -> None:
        self.rows: list[tuple[Array, float, float, float]] = []
        self.count, self.stride = 0, 1

    def add(self, x: Array, y: Array, w: Array, offset: Array | None) -> None:
        """Take in rows."""
        o = np.zeros(len(y)) if offset is None else offset
        while (self.count + len(y) - 1) // self.stride >= MOST:
            self.rows, self.stride = self.rows[::2], 2 * self.stride
        for i in range(-self.count % self.stride, len(y), self.stride):
            self.rows.append((x[i].copy(), float(y[i]), float(w[i]), float(o[i])))
        self.count += len(y)

    def residuals(
        self, model: OnlineGLM, summary: Summary, names: tuple[str, ...], family: str
    ) -> "Residuals":
        """Return the residuals of the fit without ridge, or of the predictions if there is none."""
        rows, *rest = zip(*self.rows, strict=True)
        x, (y, w, offset) = np.array(rows), map(np.array, rest)
        *slopes, intercept = summary.estimates
        scores = x @ np.array(slopes) + intercept + offset
        fitted = scores if family == "gaussian" else families.model(family).link.mean(scores)
        if not np.isfinite(fitted).all():
            fitted = model.predict(NamedRows(x, names), offset if offset.any() else None)
        if family == "gaussian":
            scaled = np.sqrt(w) * (y - fitted)
            freedom = max(len(y) - x.shape[1] - 1, 1)
            sd = math.sqrt(float(scaled @ scaled) / freedom)
            return Residuals(family, fitted, scaled / sd if sd else scaled, y, w)
        variance = families.FAMILIES[family].variance(fitted)
        pearson = (y - fitted) * np.sqrt(w / np.maximum(variance, LEAST))
        return Residuals(family, fitted, pearson, y, w)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals in units of the noise: the estimated one of numbers, that of the family else.

    Attributes
    ----------
    fitted, scaled, labels, weights : (n,) arrays
        Of up to 2000 rows, evenly spaced.
    """

    family: str
    fitted: Array
    scaled: Array
    labels: Array
    weights: Array

    @property
    def of_classes(self) -> bool:
        """Whether labels are 0 and 1, whose residuals show little one by one."""
        return self.family == "binomial" and bool(np.isin(self.labels, (0.0, 1.0)).all())

    def groups(self) -> list[Array]:
        """Return `groups_of` the fitted values."""
        return groups_of(self.fitted)

    def bend(self) -> bool:
        """Return whether means of groups differ from 0 by more than chance, at 0.001."""
        groups = self.groups()
        if not groups:
            return False
        variance = float(self.scaled.var())
        if not variance > 0:
            return False
        total = sum(len(at) * float(self.scaled[at].mean()) ** 2 for at in groups) / variance
        return bool(chdtrc(len(groups) - 2, total) < FALSE_ALARM)

    def spread_ratio(self) -> float:
        """Return how much more residuals scatter at large fitted values than at small ones.

        1 where that is not clear: where mean sizes of residuals are within four standard errors.
        """
        groups = self.groups()
        if not groups or self.family != "gaussian":
            return 1.0
        third = max(len(groups) // 3, 1)
        ends = [np.abs(self.scaled[np.concatenate(g)]) for g in (groups[:third], groups[-third:])]
        (low, high), errors = [e.mean() for e in ends], [e.var() / len(e) for e in ends]
        clear = abs(high - low) > 4 * math.sqrt(sum(errors))
        return float(high / low) if clear and low > 0 else 1.0

    def sentences(self) -> list[str]:
        """Return what contradicts the model, in sentences."""
        found = []
        if self.bend():
            found.append(
                "Residuals depend on fitted values by more than chance: the relation is curved, or "
                "a column is missing."
            )
        ratio = self.spread_ratio()
        if not 2 / 3 <= ratio <= 1.5:
            where = ("large", "small") if ratio > 1 else ("small", "large")
            logarithm = ", or the logarithm of the target" if self.labels.min() > 0 else ""
            found.append(
                f"Residuals scatter {max(ratio, 1 / ratio):.1f} times as much where fitted values "
                f"are {where[0]} as where they are {where[1]}, but intervals assume equal scatter; "
                f"consider --weight{logarithm}."
            )
        return found
