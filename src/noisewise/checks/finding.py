"""Finding an object of a user's by the name of its module."""

from __future__ import annotations

import os
import sys
from importlib import import_module

# what a user's own code may reasonably raise
FAULTS = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    OSError,
)


def find(target: str) -> object:
    """Return the object MODULE:NAME, an instance if it is a class; the folder one is in counts.

    >>> find("noisewise:Ridge")
    Ridge(ridge=0.5, clip=None)
    """
    module, _, name = target.partition(":")
    if not module or not name:
        raise ValueError(f"{target!r} is not of the form MODULE:NAME")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        home = import_module(module)
    except (ImportError, SyntaxError, *FAULTS) as error:
        raise ValueError(f"can't import {module!r}: {error!r}") from None
    try:
        thing = getattr(home, name)
    except AttributeError:
        raise ValueError(f"module {module!r} has no {name!r}") from None
    try:
        return thing() if isinstance(thing, type) else thing
    except FAULTS as error:
        raise ValueError(f"{name}() fails ({error}); name an instance instead") from None
