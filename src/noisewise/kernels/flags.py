"""How kernels are compiled. Importing this drops machine code that was made from other sources."""

from pathlib import Path

from .cache import forget_stale

forget_stale(Path(__file__).parent)

# sums may be reordered, but NaN and infinity keep their meaning: the input checks need them
FAST = ("reassoc", "contract", "arcp", "nsz")
SPEED = {"fastmath": {*FAST}, "no_cfunc_wrapper": True}
INNER = {**SPEED, "no_cpython_wrapper": True, "forceinline": True, "cache": True}
ENTRY = {**SPEED, "cache": True, "nogil": True}
