"""The members of an archive: plain arrays, stored as they are, read without trust."""

import io
import math
import os
import re
import stat
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# what numpy writes before an array; its own reader would evaluate it as Python
NPY = re.compile(
    rb"\x93NUMPY[\x01\x02\x03]\x00.{2,4}"
    rb"\{'descr': '([<>][fi]8|[<>]U[0-9]{1,8})', 'fortran_order': (True|False), "
    rb"'shape': \(([0-9, ]{0,60})\), \} *\n",
    re.DOTALL,
)
PREFACE = 4096  # of a member, where its array must have begun
WIDEST = 2**20  # of an empty array, whose shape no size limits
BROKEN = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def read_members(path: str | os.PathLike[str]) -> dict[str, NDArray[np.generic]] | None:
    """Return the arrays of a file by name; None where it is no zip file at all.

    Raises `ValueError` where the file is damaged. All sizes are within that of the file.
    """
    if not (stat.S_ISREG(os.stat(path).st_mode) or os.path.isdir(path)):
        raise ValueError("it is no file")
    raw = Path(path).read_bytes()
    if raw[:2] != b"PK":
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = archive.infolist()
            if sum(each.file_size for each in members) > len(raw):
                raise ValueError("its members are larger than the file")
            if len({each.filename for each in members}) < len(members):
                raise ValueError("two of its members have one name")
            return {each.filename.removesuffix(".npy"): _array(archive, each) for each in members}
    except BROKEN as error:
        raise ValueError(str(error) or type(error).__name__) from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[np.generic]:
    """Return one array, its checksum compared; native, aligned, in one piece and its own."""
    name = member.filename
    if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
        raise ValueError(f"{name} is compressed")
    data = archive.read(member)
    found = NPY.match(data[:PREFACE])
    if found is None:
        raise ValueError(f"{name} is no array of floats, integers or text")
    dtype = np.dtype(found[1].decode())
    shape = tuple(int(size) for size in found[3].replace(b",", b" ").split())
    if len(shape) > 3 or len(data) - found.end() != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name} has shape {shape}, which its size contradicts")
    if 0 in shape and max(shape) > WIDEST:
        raise ValueError(f"{name} has shape {shape}")
    if dtype.kind == "U":
        letters = np.frombuffer(data, f"{found[1][:1].decode()}u4", offset=found.end())
        if letters.max(initial=0) > sys.maxunicode:
            raise ValueError(f"{name} is no text")
    # numpy's own object for a type: fast paths compare by identity
    native = dtype.newbyteorder("=") if dtype.kind == "U" else np.dtype(dtype.type)
    flat = np.frombuffer(data, dtype, offset=found.end()).astype(native)
    return flat.reshape(shape[::-1]).T if found[2] == b"True" else flat.reshape(shape)
