"""One thread at a time, and no use of a state that an interrupted update left half written."""

import os
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from threading import get_ident
from typing import TypeVar, cast

import numpy as np

from .forking import Inside, abandoned

Update = TypeVar("Update", bound=Callable[..., object])


class InUse(ValueError):
    """Another thread has the state."""


def claim(state: object) -> None:
    """Take the state for this thread until `release`; refuse it where another thread has it."""
    me = get_ident()
    # one call of C, so no other thread comes between the look and the mark
    if vars(state).setdefault("_owner", me) != me:
        raise InUse(
            f"this {type(state).__name__} is in use by another thread; give each thread a state "
            "of its own, or share an Agent, which locks"
        )


def release(state: object) -> None:
    """Give the state back, if this thread has it."""
    me = get_ident()
    try:
        if vars(state).get("_owner") == me:
            del vars(state)["_owner"]
    finally:
        if vars(state).get("_owner") == me:  # an interrupt has cut it short
            del vars(state)["_owner"]


class Owned:
    """A state while this thread has it."""

    def __init__(self, state: object) -> None:
        self.state, self.inside = state, Inside(state)

    def __enter__(self) -> None:
        try:
            self.inside.__enter__()
            claim(self.state)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            release(self.state)
        finally:
            self.inside.__exit__()


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


def writes(update: Update) -> Update:
    """Make a method ``update(self, state, ...)`` exclusive, and a state it leaves torn unusable."""
    return _guarded(update, refused)


def writes_at_once(update: Update) -> Update:
    """Do the same for a method that writes in one compiled call, which no interrupt divides."""
    return _guarded(update, whole)


def whole(error: BaseException) -> bool:
    """Whether a state is right though its update ended with this, if it is written at once."""
    return refused(error) or (isinstance(error, KeyboardInterrupt) and _compiled())


def _compiled() -> bool:
    compiled: bool = import_module("noisewise.kernels.compile_options").COMPILED
    return compiled


def _guarded(update: Update, harmless: Callable[[BaseException], bool]) -> Update:
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


def _forked() -> None:
    """Refuse states that another thread was inside when a fork could wait no longer."""
    for state in abandoned:
        if vars(state).pop("_owner", None) is not None:
            state.__class__ = Interrupted
    abandoned.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
