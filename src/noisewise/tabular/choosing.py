"""Which columns of a file are used, and as what."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

UNNAMED = ("Unnamed: ", "__index_level_")  # how pandas calls the index of a saved frame


@dataclass(frozen=True)
class Options:
    """What the user asked for. Columns are named as in the file."""

    target: str | None = None
    events: str | None = None
    trials: str | None = None
    family: str | None = None
    success: str | None = None
    weight: str | None = None
    exposure: str | None = None
    offset: str | None = None
    noise: str = "auto"
    nonlinear: bool = False
    features: Sequence[str] = ()
    categorical: Sequence[str] = ()
    drop_missing: bool = False
    shuffle: int | None = None
    delta: float = 0.05


@dataclass(frozen=True)
class Choice:
    """What was asked for, checked against the names of the file's columns.

    ``target`` is the column of events where there is one of trials; ``named`` says that the user
    has named the features, and ``unnamed`` are row numbers by their names, left out.
    """

    path: Path
    family: str
    target: str
    features: tuple[str, ...]
    named: bool
    categorical: tuple[str, ...]
    success: str | None
    weight: str | None
    trials: str | None
    exposure: str | None
    offset: str | None
    unnamed: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The columns whose values are read as text."""
        return self.categorical if self.success is None else (*self.categorical, self.target)

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns that are neither target nor features."""
        return tuple(filter(None, (self.weight, self.trials, self.exposure, self.offset)))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.features, self.target, *self.beside)


def require_names(path: Path, option: str, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise unless all wanted columns are there; suggest those that are meant."""
    for name in wanted:
        if name not in names:
            lower = {each.lower(): each for each in reversed(names)}
            close = [lower[each] for each in get_close_matches(name.lower(), lower, 3, 0.7)]
            more = ", ..." if len(names) > 10 else ""
            rest = (
                f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"its columns are {listed(names[:10])}{more}"
            )
            raise ValueError(
                f"{option} names the column {name!r}, which {path} does not have; {rest}"
            )


def choose(path: Path, names: Sequence[str], asked: Options) -> Choice:
    """Return which columns are read: all by default."""
    target = _check_target(asked)
    family = asked.family or ("gaussian" if asked.trials is None else "binomial")
    _check_options(asked, family)
    single = {
        "--events" if asked.events else "--target": target,
        "--trials": asked.trials,
        "--weight": asked.weight,
        "--exposure": asked.exposure,
        "--offset": asked.offset,
    }
    taken: dict[str, str] = {}
    for option, name in single.items():
        if name is not None:
            require_names(path, option, [name], names)
            if name in taken:
                raise ValueError(f"{option} and {taken[name]} are both {name!r}; drop one")
            taken[name] = option
    require_names(path, "--features", asked.features, names)
    require_names(path, "--categorical", asked.categorical, names)
    features, unnamed = list(asked.features), list[str]()
    if not features:
        unnamed = [name for name in names if name.startswith(UNNAMED) and name not in taken]
        features = [name for name in names if name not in taken and name not in unnamed]
    for name in features:
        if name in taken:
            raise ValueError(f"--features holds {name!r}, which is the {taken[name]} too; drop one")
    for name in asked.categorical:
        if name not in features:
            raise ValueError(f"--categorical holds {name!r}, which is not among the features")
    if not features:
        raise ValueError(
            f"{path} has no column besides {listed(list(taken))}; features are missing"
        )
    return Choice(
        path, family, target, tuple(dict.fromkeys(features)), bool(asked.features),
        tuple(asked.categorical), asked.success, asked.weight, asked.trials, asked.exposure,
        asked.offset, tuple(unnamed),
    )  # fmt: skip


def _check_target(asked: Options) -> str:
    """Return the column to predict: one option or two say which."""
    if asked.target is not None and asked.events is not None:
        raise ValueError("--target and --events both say what to predict; drop one")
    if (asked.events is None) != (asked.trials is None):
        there, lacks = (
            ("--trials", "--events") if asked.events is None else ("--events", "--trials")
        )
        raise ValueError(f"{there} was passed without {lacks}; pass both, or --target")
    target = asked.events if asked.target is None else asked.target
    if target is None:
        raise ValueError("say what to predict: --target COLUMN, or --events COLUMN --trials COLUMN")
    return target


def _check_options(asked: Options, family: str) -> None:
    """Raise if options contradict each other."""
    counted = asked.trials is not None
    for wrong, words in (
        (
            counted and family != "binomial",
            f"--events and --trials are for --family binomial, not {family}; drop --family",
        ),
        (
            counted and asked.success is not None,
            "--success is for a --target of words, not for --events; drop one",
        ),
        (counted and asked.weight is not None, "--trials are the weights; drop --weight"),
        (
            asked.success is not None and family != "binomial",
            "--success is for --family binomial; add that",
        ),
        (
            asked.exposure is not None and family != "poisson",
            "--exposure is for counts; add --family poisson",
        ),
        (
            asked.offset is not None and family == "binomial",
            "--offset is for --family gaussian and poisson; shares take none",
        ),
        (
            asked.noise != "auto" and family == "gaussian",
            f"--noise {asked.noise} is for --family binomial and poisson; leave it out",
        ),
    ):
        if wrong:
            raise ValueError(words)


def listed(names: Sequence[str]) -> str:
    """Return names in quotes, with commas."""
    return ", ".join(map(repr, names))
