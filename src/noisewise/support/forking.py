"""Forks: a child finds agents and states whole and free, and draws random numbers of its own.

A fork copies memory as it is, and only the thread that forks goes on in the child. So it waits
until no other thread is inside an agent or a state, and these wait until it is done.
"""

# Before a fork, handlers run in the reverse order of their registration. Those of logging and of
# executors take locks that a thread inside may need, so they are registered before ours.
import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import sys
import time
import weakref
from threading import Event, Lock, get_ident
from typing import Protocol

PATIENCE = 5.0  # seconds that a fork waits for threads inside, which may have to compile first


class Forkable(Protocol):
    """What has something to renew in a child."""

    def _forked(self, child: int) -> None:
        """Make this the copy of a child, the n-th of its parent."""


abandoned: list[object] = []  # in a child: what other threads were inside when patience ran out
_inside: dict[int, list[object]] = {}  # the agents and states that each thread is in
_gate: Event | None = None  # set once the fork under way is done
_turn = Lock()  # one fork at a time
_children = 0  # forked by this process
_registered: dict[int, "weakref.ref[Forkable]"] = {}


class Inside:
    """A thread while it is inside an agent or a state; it waits where another is about to fork."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __enter__(self) -> None:
        me = get_ident()
        entered = _inside.setdefault(me, [])
        entered.append(self.thing)
        while (gate := _gate) is not None and len(entered) == 1:  # else it is to finish first
            del _inside[me]
            waited = gate.wait(2 * PATIENCE)
            _inside[me] = entered
            if not waited:
                break

    def __exit__(self, *_: object) -> None:
        me = get_ident()
        entered = _inside.get(me, [])
        if entered:
            entered.pop()
        if not entered:
            _inside.pop(me, None)


def register(thing: Forkable) -> None:
    """Let ``thing._forked`` be called in every child, as long as the thing lives."""
    key = id(thing)
    _registered[key] = weakref.ref(thing, lambda _: _registered.pop(key, None))


def _before() -> None:
    global _gate
    _turn.acquire()
    _gate, deadline = Event(), time.monotonic() + PATIENCE
    while _inside.keys() - {get_ident()} and time.monotonic() < deadline:
        time.sleep(1e-4)


def _after_in_parent() -> None:
    global _children, _gate
    _children += 1
    gate, _gate = _gate, None
    if gate is not None:
        gate.set()
    _turn.release()


def _after_in_child() -> None:
    global _children, _gate, _turn
    child, _children, _gate, _turn = _children + 1, 0, None, Lock()
    own = _inside.pop(get_ident(), [])
    abandoned[:] = [thing for entered in _inside.values() for thing in entered]
    _inside.clear()
    if own:
        _inside[get_ident()] = own
    for each in list(_registered.values()):
        if (thing := each()) is not None:
            thing._forked(child)


if sys.platform != "win32":
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
