"""How kernels are compiled. Importing this drops machine code that was made from other sources."""

from pathlib import Path

from .cache import forget_stale

forget_stale(Path(__file__).parent)

# sums may be reordered, but NaN and infinity keep their meaning: the input checks need them
FAST = ("reassoc", "contract", "arcp", "nsz")
SPEED = {"fastmath": {*FAST}, "no_cfunc_wrapper": True}
# Python calls entries, kernels call parts. Parts are not cached: code made around a loaded part
# rounds differently from code made around a compiled one, so a result would depend on the disk.
ENTRY = {**SPEED, "cache": True, "nogil": True}
PART = {**SPEED, "no_cpython_wrapper": True}
INNER = {**PART, "forceinline": True}
