"""What a TIR statement may write, allocate, name or leave by, by its text."""

from __future__ import annotations

from collections.abc import Iterator

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node

PURE = 1
"""``CallEffectKind::kPure``; 0 is an annotation of an expression."""


def key_of(buffer: Node) -> int:
    """What tells one memory from another, for as long as the function lives."""
    return hash(ir.data_of(buffer))


def statements_in(node: Node) -> Iterator[Node]:
    """``node`` and every statement inside it."""
    yield node
    inside: list[Node] = []
    match ir.kind_of(node):
        case "SeqStmt":
            inside = list(node.seq)
        case "IfThenElse":
            inside = [part for part in (node.then_case, node.else_case) if part is not None]
        case "For" | "While" | "AttrStmt":
            inside = [node.body]
        case "SBlockRealize":
            inside = [part for part in (node.block.init, node.block.body) if part is not None]
    for one in inside:
        yield from statements_in(one)


def written_in(node: Node) -> frozenset[int]:
    """Memory that may be written in a statement: what is stored to, viewed, or named in a call."""
    found: set[int] = set()
    for one in statements_in(node):
        match ir.kind_of(one):
            case "BufferStore":
                found.add(key_of(one.buffer))
                found |= passed_on(one.value)
            case "Evaluate" | "Bind":
                found |= passed_on(one.value)
            case "DeclBuffer" if getattr(one, "data", None) is not None:
                found |= named_in(one.data)
            case "SBlockRealize":
                for match in one.block.match_buffers:
                    found.add(key_of(viewed(match)))
    return frozenset(found)


def allocated_in(node: Node) -> frozenset[int]:
    found: set[int] = set()
    for one in statements_in(node):
        if ir.kind_of(one) == "AllocBuffer":
            found.add(key_of(one.buffer))
        elif ir.kind_of(one) == "SBlockRealize":
            found |= {key_of(buffer) for buffer in one.block.alloc_buffers}
    return frozenset(found)


def leaves(node: Node) -> bool:
    """Whether control may go elsewhere from within a statement than to what follows it."""
    return any(
        ir.kind_of(one) in ("Break", "Continue", "Return")
        or (ir.kind_of(one) == "Evaluate" and ir.operator_of(one.value) in ("ret", "break_loop", "continue_loop"))
        for one in statements_in(node)
    )


def named_in(expression: Node) -> frozenset[int]:
    """Keys of the variables and buffers that an expression mentions."""
    found: set[int] = set()
    if ir.kind_of(expression) in ("Var", "SizeVar"):
        found.add(hash(expression))
    elif ir.kind_of(expression) in ir.LOADS:
        found.add(key_of(ir.buffer_of(expression)))
    for _, child in ir.children(expression):
        found |= named_in(child)
    return frozenset(found)


def passed_on(expression: Node) -> frozenset[int]:
    """What an expression passes to code that is not seen, or takes the address of."""
    if ir.kind_of(expression) == "Call" and ir.operator_of(expression) not in ("if_then_else", "likely"):
        return named_in(expression) if not is_pure(expression.op) else frozenset()
    if ir.kind_of(expression) in ("Var", "SizeVar"):
        return frozenset({hash(expression)})
    return frozenset(key for _, child in ir.children(expression) for key in passed_on(child))


def is_pure(called: Node) -> bool:
    """Whether an operator only computes a value; functions and unknown operators do more."""
    try:
        effect = called.get_attr("TCallEffectKind")
    except (AttributeError, RuntimeError, ValueError):
        return False
    return effect is not None and int(effect) <= PURE


def viewed(match: Node) -> Node:
    """The buffer of which a ``match_buffer`` names a part."""
    region = match.source
    return region.source if hasattr(region, "source") else region.buffer
