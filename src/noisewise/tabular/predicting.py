"""Predictions for the rows of a file, as CSV, or of a data frame."""

import csv
import itertools
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
from pandas.api import types

from ..estimators.online_glm import LYING, OUTSIDE, WHY_OUTSIDE, OnlineGLM
from ..evaluation.progressive.players import NamedRows
from ..protocols import Array
from ..support.printing import count_of
from ..support.shell_words import in_shell_words
from . import saving
from .choosing import require_names
from .encoding import Encoding
from .problems import out_of_scale
from .reading import chunks, names_of
from .survey import floats, survey

WRITTEN = "prediction", "lower", "upper"
# what a spreadsheet would run: it begins so, also in characters of double width, and is more than
# a sign or, behind + and -, a number
FORMULA = r"(?s)[=@\t\r\n\uff1d\uff20].+|[+\-\uff0b\uff0d](?![\d.,:' ]*([eE][-+]?\d+)?%?\Z).+"
# csv quotes none of these, though a spreadsheet may take them for the end of a line or a cell
END = re.compile(r"[\r;\t]")
MOST_NOTES = 5  # of intervals
COUNTED = re.compile(rf"(; )?([0-9,]+) ({'|'.join(LYING)})")


def predict(
    model: str | PathLike[str],
    frame: pd.DataFrame,
    delta: float = 0.05,
    kind: str = "mean",
) -> pd.DataFrame:
    """Return the columns prediction, lower and upper for the rows of a data frame.

    ``model`` is a folder that ``noisewise fit`` has written. The frame has the columns of the file
    that was fitted, categories and dates as they are; ``delta`` and ``kind`` are those of
    `OnlineGLM.predict_interval`. A row that lacks a value, or has a level that the model has not
    seen, has NaN. Columns of exposure, offset and trials are used if the frame has them. What the
    intervals say of themselves is in ``attrs["note"]`` of the result.
    """
    fitted, encoding = saving.load(Path(model))
    missing = [name for name in encoding.columns if name not in frame.columns]
    if missing:
        raise ValueError(f"frame has no column {missing[0]!r}; the model needs {encoding.columns}")
    beside = [name for name in _beside(fitted, encoding, kind) if name in frame.columns]
    held = frame[[*encoding.columns, *beside]].reset_index(drop=True)
    for name in encoding.categorical:
        held[name] = _as_words(held[name])
    _check("the data frame", encoding, [held])
    values, note = _values(fitted, encoding, held, delta, kind)
    found = pd.DataFrame(values, columns=list(WRITTEN), index=frame.index)
    found.attrs["note"] = note
    return found


def _as_words(values: pd.Series) -> pd.Series:
    """Return levels as a file spells them: the whole number 2.0 as 2."""
    known = values[values.notna()]
    if types.is_float_dtype(values) and (known == known.round()).all():
        values = values.astype("Int64")
    given = values.astype("object")
    return given.where(given.isna(), given.astype("str"))


def _beside(model: OnlineGLM, encoding: Encoding, kind: str) -> dict[str, str]:
    """Return the columns that say what is predicted, and what is if one is not there."""
    shares = kind == "observation" and model.family == "binomial"
    found = {
        encoding.exposure: "predictions are per unit of it",
        encoding.offset: "predictions are for an offset of 0",
        encoding.counted if shares else None: "intervals are for one trial",
    }
    return {name: words for name, words in found.items() if name is not None}


def _check(name: str, encoding: Encoding, frames: Iterable[pd.DataFrame]) -> None:
    """Raise if a column holds something else than it did when the model learnt."""
    found = survey(frames, encoding.categorical)
    wrong = []
    for other in (each for each in found.values() if each.name not in encoding.columns):
        if other.missing < other.count and other.kind != "number":
            wrong.append(f"column {other.name!r} holds {other.kind}, not numbers")
        elif other.name != encoding.offset and other.low <= 0:
            wrong.append(f"column {other.name!r} must be above 0; it goes to {other.low:g}")
        elif other.name == encoding.counted and not other.whole:
            wrong.append(f"column {other.name!r} must hold whole numbers of trials")
        elif other.name == encoding.exposure:
            wrong += out_of_scale(other)
    for each in encoding.features:
        column = found.get(each.column)
        if column is None or not column.count:
            raise ValueError(f"{name} has column names but no rows; pass some rows")
        if column.missing < column.count and column.kind != each.kind:
            place = f"{column.example!r} in row {column.places.get('wrong', 1)}"
            wrong.append(f"column {each.column!r} holds {column.kind} ({place}), not {each.kind}")
        if column.infinite:
            row = column.places["infinite"]
            wrong.append(f"column {each.column!r} holds infinite values (first in row {row})")
    if wrong:
        raise ValueError("\n  ".join([f"{name} can't be used as it is:", *wrong]))


def _values(
    model: OnlineGLM, encoding: Encoding, frame: pd.DataFrame, delta: float, kind: str
) -> tuple[Array, str]:
    """Return prediction, lower and upper of each row, NaN where it can't be encoded, and a note."""
    x, whole = encoding.rows(frame)
    offset, trials = encoding.shift(frame), np.ones(len(frame))
    if encoding.counted in frame.columns:  # read for new shares alone
        trials = floats(frame[encoding.counted], "number")
    whole = whole & ~np.isnan(trials)
    if offset is not None:
        whole = whole & ~np.isnan(offset)
    values = np.full((len(frame), len(WRITTEN)), np.nan)
    if not whole.any():
        return values, ""
    rows = NamedRows(x[whole], encoding.names)
    shift = None if offset is None else offset[whole]
    counts = trials[whole] if kind == "observation" and model.family == "binomial" else 1
    found = model.predict_interval(rows, delta, kind=kind, offset=shift, trials=counts)
    values[whole] = np.column_stack([model.predict(rows, shift), *found])
    return values, found.note


