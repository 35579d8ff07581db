"""How columns become features, and what is said about each."""

from dataclasses import dataclass, replace

from ..support.printing import count_of
from .choosing import Choice
from .encoding import Encoding, Feature
from .identifiers import why_identifier
from .survey import Column


@dataclass(frozen=True)
class Use:
    """What was done with a column."""

    column: str
    what: str


def without_identifiers(
    choice: Choice, found: dict[str, Column], first: str
) -> tuple[Choice, dict[str, str]]:
    """Return the choice without columns that identify rows, and why each of them does.

    Features that the user has named stay, and so does the last number; ``first`` is the first
    column of the file.
    """
    if choice.named:
        return choice, {}
    why = {
        name: reason
        for name in choice.features
        if (reason := why_identifier(found[name], name == first))
    }
    kept = tuple(name for name in choice.features if name not in why)
    if not kept:
        kept = tuple(name for name in why if found[name].kind == "number")
        why = {name: reason for name, reason in why.items() if name not in kept}
    return replace(choice, features=kept), why


def encode(
    choice: Choice, found: dict[str, Column], why: dict[str, str]
) -> tuple[Encoding, list[Use], list[str]]:
    """Return how columns become features, what was done with each column, and notes."""
    notes = [f"Left out: {name!r}, row numbers by the name." for name in choice.unnamed]
    features = list[Feature]()
    uses = [Use(name, "left out: row numbers by the name") for name in choice.unnamed]
    for name, reason in why.items():
        again = "; to use it, name it in --features" if found[name].kind == "number" else ""
        notes.append(f"Left out: {name!r} {reason}{again}.")
        uses.append(Use(name, f"left out: {reason}"))
    for column in (found[name] for name in choice.features):
        if column.constant:
            notes.append(f"Left out: {column.name!r} is constant, so it explains nothing.")
            uses.append(Use(column.name, "left out: constant"))
            continue
        levels = tuple(level for level, _ in column.levels.most_common())
        features.append(Feature(column.name, column.kind, levels))
        said = _said(column, levels)
        uses.append(Use(column.name, said))
        if column.kind == "category":
            counts = [count for _, count in column.levels.most_common(2)]
            tied = len({*counts}) < len(counts)
            which = "none is more frequent" if tied else "the most frequent"
            notes.append(
                f"{column.name!r} has {count_of(len(levels), 'level')}, compared with "
                f"{levels[0]!r}, {which}."
            )
        elif column.kind == "date":
            notes.append(f"{column.name!r} counts as {said.partition(', ')[2]}.")
    if not features:
        raise ValueError(f"every feature of {choice.path} is constant; nothing can be learnt")
    roles = (
        ("target" if choice.trials is None else "number of events", choice.target),
        ("number of trials", choice.trials),
        ("weight", choice.weight),
        ("exposure, whose logarithm is added to the score", choice.exposure),
        ("offset, added to the score", choice.offset),
    )
    uses = [Use(name, role) for role, name in roles if name is not None] + uses
    encoding = Encoding(
        tuple(features), choice.target, choice.weight, choice.success, choice.trials,
        choice.exposure, choice.offset,
    )  # fmt: skip
    return encoding, uses, notes


def _said(column: Column, levels: tuple[str, ...]) -> str:
    if column.kind == "category":
        return f"category of {count_of(len(levels), 'level')}, compared with {levels[0]!r}"
    if column.kind == "date":
        written = ", read as day.month.year" if column.dotted else ""
        return f"date, days since 1970-01-01{written}"
    if column.kinds == {"bool"}:
        return "true and false, as 1 and 0"
    return f"number from {column.low:.4g} to {column.high:.4g}"
