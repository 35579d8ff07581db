"""What a fit says, in sentences computed from it."""

import math

import numpy as np

from ..evaluation.progressive.textbook import NAMES
from ..protocols import Array
from ..support.printing import clean, percent
from ..tabular.fitting import Fit

MOST = 3  # effects in a sentence
SCATTER = "Noise sd", "Dispersion", "Labels", "Rows of large weight"  # notes that begin so
CHANGES = {"binomial": "the odds of", "poisson": "the mean of"}


def short(value: float) -> str:
    """Return three digits, without an exponent where that can be: 1,230 rather than 1.23e+03."""
    return f"{float(f'{value:.3g}'):,.12g}" if abs(value) < 1e12 else f"{value:.3g}"


def effects(fit: Fit) -> tuple[Array, Array, Array]:
    """Return estimates per standard deviation and their anytime bounds, without the intercept."""
    d = len(fit.spreads)
    ends = np.asarray(fit.summary.anytime.lower)[:d], np.asarray(fit.summary.anytime.upper)[:d]
    return (fit.spreads * np.asarray(fit.summary.estimates)[:d], *(fit.spreads * e for e in ends))


def drivers(fit: Fit) -> str:
    """Return which columns drive the target, the largest effects first."""
    middle, low, high = effects(fit)
    count = len(middle)
    sure = np.flatnonzero((low > 0) | (high < 0))
    if not len(sure):
        return _nothing_sure(fit, low, high)
    first = sure[np.argsort(-np.abs(middle[sure]), kind="stable")][:MOST]
    said = "; ".join(_effect(fit, int(i)) for i in first)
    others = "Other columns held fixed, " if count > 1 else ""
    if not others and fit.family in CHANGES:
        said = f"T{said[1:]}"
    said = f"{others}{said}."
    if count == 1:
        return said
    whole = f"The interval{'s' if len(sure) > 1 else ''} of {len(sure)} of {count} effects"
    return f"{said} {whole} exclude{'' if len(sure) > 1 else 's'} 0."


def _nothing_sure(fit: Fit, low: Array, high: Array) -> str:
    d, rows = len(low), f"{fit.rows:,} rows"
    if (np.isfinite(low) & np.isfinite(high)).any():
        said = "No interval that holds at all times excludes 0."
    else:
        said = f"After {rows} no effect has a finite interval that holds at all times."
    lower, upper = (np.asarray(each)[:d] for each in fit.summary.textbook)
    seen = [fit.encoding.names[i] for i in np.flatnonzero((lower > 0) | (upper < 0))]
    if not seen:
        return f"{said} Nor do textbook intervals tell what drives {fit.encoding.label}."
    more = f" and {len(seen) - MOST} more" if len(seen) > MOST else ""
    return (
        f"{said} Textbook intervals, for one look at a sample size fixed in advance, exclude 0 for "
        f"{', '.join(seen[:MOST])}{more}."
    )


def _effect(fit: Fit, i: int) -> str:
    """Return one effect with its interval: of a category or of 0 and 1 as it is, else per sd."""
    name, label = fit.encoding.names[i], fit.encoding.label
    column = next(each for each in fit.encoding.features if name in each.names)
    scale = float(fit.spreads[i])
    where = f"per standard deviation of {name}"
    versus = ""
    if column.kind == "category":
        value = clean(column.levels[1 + column.names.index(name)])
        where = f"where {clean(column.column)} is {value}"
        versus, scale = f" than where it is {clean(column.levels[0])}", 1.0
    elif column.column in fit.binary:
        where, versus, scale = f"where {name} is 1", " than where it is 0", 1.0
    values = [
        scale * float(each)
        for each in (
            fit.summary.estimates[i],
            np.asarray(fit.summary.anytime.lower)[i],
            np.asarray(fit.summary.anytime.upper)[i],
        )
    ]
    level = f"{100 * (1 - fit.delta):g} %"
    if fit.family in CHANGES:
        middle, low, high = (short(math.exp(min(each, 700.0))) for each in values)
        named = clean(fit.encoding.target) if fit.encoding.trials else label
        what = f"{CHANGES[fit.family]} {named}"
        verb = "are" if fit.family == "binomial" else "is"
        how = f"{middle} times as large" if versus else f"multiplied by {middle}"
        versus = versus.replace("than", "as", 1)
        return f"{what} {verb} {how} {where}{versus} ({level}: {low} to {high})"
    up = values[0] > 0
    ends = values[1:] if up else [-values[2], -values[1]]
    size, bounds = short(abs(values[0])), f"({level}: {short(ends[0])} to {short(ends[1])})"
    if versus:
        return f"{label} is {size} {'higher' if up else 'lower'} {where}{versus} {bounds}"
    return f"{label} {'rises' if up else 'falls'} by {size} {where} {bounds}"


def accuracy(fit: Fit) -> str:
    """Return how well rows were predicted before they were learnt."""
    found, textbook = fit.evaluation, NAMES[fit.family]
    ours, *others = zip(found.names, found.all_rows.averages, found.all_rows.errors, strict=True)
    if fit.family == "gaussian":
        said = f"missed by {short(math.sqrt(ours[1]))} (root mean square)"
    else:
        said = f"predicted with a mean {found.loss} of {short(ours[1])}"
    said = f"Before they were learnt, rows were {said}"
    if fit.sorted_by_target:
        return (
            f"{said}. They are sorted by the target, so this does not say how well rows in another "
            "order would be predicted."
        )
    said += f", {_against(fit, ours[1], *others[-1])}."
    if textbook not in found.losses:
        return said
    theirs, error = found.losses[textbook], found.errors[textbook]
    if not theirs > 0:
        return f"{said} {textbook.capitalize()} made no error."
    return (
        f"{said} Over the {found.compared.rows:,} rows for which {textbook} had a fit, the error "
        f"is {_against(fit, found.losses['noisewise'], textbook, theirs, error)}."
    )


def _against(fit: Fit, loss: float, name: str, other: float, error: float) -> str:
    """Return how far an error is from that of another method, squared losses by their roots."""
    article = "the " if name == "running mean" else ""
    if not other > 0:
        return f"against 0 with {article}{name}"
    ratio = math.sqrt(loss / other) if fit.family == "gaussian" else loss / other
    if ratio > 2:
        size = f"{ratio:,.1f} times that"
    else:
        size = f"{percent(abs(1 - ratio), 1)} {'less than' if ratio <= 1 else 'more than'}"
    close = "" if abs(loss - other) > 2 * error else ", a difference within two standard errors"
    return f"{size} with {article}{name}{close}"


def trust(fit: Fit) -> list[str]:
    """Return whether intervals can be trusted: coverage, dispersion, residuals."""
    return [*filter(None, (coverage(fit),)), *dispersion(fit), *fit.residuals.sentences()]


def coverage(fit: Fit) -> str:
    """Return how many new labels lay in their intervals, empty where labels are 0 and 1."""
    said = fit.evaluation.looks.sentence()
    if said or fit.residuals.of_classes:
        return said
    return "Intervals were not checked against new labels: there were too few rows."


def dispersion(fit: Fit) -> list[str]:
    """Return what the summary says of the scatter of labels."""
    return [note for note in fit.summary.notes if note.startswith(SCATTER)]


def columns(fit: Fit) -> str:
    """Return what became of the columns."""
    used, features = len(fit.encoding.features), len(fit.encoding.names)
    left = sum(use.what.startswith("left out") for use in fit.uses)
    said = f"{used} column{'s' * (used > 1)} gave {features} feature{'s' * (features > 1)}"
    return f"{said}, {left} {'were' if left > 1 else 'was'} left out." if left else f"{said}."
