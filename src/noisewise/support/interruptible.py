"""An interrupt is heard during a long call of compiled code."""

from collections.abc import Callable
from functools import wraps
from threading import Event, Thread, current_thread, main_thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

OFTEN = 0.1  # seconds between two moments at which an interrupt is heard


def interruptible(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function run in a thread of its own, for which the main thread waits.

    Python hears an interrupt between two of its own instructions, so not during a factor of a large
    matrix. The thread of an interrupted call ends by itself; nobody looks at what it found, and
    what it writes must not be used. Other threads, which hear no interrupts, call the function.
    """

    @wraps(function)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> R:
        if current_thread() is not main_thread():
            return function(*args, **kwargs)
        found: list[R] = []
        failed: list[BaseException] = []
        done = Event()

        def run() -> None:
            try:
                found.append(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001
                failed.append(error)
            finally:
                done.set()

        Thread(target=run, daemon=True).start()
        while not done.wait(OFTEN):
            pass
        if failed:
            raise failed[0]
        return found[0]

    return waiting
