"""Determine static effects of a TIR statement: memory that it may write or allocate, its names, and early exits."""

from __future__ import annotations

from collections.abc import Iterator

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node

PURE = 1
"""``CallEffectKind::kPure``; 0 is an annotation of an expression."""


def get_memory_key(buffer: Node) -> int:
    """Return a key that identifies a buffer's memory as long as the function exists."""
    return hash(ir.get_memory(buffer))


def iterate_statements(node: Node) -> Iterator[Node]:
    """Yield ``node`` and every statement inside it."""
    yield node
    inside: list[Node] = []
    match ir.get_kind(node):
        case "SeqStmt":
            inside = list(node.seq)
        case "IfThenElse":
            inside = [part for part in (node.then_case, node.else_case) if part is not None]
        case "For" | "While" | "AttrStmt":
            inside = [node.body]
        case "SBlockRealize":
            inside = [part for part in (node.block.init, node.block.body) if part is not None]
    for part in inside:
        yield from iterate_statements(part)


def find_written(node: Node) -> frozenset[int]:
    """Return the memory that a statement may write: targets of stores, viewed buffers, and names in calls."""
    found: set[int] = set()
    for statement in iterate_statements(node):
        match ir.get_kind(statement):
            case "BufferStore":
                found.add(get_memory_key(statement.buffer))
                found |= find_escaping(statement.value)
            case "Evaluate" | "Bind":
                found |= find_escaping(statement.value)
            case "DeclBuffer" if getattr(statement, "data", None) is not None:
                found |= find_named(statement.data)
            case "SBlockRealize":
                for match in statement.block.match_buffers:
                    found.add(get_memory_key(get_viewed_buffer(match)))
    return frozenset(found)


def find_allocated(node: Node) -> frozenset[int]:
    """Return the memory that a statement allocates."""
    found: set[int] = set()
    for statement in iterate_statements(node):
        if ir.get_kind(statement) == "AllocBuffer":
            found.add(get_memory_key(statement.buffer))
        elif ir.get_kind(statement) == "SBlockRealize":
            found |= {get_memory_key(buffer) for buffer in statement.block.alloc_buffers}
    return frozenset(found)


def has_early_exit(node: Node) -> bool:
    """True if a statement may end a loop or the function early."""
    return any(
        ir.get_kind(statement) in ("Break", "Continue", "Return")
        or (
            ir.get_kind(statement) == "Evaluate"
            and ir.get_operator(statement.value) in ("ret", "break_loop", "continue_loop")
        )
        for statement in iterate_statements(node)
    )


def find_named(expression: Node) -> frozenset[int]:
    """Return the keys of the variables and buffers in an expression."""
    found: set[int] = set()
    if ir.get_kind(expression) in ("Var", "SizeVar"):
        found.add(hash(expression))
    elif ir.get_kind(expression) in ir.LOADS:
        found.add(get_memory_key(ir.get_buffer(expression)))
    for _, child in ir.iterate_operands(expression):
        found |= find_named(child)
    return frozenset(found)


def find_escaping(expression: Node) -> frozenset[int]:
    """Return the memory that an expression passes to unknown code, or whose address it takes."""
    if ir.get_kind(expression) == "Call" and ir.get_operator(expression) not in ("if_then_else", "likely"):
        return find_named(expression) if not is_pure(expression.op) else frozenset()
    if ir.get_kind(expression) in ("Var", "SizeVar"):
        return frozenset({hash(expression)})
    return frozenset(key for _, child in ir.iterate_operands(expression) for key in find_escaping(child))


def is_pure(called: Node) -> bool:
    """True if an operator only computes a value. Functions and unknown operators may have effects."""
    try:
        effect = called.get_attr("TCallEffectKind")
    except (AttributeError, RuntimeError, ValueError):
        return False
    return effect is not None and int(effect) <= PURE


def get_viewed_buffer(match: Node) -> Node:
    """Return the buffer of which ``match_buffer`` names a part."""
    region = match.source
    return region.source if hasattr(region, "source") else region.buffer
