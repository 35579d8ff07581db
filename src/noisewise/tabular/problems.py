"""What stands in the way of a fit: everything is named at once, with what to do about it."""

import math

from ..estimators.curved_model import LARGEST_OFFSET
from ..support.printing import count_of
from .choosing import Choice
from .survey import MOST_LEVELS, Column

LARGEST = 1e25  # of a feature: estimators compute with fourth powers up to 1e100
LABELS = {  # of a family: least, largest, words
    "gaussian": (float("-inf"), float("inf"), ""),
    "binomial": (0.0, 1.0, "0 and 1, shares with the trials as --weight, or --events and --trials"),
    "poisson": (0.0, float("inf"), "counts of at least 0"),
}


def require_usable(choice: Choice, found: dict[str, Column], drop_missing: bool) -> None:
    """Raise if something about the columns must change."""
    if not found or not found[choice.target].count:
        raise ValueError(f"{choice.path} has column names but no rows; pass a file with rows")
    wrong = [problem for name in choice.columns if (problem := _problem(found[name], choice))]
    if not drop_missing:
        wrong += _missing(choice, found)
    wrong += _labels(found[choice.target], choice)
    for name, least, words in (
        (choice.weight, 0.0, "weight"),
        (choice.trials, 0.0, "number of trials"),
    ):
        if name is not None and found[name].low < least:
            wrong.append(f"the {words} {name!r} falls below 0 ({found[name].low:g})")
    if choice.trials is not None and not found[choice.trials].whole:
        wrong.append(f"the number of trials {choice.trials!r} must be whole")
    if choice.exposure is not None:
        exposure = found[choice.exposure]
        if exposure.low <= 0:
            goes = f"(it goes down to {exposure.low:g})"
            wrong.append(f"the exposure {choice.exposure!r} must be above 0 {goes}")
        wrong += out_of_scale(exposure)
    if wrong:
        raise ValueError("\n  ".join([f"{choice.path} can't be used as it is:", *wrong]))


def out_of_scale(exposure: Column) -> list[str]:
    """Return what is wrong with exposures that are too far from 1."""
    most = math.exp(LARGEST_OFFSET)
    found = []
    if exposure.high > most:
        found.append(f"goes to {exposure.high:g}, too large")
    if 0 < exposure.low < 1 / most:
        found.append(f"goes down to {exposure.low:g}, too small")
    return [f"the exposure {exposure.name!r} {each} to compute with; rescale it" for each in found]


def _problem(column: Column, choice: Choice) -> str:
    """Return what is wrong with a column, apart from missing values."""
    name, feature = repr(column.name), column.name in choice.features
    remedy = "correct them, or leave the column out (--features)"
    if column.kind == "text":
        place = f"{column.example!r} in row {column.places.get('wrong', 1)}"
        if column.name == choice.target and choice.family == "binomial" and not choice.trials:
            return (
                f"column {name} holds text ({place}); say which value counts as 1: --success "
                f"{column.example!r}"
            )
        if not feature:
            return f"column {name} holds text ({place}); it must hold numbers"
        if not column.wrong:
            return (
                f"column {name} holds numbers written as text ({place}); save them as numbers, add "
                f"--categorical {column.name!r}, or leave it out (--features)"
            )
        if "number" in column.kinds or column.wrong < column.count - column.missing:
            wrong = count_of(column.wrong, "value is no number", "values are no numbers")
            return f"column {name}: {wrong} ({place}); {remedy}"
        return (
            f"column {name} holds text ({place}); add --categorical {column.name!r}, or leave it "
            "out (--features)"
        )
    if column.kind == "date" and not feature:
        return f"column {name} holds dates; it must hold numbers"
    if column.infinite:
        infinite = count_of(column.infinite, "value is", "values are")
        row = column.places["infinite"]
        return f"column {name}: {infinite} infinite, or beyond 1.8e308 (first in row {row})"
    largest = max(abs(column.low), abs(column.high))
    if feature and column.kind == "number" and column.low <= column.high and largest > LARGEST:
        return f"column {name} goes to {largest:g}, too large to compute with; rescale it"
    if len(column.levels) > MOST_LEVELS:
        return (
            f"column {name} has more than {MOST_LEVELS} levels, too many for --categorical; "
            "group them, or leave it out (--features)"
        )
    if column.missing == column.count:
        return f"column {name} is empty; leave it out (--features)"
    return ""


def _missing(choice: Choice, found: dict[str, Column]) -> list[str]:
    lacking = [
        found[name] for name in choice.columns if 0 < found[name].missing < found[name].count
    ]
    lines = [
        f"column {each.name!r}: {each.missing:,} of {each.count:,} values "
        f"{'is' if each.missing == 1 else 'are'} missing (first in "
        f"row {each.places['missing']})"
        for each in lacking
    ]
    if lines:
        lines.append(
            "add --drop-missing to leave such rows out, or --features to leave such columns out"
        )
    return lines


def _labels(target: Column, choice: Choice) -> list[str]:
    if choice.success is not None and choice.success not in target.levels:
        seen = ", ".join(map(repr, list(target.levels)[:5]))
        return [f"--success is {choice.success!r}, but the target {target.name!r} holds {seen}"]
    low, high, words = LABELS[choice.family]
    if choice.trials is not None:
        if target.low < 0:
            return [f"the number of events {target.name!r} falls below 0 ({target.low:g})"]
        return []
    if target.kind != "number" or not (target.low < low or target.high > high):
        return []
    seen = f"from {target.low:g} to {target.high:g}"
    return [f"the target {target.name!r} goes {seen}; --family {choice.family} takes {words}"]
