"""What numbers depend on beside the seed: the sources, the packages, the processor."""

import ctypes
import hashlib
import os
import platform
import re
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy as np

HOME = import_module("noisewise")
PACKAGE = Path(str(HOME.__file__)).parent


@cache
def sources() -> str:
    """Return the digest of all Python files of the package, as they are at the first call."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of what computes; Python's counts to the minor one."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return {"noisewise": str(HOME.__version__), **packages, "python": platform.python_version()}


def key() -> list[str]:
    """Return what results of an earlier run must share with this one to be used again."""
    *packages, python = versions().values()
    return [sources(), *packages, python.rpartition(".")[0]]


@cache
def machine() -> dict[str, str]:
    """Return what may change the last bit of a number: processor, BLAS, kinds of instructions."""
    import llvmlite.binding as llvm

    config = cast(dict[str, dict[str, object]], np.show_config(mode="dicts"))
    blas = cast(dict[str, str], config["Build Dependencies"]["blas"])
    simd = cast(dict[str, list[str]], config["SIMD Extensions"])
    return {
        "processor": _processor(),
        "BLAS": " ".join(filter(None, (blas.get("name"), blas.get("version"), _blas_core()))),
        "numpy's loops": ", ".join((*simd.get("baseline", ()), *simd.get("found", ()))),
        "compiled code": os.environ.get("NUMBA_CPU_NAME") or str(llvm.get_host_cpu_name()),
    }


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.*)", file.read_text(), re.M) if file.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def _blas_core() -> str:
    """Return the kind of processor OpenBLAS took its kernels for, empty where it does not say."""
    maps = Path("/proc/self/maps")
    loaded = re.findall(r"/\S*openblas\S*", maps.read_text()) if maps.exists() else []
    for path in dict.fromkeys(loaded):
        library = ctypes.CDLL(path)
        for prefix in ("scipy_", ""):
            for suffix in ("64_", ""):
                ask = getattr(library, f"{prefix}openblas_get_corename{suffix}", None)
                if ask is not None:
                    ask.restype = ctypes.c_char_p
                    return str(ask().decode())
    return ""
