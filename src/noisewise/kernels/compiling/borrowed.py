"""Arguments that a call takes as they lie in Python's memory.

The compiler's own way looks up the types of all arguments, makes an owner for each array and counts
references to it: twice the time of learning a row of few features.

Arguments are read in their order, numbers before arrays: what is no float is asked for its number,
and its answer may be any code, which could move or free an array that was read before.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.datamodel.models import ProxyModel
from numba.core.pythonapi import NativeValue, _UnboxContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, register_model, unbox

WORD, INDEX, BYTE, NUMBER = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.DoubleType()
HEAD = object.__basicsize__  # what every object begins with
# fields of numpy's arrays and of their dtypes behind it, which its binary interface fixes
DATA, DIMENSIONS, SHAPE, DTYPE, FLAGS = HEAD, HEAD + 8, HEAD + 16, HEAD + 40, HEAD + 48
BYTE_ORDER, TYPE_NUMBER = HEAD + 10, HEAD + 12
ALIGNED_IN_ONE_PIECE, DOUBLE, NATIVE = 0x101, 12, ord("=")


class Borrowed(types.Type):  # type: ignore[misc]
    """The type of an argument that is read as it lies in memory."""

    def __init__(self, of: types.Type) -> None:
        self.of = of
        super().__init__(f"Borrowed({of})")


@register_model(Borrowed)
class BorrowedModel(ProxyModel):  # type: ignore[misc]
    """Lies where the argument itself would."""

    def __init__(self, manager: object, kind: Borrowed) -> None:
        super().__init__(manager, kind)
        self._proxied_model = self._dmm.lookup(kind.of)


def _field(build: ir.IRBuilder, thing: ir.Value, offset: int, kind: ir.Type) -> ir.Value:
    place = build.gep(build.bitcast(thing, BYTE.as_pointer()), [WORD(offset)])
    return build.load(build.bitcast(place, kind.as_pointer()))


def _read(kind: Borrowed, given: ir.Value, c: _UnboxContext) -> NativeValue:
    """Read an array of one axis, the caller knows that it is one, or a float or an integer."""
    read = _read_row if isinstance(kind.of, types.Array) else _read_number
    return NativeValue(read(kind.of, given, c), is_error=c.pyapi.c_api_error())


unbox(Borrowed)(_read)


def _read_row(kind: types.Array, given: ir.Value, c: _UnboxContext) -> ir.Value:
    build, row = c.builder, c.context.make_array(kind)(c.context, c.builder)
    dtype = _field(build, given, DTYPE, BYTE.as_pointer())
    flags = build.and_(_field(build, given, FLAGS, INDEX), INDEX(ALIGNED_IN_ONE_PIECE))
    fits = build.icmp_signed("==", _field(build, given, DIMENSIONS, INDEX), INDEX(1))
    for found, wanted in (
        (flags, INDEX(ALIGNED_IN_ONE_PIECE)),
        (_field(build, dtype, TYPE_NUMBER, INDEX), INDEX(DOUBLE)),
        (_field(build, dtype, BYTE_ORDER, BYTE), BYTE(NATIVE)),
    ):
        fits = build.and_(fits, build.icmp_signed("==", found, wanted))
    count = cgutils.alloca_once_value(build, WORD(0))
    with build.if_else(fits) as (then, otherwise):
        with then:
            shape = _field(build, given, SHAPE, WORD.as_pointer())
            build.store(build.load(shape), count)
        with otherwise:
            c.pyapi.err_set_string("PyExc_TypeError", "not a row of floats in one piece")
    n, step = build.load(count), WORD(8)
    c.context.populate_array(
        row, data=_field(build, given, DATA, row.data.type), shape=[n], strides=[step],
        itemsize=step, meminfo=None,
    )  # fmt: skip
    return row._getvalue()


def _read_number(kind: types.Float, given: ir.Value, c: _UnboxContext) -> ir.Value:
    """Read a float, or what is an index; text and arrays are neither."""
    build, api = c.builder, c.pyapi
    pointer, result = given.type, cgutils.alloca_once_value(c.builder, NUMBER(0.0))

    def call(name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
        kind = ir.FunctionType(result, [each.type for each in values])
        return build.call(cgutils.get_or_insert_function(build.module, kind, name), values)

    own = _field(build, given, HEAD - 8, pointer)
    real = call("PyType_IsSubtype", INDEX, own, api.get_c_object("PyFloat_Type"))
    with build.if_else(cgutils.is_true(build, real)) as (then, otherwise):
        with then:
            build.store(api.float_as_double(given), result)
        with otherwise:
            index = call("PyNumber_Index", pointer, given)
            with cgutils.if_likely(build, cgutils.is_not_null(build, index)):
                build.store(call("PyLong_AsDouble", NUMBER, index), result)
                api.decref(index)
    return build.load(result)


def _borrow(typing: object, given: types.Type) -> tuple[Signature, object]:
    kind = given.of if isinstance(given, Borrowed) else given

    def generate(
        context: BaseContext, build: ir.IRBuilder, _: Signature, values: list[ir.Value]
    ) -> ir.Value:
        if not isinstance(kind, types.Array):
            return values[0]
        array = context.make_array(kind)(context, build, values[0])
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()

    return kind(given), generate


# the number, or the array, to which references are not counted: the caller keeps it alive
borrow = intrinsic(_borrow)
