"""Which columns of a file are used, and as what; everything that stands in the way is named."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from .encoding import Encoding, Feature
from .survey import MOST_LEVELS, Column

UNNAMED = ("Unnamed: ", "__index_level_")  # how pandas calls the index of a saved frame
LABELS = {  # of a family: least, largest, words
    "gaussian": (float("-inf"), float("inf"), ""),
    "binomial": (0.0, 1.0, "0 and 1, or shares with the trials as --weight"),
    "poisson": (0.0, float("inf"), "counts of at least 0"),
}


@dataclass(frozen=True)
class Choice:
    """What the user asked for, checked against the names of the file's columns."""

    path: Path
    target: str
    features: tuple[str, ...]
    weight: str | None
    categorical: tuple[str, ...]
    family: str
    success: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """The columns whose values are read as text."""
        return self.categorical if self.success is None else (*self.categorical, self.target)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.features, self.target, *([self.weight] if self.weight else []))


def require_names(path: Path, option: str, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise unless all wanted columns are there; suggest those that are meant."""
    for name in wanted:
        if name not in names:
            close = get_close_matches(name, names, 3, 0.5) or list(names[:10])
            meant = ", ".join(map(repr, close))
            raise ValueError(
                f"{option} names the column {name!r}, which {path.name} does not have; did you "
                f"mean {meant}?"
            )


def choose(
    path: Path,
    names: Sequence[str],
    target: str,
    features: Sequence[str],
    weight: str | None,
    categorical: Sequence[str],
    family: str,
    success: str | None,
) -> tuple[Choice, list[str]]:
    """Return which columns are read, all but target and weight by default, and notes on others."""
    require_names(path, "--target", [target], names)
    require_names(path, "--weight", [weight] if weight else [], names)
    require_names(path, "--features", features, names)
    require_names(path, "--categorical", categorical, names)
    notes = []
    if not features:
        unnamed = [name for name in names if name.startswith(UNNAMED)]
        taken = {target, weight, *unnamed}
        features = [name for name in names if name not in taken]
        if unnamed:
            notes.append(f"Left out: {_listed(unnamed)}, row numbers by the name.")
    for name, option in ((target, "--target"), (weight, "--weight")):
        if name in features:
            raise ValueError(f"--features holds {name!r}, which is the {option} too; drop one")
    for name in categorical:
        if name not in features:
            raise ValueError(f"--categorical holds {name!r}, which is not among the features")
    if not features:
        raise ValueError(f"{path.name} has no column besides {target!r}; features are missing")
    if success is not None and family != "binomial":
        raise ValueError("--success is for --family binomial; add that")
    chosen = tuple(features), weight, tuple(categorical)
    return Choice(path, target, *chosen, family, success), notes


def encode(
    choice: Choice, found: dict[str, Column], drop_missing: bool
) -> tuple[Encoding, list[str]]:
    """Return how columns become features, with notes on them; raise if something must change."""
    if not found or not found[choice.target].count:
        raise ValueError(f"{choice.path} has column names but no rows; pass a file with rows")
    wrong = [problem for name in choice.columns if (problem := _problem(found[name], choice))]
    if not drop_missing:
        wrong += _missing(choice, found)
    wrong += _labels(found[choice.target], choice)
    if choice.weight and found[choice.weight].low < 0:
        wrong.append(f"the weight {choice.weight!r} falls below 0 ({found[choice.weight].low:g})")
    if wrong:
        raise ValueError("\n  ".join([f"{choice.path.name} can't be used as it is:", *wrong]))
    notes, features = [], []
    for column in (found[name] for name in choice.features):
        if column.constant:
            notes.append(f"Left out: {column.name!r} is constant, so it explains nothing.")
            continue
        levels = tuple(level for level, _ in column.levels.most_common())
        features.append(Feature(column.name, column.kind, levels))
        if column.kind == "category":
            notes.append(
                f"{column.name!r} has {len(levels)} levels, compared with {levels[0]!r}, the most "
                "frequent."
            )
        elif column.kind == "date":
            notes.append(f"{column.name!r} counts as days since 1970-01-01.")
    if not features:
        raise ValueError(f"every feature of {choice.path.name} is constant; nothing can be learnt")
    if choice.family == "gaussian" and found[choice.target].binary:
        notes.append(f"{choice.target!r} is always 0 or 1: consider --family binomial.")
    return Encoding(tuple(features), choice.target, choice.weight, choice.success), notes


def _problem(column: Column, choice: Choice) -> str:
    """Return what is wrong with a column, apart from missing values."""
    name, feature = repr(column.name), column.name in choice.features
    remedy = "correct them, or leave the column out (--features)"
    if column.kind == "text":
        place = f"{column.example!r} in row {column.places.get('wrong', 1)}"
        if column.name == choice.target and choice.family == "binomial":
            return (
                f"column {name} holds text ({place}); say which value counts as 1: --success "
                f"{column.example!r}"
            )
        if not feature:
            return f"column {name} holds text ({place}); it must hold numbers"
        if "number" in column.kinds or column.wrong < column.count - column.missing:
            return f"column {name}: {column.wrong:,} values are no numbers ({place}); {remedy}"
        return (
            f"column {name} holds text ({place}); add --categorical {column.name!r}, or leave it "
            "out (--features)"
        )
    if column.kind == "date" and not feature:
        return f"column {name} holds dates; it must hold numbers"
    if column.infinite:
        row = column.places["infinite"]
        return f"column {name}: {column.infinite:,} values are infinite (first in row {row})"
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
        f"column {each.name!r}: {each.missing:,} of {each.count:,} values are missing (first in "
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
    if target.kind != "number" or not (target.low < low or target.high > high):
        return []
    seen = f"from {target.low:g} to {target.high:g}"
    return [f"the target {target.name!r} goes {seen}; --family {choice.family} takes {words}"]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
