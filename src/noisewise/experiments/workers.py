"""Worker processes that end with the process that started them, however that ends."""

import os
import threading
import time
from functools import cache

PAUSE = 0.5  # seconds between looks


@cache
def end_with(parent: int) -> None:
    """End this process once ``parent`` is no longer its parent; nothing where it is itself that.

    What a worker writes is there whole or not at all, so it may end at any moment.
    """
    if os.getpid() != parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os._exit(1)
