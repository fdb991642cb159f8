"""Reading and rebuilding TVM's IR by reflection, the same way on every release.

Only reflection is common to the releases at hand: Python visitors of statements are gone in 0.27, loads are
``BufferLoad`` until 0.26 and ``TensorLoad`` from 0.27, and buffers became variables of a buffer type in 0.26.
Nodes are therefore told apart by class name and rebuilt field by field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tvm
from tvm import tirx

Node = Any
"""Any object of the compiler's IR; the compiler ships no type stubs."""

LOADS = ("BufferLoad", "TensorLoad")
NOT_CHILDREN = frozenset(
    {
        "span",
        "dtype",
        "ty",
        "struct_info_",
        "op",
        "attrs",
        "annotations",
        "buffer",
        "source",
        "var",
        "loop_var",
        "node",
    }
)
EXPRESSION: tuple[type, ...] = tuple(
    cls for cls in (getattr(tvm.ir, name, None) for name in ("Expr", "PrimExpr")) if cls is not None
)


def kind_of(node: Node) -> str:
    return type(node).__name__


def fields_of(node: Node) -> list[str]:
    """Names of all reflected fields, base classes first."""
    names: list[str] = []
    info = type(node).__tvm_ffi_type_info__
    while info is not None:
        names = [field.name for field in info.fields] + names
        info = info.parent_type_info
    return names


def rebuilt(node: Node, **changes: Node) -> Node:
    """A copy of ``node`` with some fields changed."""
    values = {name: changes[name] if name in changes else getattr(node, name) for name in fields_of(node)}
    return tvm.ir.make_node(type(node).__tvm_ffi_type_info__.type_key, **values)


def is_expression(value: object) -> bool:
    return isinstance(value, EXPRESSION)


def children(expression: Node) -> Iterator[tuple[str, Node]]:
    """The direct operands of an expression with the field that holds them; lists are flattened."""
    if kind_of(expression) in ("Var", "SizeVar", "IntImm", "FloatImm", "StringImm"):
        return
    for name in fields_of(expression):
        if name in NOT_CHILDREN:
            continue
        value = getattr(expression, name)
        if is_expression(value):
            yield name, value
        elif kind_of(value) == "Array":
            yield from ((name, item) for item in value if is_expression(item))


def loads_in(expression: Node) -> Iterator[Node]:
    if kind_of(expression) in LOADS:
        yield expression
    for _, child in children(expression):
        yield from loads_in(child)


def substituted(expression: Node, variable: Node, value: Node) -> Node:
    """``expression`` with ``value`` for every use of ``variable``."""
    if kind_of(expression) in ("Var", "SizeVar"):
        return value if expression.same_as(variable) else expression
    changes: dict[str, Node] = {}
    for name in {name for name, _ in children(expression)}:
        old = getattr(expression, name)
        if is_expression(old):
            changes[name] = substituted(old, variable, value)
        else:
            changes[name] = [substituted(item, variable, value) if is_expression(item) else item for item in old]
    return rebuilt(expression, **changes) if changes else expression


def dtype_of(expression: Node) -> str:
    """``int64``, ``bool``, ``float32x4``, ``handle`` …"""
    dtype = getattr(expression, "dtype", None)
    if dtype is None:
        dtype = getattr(getattr(expression, "ty", None), "dtype", "")
    return str(dtype)


def buffer_of(access: Node) -> Node:
    """The buffer of a load or store: a ``Buffer`` until 0.25, a variable of a buffer type from 0.26."""
    return access.source if kind_of(access) == "TensorLoad" else access.buffer


def data_of(buffer: Node) -> Node:
    """The variable that identifies a buffer's memory."""
    return buffer.data if kind_of(buffer) == "Buffer" else buffer


def int64(expression: Node) -> Node:
    return expression if dtype_of(expression) == "int64" else tirx.Cast("int64", expression)


def constant(value: int) -> Node:
    return tirx.IntImm("int64", value)


def truth(expression: Node) -> Node:
    """A condition of type bool; the compiler also accepts integers as conditions."""
    if dtype_of(expression) in ("bool", "uint1"):
        return expression
    return tirx.NE(expression, tirx.IntImm(dtype_of(expression), 0))


def true() -> Node:
    return tirx.IntImm("bool", 1)


def operator_of(call: Node) -> str:
    """The bare name of the operator a call node applies (its namespace moved), empty when it applies none."""
    return str(getattr(getattr(call, "op", None), "name", "")).rsplit(".", 1)[-1]


def analyzer() -> Node:
    """The arithmetic analyzer: ``tvm.arith`` until 0.26, ``tvm.sym`` from 0.27."""
    home = getattr(tvm, "arith", None) or tvm.sym
    return home.Analyzer()


def parameters(function: Node) -> dict[int, Node]:
    """Buffers among the arguments by position."""
    bound = dict(function.buffer_map.items()) if hasattr(function, "buffer_map") else {}
    buffers = {}
    for position, parameter in enumerate(function.params):
        if parameter in bound:
            buffers[position] = bound[parameter]
        elif kind_of(getattr(parameter, "ty", None)) == "BufferType":
            buffers[position] = parameter
    return buffers
