"""Testcases whose own TIR reads what it never wrote: seen in what the parser returns, before any pass.

``tvm_definedness`` says what a function reads undefined. Whether a failure comes of it, the host finds out: it runs
the testcase again with the buffers named here filled, at their allocation, with one constant and with another. That
is done here too, to the function as parsed, so that every pass sees the filled program.

Buffers are those that a function allocates, and the outputs of ``call_tir``, which are passed unwritten by
definition. A function that the testcase calls itself gets its tensors from there, and they count as written.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm
from tvm import tirx

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.trace import array_of
from runners.guest.tvm.uninitialized.definedness import look_at
from runners.guest.tvm.uninitialized.effects import allocated_in
from runners.guest.tvm.uninitialized.memory import CannotTell

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings
    from runners.guest.tvm.uninitialized.definedness import Seen
    from runners.guest.tvm.uninitialized.memory import Use

MOST_CALLS = 2
"""Of one function that are followed with their arguments."""
MOST_ELEMENTS = 1024 * 1024
PARSER = "tvm.script.parser.core.entry"
FILLS: Mapping[str, Callable[[str], Node]] = {
    "fill-zero": lambda dtype: tirx.const(0, dtype),
    "fill-one": lambda dtype: tirx.const(1, dtype),
    "fill-lowest": lambda dtype: tirx.min_value(dtype),
    "fill-highest": lambda dtype: tirx.max_value(dtype),
}
"""A constant of a type for each way of filling: a sum starts with the first, a product with the second, a maximum
with the third and a minimum with the last, so that one of them is right where a start is all that is missing."""


class UnwrittenDiagnoser:
    """Looks at what the testcase has parsed; with ``fill``, one of ``FILLS``, also fills what it never wrote."""

    def __init__(self, findings: Findings, path: str, text: str, fill: str | None) -> None:
        self._findings = findings
        self._path = path
        self._text = text
        self._fill = fill
        self._parsed: dict[str, list[Node]] = {}
        """What the testcase wrote, by name, as it was parsed."""
        self._calls: Counter[str] = Counter()
        self._reported: set[str] = set()

    def install(self) -> None:
        """In every module that took the parser's entry under a name of its own."""
        original = sys.modules[PARSER].parse

        @functools.wraps(original)
        def parse(program: Any, *arguments: Any, **options: Any) -> Any:
            parsed = original(program, *arguments, **options)
            return self._seen(parsed) if self._asked_by_the_testcase() and self._wrote(program) else parsed

        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "tvm":
                for attribute, value in list(vars(module).items()):
                    if value is original:
                        setattr(module, attribute, parse)

    def _asked_by_the_testcase(self) -> bool:
        """Not by the compiler, which has kernels written in the same language."""
        frame = sys._getframe(2)
        while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "tvm":
            frame = frame.f_back  # type: ignore[assignment]  # None at the outermost
        return frame is not None and frame.f_code.co_filename == self._path

    def _wrote(self, program: Any) -> bool:
        """A program in text may be the compiler's own print-out, after a pass or schedule: then it proves nothing."""
        if not isinstance(program, str):
            return True
        return _without_indents(program).strip() in _without_indents(self._text)

    def _seen(self, parsed: Any) -> Any:
        if isinstance(parsed, tirx.PrimFunc):
            return self._function(_name_of(parsed, "main"), parsed, ())
        if isinstance(parsed, tvm.IRModule):
            outputs = _outputs_of_calls(parsed)
            for variable, function in list(parsed.functions.items()):
                if isinstance(function, tirx.PrimFunc):
                    # One that the testcase names elsewhere too may be called by hand, with tensors of its own.
                    named = re.search(rf"[\"']{re.escape(variable.name_hint)}[\"']", self._text)
                    fresh = () if named else outputs.get(variable.name_hint, ())
                    changed = self._function(variable.name_hint, function, fresh)
                    if changed is not function:
                        parsed[variable] = changed
        return parsed

    def called(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Look at what the testcase wrote with the arguments that it calls it with, the first times, if need be.

        A function that is built alone is called ``main`` whatever its name.
        """
        written = [one for functions in self._parsed.values() for one in functions]
        candidates = self._parsed.get(name, written if name == "main" else [])
        if self._fill is not None or len(candidates) != 1 or self._calls[name] >= MOST_CALLS:
            return
        if _name_of(candidates[0], name) in self._reported:
            return
        self._calls[name] += 1
        given = _given(candidates[0], arguments)
        if given is not None and allocated_in(candidates[0].body):
            self._look(_name_of(candidates[0], name), candidates[0], (), given)

    def _function(self, name: str, function: Node, fresh: Sequence[int]) -> Node:
        """The function, filled where that is asked for. Whatever goes wrong leaves it as it is, with a note."""
        self._parsed.setdefault(name, []).append(function)
        if self._fill is None:
            if fresh or allocated_in(function.body):
                self._look(name, function, fresh, {})
            return function
        try:
            mode, _, named = self._fill.partition("=")
            wanted = [one.split("/")[1] for one in named.split("+") if one.split("/")[0] == name]
            return filled(function, frozenset(wanted), fresh, FILLS[mode]) if wanted else function
        except Exception as error:
            self._findings.note("a function could not be filled", function=name, why=str(error)[-200:])
            return function

    def _look(self, name: str, function: Node, fresh: Sequence[int], given: Mapping[int, Any]) -> None:
        try:
            seen = look_at(function, fresh, given)
            if seen.uses:
                self._report(name, seen)
        except CannotTell as why:
            self._findings.note("a function was not followed", function=name, why=str(why))
        except Exception as error:
            why_not = f"{type(error).__name__}: {error}"[-200:]
            self._findings.note("a function could not be followed", function=name, why=why_not)

    def _report(self, name: str, seen: Seen) -> None:
        self._reported.add(name)
        for use in seen.uses:
            evidence = {
                "function": name,
                "buffer": use.read.buffer,
                "index": None if use.read.index is None else list(use.read.index),
                "reaches": use.where,
                "elements": use.elements,
                "fill": [f"{name}/{buffer}" for buffer in sorted(seen.buffers | {use.read.buffer})],
            }
            self._findings.add(
                f"unwritten:{name}:{use.read.buffer}", "uninitialized-read", summary_of(name, use), evidence
            )


def _name_of(function: Node, otherwise: str) -> str:
    return str((function.attrs or {}).get("global_symbol", otherwise))


def _given(function: Node, arguments: tuple[Any, ...]) -> dict[int, Any] | None:
    """The arguments of a call; None where they are not those of the function, or share memory."""
    buffers = ir.parameters(function)
    if len(arguments) != len(function.params) or len({id(one) for one in arguments}) != len(arguments):
        return None
    given: dict[int, Any] = {}
    for position, argument in enumerate(arguments):
        value = array_of(argument) if position in buffers else argument
        if position in buffers and value is None:
            return None
        if (position in buffers and value.dtype.kind in "iufb" and value.size <= MOST_ELEMENTS) or type(value) is int:
            given[position] = value
    return given


def _without_indents(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def summary_of(name: str, use: Use) -> str:
    at = "" if use.read.index is None else str(list(use.read.index))
    if use.where == "its caller":
        others = f" and {use.elements - 1} more elements" if use.elements > 1 else ""
        return (
            f"function {name} leaves {use.read.buffer}{at}{others} unwritten, and call_tir passes it unwritten memory"
        )
    many = f", and {use.elements - 1} more of them" if use.elements > 1 else ""
    return f"function {name} reads {use.read.buffer}{at}, which nothing wrote before; it decides {use.where}{many}"


def _outputs_of_calls(module: Node) -> dict[str, tuple[int, ...]]:
    """For each kernel that is only called through ``call_tir``: the positions of its outputs."""
    called: dict[str, set[tuple[int, ...]]] = {}
    for function in module.functions.values():
        if not isinstance(function, tvm.relax.Function):
            continue
        for call in _calls_in(function):
            name, outputs = _outputs_of(call, module)
            if name:
                called.setdefault(name, set()).add(outputs)
    return {name: outputs for name, (outputs, *others) in called.items() if not others}


def _calls_in(function: Node) -> list[Node]:
    calls: list[Node] = []
    tvm.relax.analysis.post_order_visit(
        function, lambda node: calls.append(node) if ir.kind_of(node) == "Call" else None
    )
    return calls


def _outputs_of(call: Node, module: Node) -> tuple[str, tuple[int, ...]]:
    """The kernel that a call applies and which of its buffers are outputs; none where they are given values."""
    kernels = [one for one in (call.op, *call.args) if ir.kind_of(one) == "GlobalVar"]
    if not kernels:
        return "", ()
    name = str(kernels[0].name_hint)
    kernel = module.functions.get(kernels[0])
    plain = str(getattr(call.op, "name", "")) == "relax.call_tir" and ir.kind_of(call.args[1]) == "Tuple"
    if not plain or not isinstance(kernel, tirx.PrimFunc):
        return name, ()
    return name, tuple(list(ir.parameters(kernel))[len(call.args[1].fields) :])


# ---------------------------------------------------------------------------------------------- filling


def filled(function: Node, names: frozenset[str], fresh: Sequence[int], constant: Callable[[str], Node]) -> Node:
    """The function with these buffers set to a constant where they are allocated, outputs at the start."""
    outputs = [buffer for at, buffer in ir.parameters(function).items() if at in fresh and str(buffer.name) in names]
    body = _filled(function.body, names, constant)
    return function.with_body(_begun(body, [_fill(buffer, constant) for buffer in outputs]))


def _filled(node: Node, names: frozenset[str], constant: Callable[[str], Node]) -> Node:
    def inside(part: Node) -> Node:
        return None if part is None else _filled(part, names, constant)

    match ir.kind_of(node):
        case "SeqStmt":
            return tirx.SeqStmt([out for one in node.seq for out in _with_fill(inside(one), names, constant)])
        case "For" | "While" | "AttrStmt":
            return ir.rebuilt(node, body=inside(node.body))
        case "IfThenElse":
            return ir.rebuilt(node, then_case=inside(node.then_case), else_case=inside(node.else_case))
        case "SBlockRealize":
            fills = [_fill(one, constant) for one in node.block.alloc_buffers if str(one.name) in names]
            return _begun(ir.rebuilt(node, block=ir.rebuilt(node.block, body=inside(node.block.body))), fills)
    return node


def _with_fill(node: Node, names: frozenset[str], constant: Callable[[str], Node]) -> Iterator[Node]:
    yield node
    if ir.kind_of(node) == "AllocBuffer" and str(node.buffer.name) in names:
        yield _fill(node.buffer, constant)


def _begun(body: Node, fills: list[Node]) -> Node:
    """A body with something before it; inside the block that it is, where it is one."""
    if not fills:
        return body
    if ir.kind_of(body) == "SBlockRealize":
        block = ir.rebuilt(body.block, body=tirx.SeqStmt([*fills, body.block.body]))
        return ir.rebuilt(body, block=block)
    return tirx.SeqStmt([*fills, body])


def _fill(buffer: Node, constant: Callable[[str], Node]) -> Node:
    """Loops over all of a buffer."""
    loops = [tirx.Var(f"reprobot_{axis}", ir.dtype_of(extent)) for axis, extent in enumerate(buffer.shape)]
    fill = tirx.BufferStore(buffer, constant(str(buffer.dtype)), loops)
    for variable, extent in reversed(list(zip(loops, buffer.shape, strict=True))):
        fill = tirx.For(variable, tirx.IntImm(ir.dtype_of(extent), 0), extent, tirx.ForKind.SERIAL, fill)
    return fill
