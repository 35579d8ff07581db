"""A note on the terminal while kernels are compiled, which takes seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from time import perf_counter

PATIENCE = 1.0  # seconds of compiling, in all, before the note
NOTE = "noisewise: compiling kernels, once per machine (`noisewise warm-up` does so ahead)"
_spent = 0.0
_noted = False


def _note() -> None:
    global _noted
    if not _noted:
        _noted = True
        print(NOTE, file=sys.stderr)


@contextmanager
def noted() -> Iterator[None]:
    """Print the note, once per process, if what is done here takes long and someone may wait."""
    global _spent
    if _noted or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    timer, began = Timer(max(PATIENCE - _spent, 0.0), _note), perf_counter()
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _spent += perf_counter() - began
