"""A kernel called by another one where it lies in memory.

A part is compiled into every kernel that calls it. A kernel that others merely repeat need not be:
they are given its address, so it is compiled once and rounds alike whoever calls it.
"""

from collections.abc import Callable
from inspect import Parameter
from inspect import Signature as PythonSignature
from typing import Any

from llvmlite import ir
from numba import int64
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from .compile_options import COMPILED, Entry

Kernel = Callable[..., Any]
plain: dict[int, Kernel] = {}  # what lies where, without a compiler


def address(kernel: Kernel) -> int:
    """Return where the machine code of an entry lies, compiled or loaded now."""
    if not COMPILED:
        plain[id(kernel)] = kernel
        return id(kernel)
    found: Any = kernel.compile() if isinstance(kernel, Entry) else kernel
    (made,) = found.overloads.values()
    place: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return place


def caller(kind: Signature) -> Kernel:
    """Return what kernels call entries of a signature by: an address, and their arguments."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, _: Signature, values: list[ir.Value]
    ) -> ir.Value:
        convention = context.call_conv
        shape = convention.get_function_type(kind.return_type, kind.args)
        function = builder.inttoptr(values[0], shape.as_pointer())
        status, result = convention.call_function(
            builder, function, kind.return_type, kind.args, values[1:]
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    def call(*_: object) -> tuple[Signature, Any]:
        return kind.return_type(int64, *kind.args), generate

    # the compiler asks for a name of each: its own argument, the address, and those of the entry
    names = ["context", "place", *(f"given_{i}" for i in range(len(kind.args)))]
    each = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    call.__signature__ = PythonSignature(each)  # type: ignore[attr-defined]
    made: Kernel = intrinsic(call) if COMPILED else lambda place, *given: plain[place](*given)
    return made
