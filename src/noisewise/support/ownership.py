"""One thread at a time, and no use of a state that an interrupted update left half written.

`Owned` is a state that is read, or written by a call that puts back what it changed. `Writing` is
one that whoever has it next can recover; `writes` is for methods of all others, which are refused.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from threading import get_ident
from typing import Protocol, TypeVar, cast

import numpy as np

from .forking import Inside, abandoned

Update = TypeVar("Update", bound=Callable[..., object])


class InUse(ValueError):
    """Another thread has the state."""


class Owned:
    """A state while this thread has it; another thread is refused."""

    def __init__(self, state: object) -> None:
        self.state, self.inside = state, Inside(state)

    def __enter__(self) -> None:
        try:
            self.inside.__enter__()
            me = get_ident()
            # one call of C, so no other thread comes between the look and the mark
            if vars(self.state).setdefault("_owner", me) != me:
                raise InUse(
                    f"this {type(self.state).__name__} is in use by another thread; give each "
                    "thread a state of its own, or share an Agent, which locks"
                )
        except BaseException:
            Owned.__exit__(self)
            raise

    def __exit__(self, *_: object) -> None:
        try:
            try:
                self._release()
            finally:
                self._release()  # an interrupt may have cut the first one short
        finally:
            self.inside.__exit__()

    def _release(self) -> None:
        if vars(self.state).get("_owner") == get_ident():
            del vars(self.state)["_owner"]


class Marked(Protocol):
    """What says that a state is being written, or that an interrupt or an error ended that."""

    busy: float


class Writing(Owned):
    """A state while it is written: marked busy until all is done, and recovered first if it was."""

    def __init__(
        self, state: object, mark: Callable[[], Marked], recover: Callable[[], object]
    ) -> None:
        super().__init__(state)
        self.mark, self.recover = mark, recover

    def __enter__(self) -> None:
        super().__enter__()
        try:
            mark = self.mark()
            torn, mark.busy = mark.busy, 1.0
            if torn:
                self.recover()
        except BaseException:
            super().__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self.mark().busy = 0.0
        finally:
            super().__exit__()


def refused(error: BaseException) -> bool:
    """Whether an update ended with this because of its input, before anything was written."""
    return isinstance(error, ValueError | Warning) and not isinstance(error, np.linalg.LinAlgError)


class Interrupted:
    """What becomes of a state whose update was interrupted half-way: every use is refused."""

    def __repr__(self) -> str:
        return "<a state whose update was interrupted half-way>"

    def __getattribute__(self, name: str) -> object:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise ValueError(
            "an update of this state was interrupted half-way, so its numbers can't be trusted; "
            "load a saved copy or start again"
        )


def whole(error: BaseException) -> bool:
    """Whether a state is right though its update ended with this, if it is written at once."""
    compiled = import_module("noisewise.kernels.compiling.compile_options").COMPILED
    return refused(error) or (isinstance(error, KeyboardInterrupt) and bool(compiled))


def writes(update: Update, harmless: Callable[[BaseException], bool] = refused) -> Update:
    """Make a method ``update(self, state, ...)`` exclusive, and a state it leaves torn unusable."""

    @wraps(update)
    def guarded(self: object, state: object, *args: object, **kwargs: object) -> object:
        with Owned(state):
            try:
                return update(self, state, *args, **kwargs)
            except BaseException as error:
                if not harmless(error):
                    state.__class__ = Interrupted
                raise

    return cast(Update, guarded)


def writes_at_once(update: Update) -> Update:
    """Do the same for a method that writes in one compiled call, which no interrupt divides."""
    return writes(update, whole)


def _forked() -> None:
    """Refuse states that another thread was inside when a fork could wait no longer."""
    for state in abandoned:
        if vars(state).pop("_owner", None) is not None:
            state.__class__ = Interrupted
    abandoned.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)