class Predictions:
    """Predictions with intervals for each row of a file.

    A row that lacks a feature, or has a level that the model has not seen, has empty cells;
    ``notes`` says how many there were and which levels, once all are written.
    """

    def __init__(
        self,
        model: OnlineGLM,
        encoding: Encoding,
        path: Path,
        delta: float = 0.05,
        kind: str = "mean",
        keep: Sequence[str] = (),
        formulas: bool = False,
    ) -> None:
        names = names_of(path)
        require_names(path, "the model", encoding.columns, names)
        require_names(path, "--keep", keep, names)
        for name in WRITTEN:
            if name in keep:
                raise ValueError(f"--keep holds {name!r}, a column that is written; rename yours")
        self.model, self.encoding, self.path = model, encoding, path
        self.delta, self.kind, self.keep = delta, kind, tuple(dict.fromkeys(keep))
        self.formulas, self.quoted = formulas, 0
        self.rows, self.empty, self.outside = 0, 0, 0
        self.said: list[str] = []
        self.unseen: dict[tuple[str, str], int] = {}
        beside = _beside(model, encoding, kind)
        self.beside = [name for name in beside if name in names]
        self.absent = {name: words for name, words in beside.items() if name not in names}
        columns = (*encoding.columns, *self.beside)
        _check(str(path), encoding, chunks(path, columns, encoding.categorical))

    def write(self, file: IO[str]) -> None:
        """Write CSV: kept columns, then prediction, lower and upper."""
        for i, frame in enumerate(self._frames()):
            kept = frame.iloc[:, : len(self.keep)].select_dtypes(exclude="number")
            words = itertools.chain(frame, kept.to_numpy().ravel())
            apart = any(END.search(str(word)) for word in words)
            quoting = csv.QUOTE_ALL if apart else csv.QUOTE_MINIMAL
            frame.to_csv(file, index=False, header=not i, quoting=quoting)

    def _frames(self) -> Iterator[pd.DataFrame]:
        used = (*self.encoding.columns, *self.beside)
        columns = tuple(dict.fromkeys((*used, *self.keep)))
        kept_words = [name for name in self.keep if name not in used]
        for frame in chunks(self.path, columns, [*self.encoding.categorical, *kept_words]):
            for each in self.encoding.features:
                for level, row in each.unseen(frame[each.column]):
                    self.unseen.setdefault((each.column, level), row)
            given = frame[list(used)]
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always", UserWarning)
                values, note = _values(self.model, self.encoding, given, self.delta, self.kind)
            for said in (*(str(each.message) for each in heard), note):
                self._hear(said)
            self.rows += len(frame)
            mean = values[:, 0]
            self.empty += int(np.isnan(mean).sum())
            out = self._harmless(frame[list(self.keep)].reset_index(drop=True))
            for name, column in zip(WRITTEN, values.T, strict=True):
                out[name] = ["" if math.isnan(value) else f"{value:.8g}" for value in column]
            yield out

    def _harmless(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return kept columns with an apostrophe before what a spreadsheet would run."""
        if self.formulas:
            return frame
        for name in frame.columns:
            if not types.is_numeric_dtype(frame[name]) and not types.is_bool_dtype(frame[name]):
                words = frame[name].astype("object")
                runs = words.astype("str").str.fullmatch(FORMULA) & words.notna()
                self.quoted += int(runs.sum())
                frame[name] = words.where(~runs, "'" + words.astype("str"))
        heads = {name: f"'{name}" for name in self.keep if re.fullmatch(FORMULA, name)}
        return frame.rename(columns=heads)

    def _hear(self, note: str) -> None:
        """Keep what intervals say of themselves, once; predictions outside are counted here."""
        if found := COUNTED.search(note):
            self.outside += int(found[2].replace(",", ""))
        own = in_shell_words(note[: found.start()] if found else note)
        if own and own not in self.said:
            self.said.append(own)

    @property
    def notes(self) -> list[str]:
        """What a reader of the predictions should know."""
        notes = []
        if self.empty:
            lack = count_of(self.empty, "row lacks a value, or has", "rows lack a value, or have")
            notes.append(f"{lack} an unknown one: left empty")
        if self.outside:
            lying = OUTSIDE.format(count_of(self.outside, *LYING))
            notes.append(f"{lying}: {WHY_OUTSIDE}")
        if self.quoted:
            cells = count_of(self.quoted, "kept cell begins", "kept cells begin")
            notes.append(
                f"{cells} like a formula of a spreadsheet: written behind an apostrophe; "
                "--formulas keeps such cells as they are"
            )
        for name, words in self.absent.items():
            notes.append(f"{self.path} has no column {name!r}: {words}")
        notes += self.said[:MOST_NOTES]
        for (column, level), row in list(self.unseen.items())[:10]:
            notes.append(f"column {column!r}: {level!r} (row {row}) was not there when fitting")
        return notes
