"""Read and rebuild TVM's IR by reflection, in the same way on every release.

The releases have only reflection in common. Python visitors of statements are gone in 0.27. Loads are ``BufferLoad``
until 0.26 and ``TensorLoad`` from 0.27. Buffers became variables of a buffer type in 0.26. So this module
distinguishes nodes by class name and rebuilds them field by field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tvm
from tvm import tirx

Node = Any
"""Any object of the compiler's IR. The compiler has no type stubs."""

LOADS = ("BufferLoad", "TensorLoad")
NOT_CHILDREN = frozenset(
    {
        "span", "dtype", "ty", "struct_info_", "op", "attrs", "annotations", "buffer", "source", "var", "loop_var",
        "node",
    }
)  # fmt: skip
EXPRESSION: tuple[type, ...] = tuple(
    cls for cls in (getattr(tvm.ir, name, None) for name in ("Expr", "PrimExpr")) if cls is not None
)


def get_kind(node: Node) -> str:
    return type(node).__name__


def list_fields(node: Node) -> list[str]:
    """Return the names of all reflected fields, base classes first."""
    names: list[str] = []
    info = type(node).__tvm_ffi_type_info__
    while info is not None:
        names = [field.name for field in info.fields] + names
        info = info.parent_type_info
    return names


def rebuild_node(node: Node, **changes: Node) -> Node:
    """Return a copy of ``node`` with some fields changed."""
    values = {name: changes[name] if name in changes else getattr(node, name) for name in list_fields(node)}
    return tvm.ir.make_node(type(node).__tvm_ffi_type_info__.type_key, **values)


def has_library_expressions(tensors: Sequence[Node]) -> bool:
    """True if the compiler's operator library made one of the expressions behind ``tensors``. It tags them."""
    waiting = [one.op for one in tensors if hasattr(one, "op")]
    seen: list[Node] = []
    while waiting:
        operation = waiting.pop()
        if any(operation.same_as(one) for one in seen):
            continue
        if str(getattr(operation, "tag", "")):
            return True
        seen.append(operation)
        waiting += [one.op for one in getattr(operation, "input_tensors", ())]
    return False


def is_expression(value: object) -> bool:
    return isinstance(value, EXPRESSION)


def iterate_operands(expression: Node) -> Iterator[tuple[str, Node]]:
    """Yield the direct operands of an expression, each with the name of its field. Lists are flattened."""
    if get_kind(expression) in ("Var", "SizeVar", "IntImm", "FloatImm", "StringImm"):
        return
    for name in list_fields(expression):
        if name in NOT_CHILDREN:
            continue
        value = getattr(expression, name)
        if is_expression(value):
            yield name, value
        elif get_kind(value) == "Array":
            yield from ((name, item) for item in value if is_expression(item))


def iterate_loads(expression: Node) -> Iterator[Node]:
    if get_kind(expression) in LOADS:
        yield expression
    for _, child in iterate_operands(expression):
        yield from iterate_loads(child)


def substitute_variable(expression: Node, variable: Node, value: Node) -> Node:
    """Return ``expression`` with every use of ``variable`` replaced by ``value``."""
    if get_kind(expression) in ("Var", "SizeVar"):
        return value if expression.same_as(variable) else expression
    changes: dict[str, Node] = {}
    for name in {name for name, _ in iterate_operands(expression)}:
        old = getattr(expression, name)
        if is_expression(old):
            changes[name] = substitute_variable(old, variable, value)
        else:
            changes[name] = [
                substitute_variable(item, variable, value) if is_expression(item) else item for item in old
            ]
    return rebuild_node(expression, **changes) if changes else expression


def get_dtype(expression: Node) -> str:
    """Return the type as text: ``int64``, ``bool``, ``float32x4``, ``handle``."""
    dtype = getattr(expression, "dtype", None)
    if dtype is None:
        dtype = getattr(getattr(expression, "ty", None), "dtype", "")
    return str(dtype)


def get_buffer(access: Node) -> Node:
    """Return the buffer of a load or store: a ``Buffer`` until 0.25, a variable of a buffer type from 0.26."""
    return access.source if get_kind(access) == "TensorLoad" else access.buffer


def get_memory(buffer: Node) -> Node:
    """Return the variable that identifies a buffer's memory."""
    return buffer.data if get_kind(buffer) == "Buffer" else buffer


def cast_int64(expression: Node) -> Node:
    return expression if get_dtype(expression) == "int64" else tirx.Cast("int64", expression)


def make_constant(value: int) -> Node:
    return tirx.IntImm("int64", value)


def make_condition(expression: Node) -> Node:
    """Return a condition of type bool. The compiler also accepts integers as conditions."""
    if get_dtype(expression) in ("bool", "uint1"):
        return expression
    return tirx.NE(expression, tirx.IntImm(get_dtype(expression), 0))


def make_true() -> Node:
    return tirx.IntImm("bool", 1)


def get_operator(call: Node) -> str:
    """Return the operator's name without its namespace, which moved between releases. Empty without an operator."""
    return str(getattr(getattr(call, "op", None), "name", "")).rsplit(".", 1)[-1]


def make_analyzer() -> Node:
    """Return the arithmetic analyzer, from ``tvm.arith`` until 0.26 and ``tvm.sym`` from 0.27."""
    home = getattr(tvm, "arith", None) or tvm.sym
    return home.Analyzer()


def list_buffers(function: Node) -> dict[int, Node]:
    """Return the buffers among the parameters by position."""
    bound = dict(function.buffer_map.items()) if hasattr(function, "buffer_map") else {}
    buffers = {}
    for position, parameter in enumerate(function.params):
        if parameter in bound:
            buffers[position] = bound[parameter]
        elif get_kind(getattr(parameter, "ty", None)) == "BufferType":
            buffers[position] = parameter
    return buffers


SPELLED_AS_CALLS: Mapping[str, str] = {
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "shift_left": "LShift",
    "shift_right": "RShift",
}
"""Operators that are calls until 0.26, and separate nodes from 0.27."""
