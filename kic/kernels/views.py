"""Views of parts of flat arrays as tables."""

from __future__ import annotations

from kic.kernels.jit import extension


def table(a, start, rows, width):
    """Return a view (rows, width) of a contiguous array (n,) from an index on.

    The compiled version does not check bounds. Numba's `reshape` is a function call, at half the cost of
    computing a frame.
    """
    return a[start : start + rows * width].reshape(rows, width)


@extension
def _register_table():
    """Compile `table`."""
    from numba.core import types
    from numba.extending import lower_builtin, type_callable
    from numba.np.arrayobj import make_array, populate_array

    @type_callable(table)
    def _type_of_table(context):
        return lambda a, start, rows, width: a.copy(ndim=2)

    @lower_builtin(table, types.Array, types.Integer, types.Integer, types.Integer)
    def _compile_table(context, builder, signature, arguments):
        """Build the structure of the view; Numba does not return arrays from helpers without its runtime."""
        source, kind = signature.args[0], types.intp
        start, *shape = (
            context.cast(builder, value, given, kind)
            for value, given in zip(arguments[1:], signature.args[1:], strict=True)
        )
        size = context.get_constant(kind, context.get_abi_sizeof(context.get_data_type(source.dtype)))
        view = make_array(signature.return_type)(context, builder)
        populate_array(
            view,
            data=builder.gep(make_array(source)(context, builder, arguments[0]).data, [start]),
            shape=shape,
            strides=[builder.mul(shape[1], size), size],
            itemsize=size,
            meminfo=None,
        )
        return view._getvalue()
