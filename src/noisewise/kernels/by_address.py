"""A kernel called by another one where it lies in memory.

A part is compiled into every kernel that calls it. A kernel that others merely repeat need not be:
they are given its address, so it is compiled once and rounds alike whoever calls it.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import int64
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from .compile_options import COMPILED, Entry

Kernel = Callable[..., Any]


def compiled(kernel: Kernel) -> Any:
    """Return the compiled form of an entry."""
    return kernel.compile() if isinstance(kernel, Entry) else kernel


def address(kernel: Kernel) -> int:
    """Return where the machine code of an entry lies, compiled or loaded now; 0 without one."""
    if not COMPILED:
        return 0
    (made,) = compiled(kernel).overloads.values()
    place: int = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return place


def caller(kernel: Kernel, kind: Signature) -> Kernel:
    """Return what kernels call an entry of this signature by: with its address before the rest."""
    if not COMPILED:
        return lambda _, *arguments: kernel(*arguments)

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

    def typed(_: object, *kinds: types.Type) -> tuple[Signature, Any]:
        return kind.return_type(int64, *kind.args), generate

    made: Kernel = intrinsic(typed)
    return made
