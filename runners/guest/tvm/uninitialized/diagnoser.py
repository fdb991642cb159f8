"""Find undefined reads in a testcase's own TIR, in the parser's result and before any pass.

``definedness.py`` finds the undefined reads of a function. The host decides whether they cause a failure: it runs the
testcase again with the named buffers filled, at their allocation, with one constant and with another. This module
fills the function as parsed, so that every pass sees the filled program.

The buffers are those that a function allocates, and the outputs of ``call_tir``, which are uninitialized by
definition. The tensors of a function that the testcase calls itself count as written.
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
from runners.guest.tvm.trace import to_array
from runners.guest.tvm.uninitialized.definedness import find_undefined_reads
from runners.guest.tvm.uninitialized.effects import find_allocated
from runners.guest.tvm.uninitialized.memory import CannotTell

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings
    from runners.guest.tvm.uninitialized.definedness import UndefinedReads
    from runners.guest.tvm.uninitialized.memory import UndefinedUse

MAX_CALLS = 2
"""Maximum number of calls of one function that are interpreted with their arguments."""
MAX_ELEMENTS = 1024 * 1024
PARSER = "tvm.script.parser.core.entry"
FILLS: Mapping[str, Callable[[str], Node]] = {
    "fill-zero": lambda dtype: tirx.const(0, dtype),
    "fill-one": lambda dtype: tirx.const(1, dtype),
    "fill-lowest": lambda dtype: tirx.min_value(dtype),
    "fill-highest": lambda dtype: tirx.max_value(dtype),
}
"""Constants of a type by mode. A sum starts with the first, a product with the second, a maximum with the third and a
minimum with the last. If only the start value is missing, a constant makes the result right."""


class UnwrittenDiagnoser:
    """Examines the functions that the testcase parses. With ``fill``, a mode of ``FILLS``, fills buffers."""

    def __init__(self, findings: Findings, path: str, text: str, fill: str | None) -> None:
        self._findings = findings
        self._path = path
        self._text = text
        self._fill = fill
        self._parsed: dict[str, list[Node]] = {}
        """Functions that the testcase wrote, as parsed, by name."""
        self._calls: Counter[str] = Counter()
        self._reported: set[str] = set()

    def install(self) -> None:
        """Replace the parser's entry in every module that imported it."""
        original = sys.modules[PARSER].parse

        @functools.wraps(original)
        def parse_program(program: Any, *arguments: Any, **options: Any) -> Any:
            parsed = original(program, *arguments, **options)
            return (
                self._examine_parsed(parsed) if self._is_testcase_calling() and self._is_own_text(program) else parsed
            )

        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "tvm":
                for attribute, value in list(vars(module).items()):
                    if value is original:
                        setattr(module, attribute, parse_program)

    def _is_testcase_calling(self) -> bool:
        """Return False for calls of the compiler, which parses its own kernels."""
        frame = sys._getframe(2)
        while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "tvm":
            frame = frame.f_back  # type: ignore[assignment]  # None at the outermost
        return frame is not None and frame.f_code.co_filename == self._path

    def _is_own_text(self, program: Any) -> bool:
        """Return False for text that the compiler printed after a pass or schedule. Such text proves no fault."""
        if not isinstance(program, str):
            return True
        return _strip_indents(program).strip() in _strip_indents(self._text)

    def _examine_parsed(self, parsed: Any) -> Any:
        if isinstance(parsed, tirx.PrimFunc):
            return self._examine_function(_get_name(parsed, "main"), parsed, ())
        if isinstance(parsed, tvm.IRModule):
            outputs = _find_call_outputs(parsed)
            for variable, function in list(parsed.functions.items()):
                if isinstance(function, tirx.PrimFunc):
                    # If the testcase names the function in a string, it may call the function with its own tensors.
                    named = re.search(rf"[\"']{re.escape(variable.name_hint)}[\"']", self._text)
                    fresh = () if named else outputs.get(variable.name_hint, ())
                    changed = self._examine_function(variable.name_hint, function, fresh)
                    if changed is not function:
                        parsed[variable] = changed
        return parsed

    def check_call(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Interpret a function with the arguments of a call, for the first ``MAX_CALLS`` calls.

        A function that is built alone is called ``main``, independent of its name.
        """
        parsed = [function for functions in self._parsed.values() for function in functions]
        candidates = self._parsed.get(name, parsed if name == "main" else [])
        if self._fill is not None or len(candidates) != 1 or self._calls[name] >= MAX_CALLS:
            return
        if _get_name(candidates[0], name) in self._reported:
            return
        self._calls[name] += 1
        given = _read_arguments(candidates[0], arguments)
        if given is not None and find_allocated(candidates[0].body):
            self._interpret_function(_get_name(candidates[0], name), candidates[0], (), given)

    def _examine_function(self, name: str, function: Node, fresh: Sequence[int]) -> Node:
        """Examine a function, or fill it in a mode of ``FILLS``. After an error, keep it unchanged, with a note."""
        self._parsed.setdefault(name, []).append(function)
        if self._fill is None:
            if fresh or find_allocated(function.body):
                self._interpret_function(name, function, fresh, {})
            return function
        try:
            mode, _, named = self._fill.partition("=")
            buffers = [key.split("/")[1] for key in named.split("+") if key.split("/")[0] == name]
            return fill_buffers(function, frozenset(buffers), fresh, FILLS[mode]) if buffers else function
        except Exception as error:
            self._findings.note("a function could not be filled", function=name, why=str(error)[-200:])
            return function

    def _interpret_function(self, name: str, function: Node, fresh: Sequence[int], given: Mapping[int, Any]) -> None:
        try:
            reads = find_undefined_reads(function, fresh, given)
            if reads.uses:
                self._add_findings(name, reads)
        except CannotTell as why:
            self._findings.note("a function was not followed", function=name, why=str(why))
        except Exception as error:
            why_not = f"{type(error).__name__}: {error}"[-200:]
            self._findings.note("a function could not be followed", function=name, why=why_not)

    def _add_findings(self, name: str, reads: UndefinedReads) -> None:
        self._reported.add(name)
        for use in reads.uses:
            evidence = {
                "function": name,
                "buffer": use.read.buffer,
                "index": None if use.read.index is None else list(use.read.index),
                "reaches": use.where,
                "elements": use.elements,
                "fill": [f"{name}/{buffer}" for buffer in sorted(reads.buffers | {use.read.buffer})],
            }
            self._findings.add(
                f"unwritten:{name}:{use.read.buffer}", "uninitialized-read", summarize_use(name, use), evidence
            )


def _get_name(function: Node, otherwise: str) -> str:
    return str((function.attrs or {}).get("global_symbol", otherwise))


def _read_arguments(function: Node, arguments: tuple[Any, ...]) -> dict[int, Any] | None:
    """Return the arguments of a call. None if they do not fit the function, or if they share memory."""
    buffers = ir.list_buffers(function)
    if len(arguments) != len(function.params) or len({id(one) for one in arguments}) != len(arguments):
        return None
    given: dict[int, Any] = {}
    for position, argument in enumerate(arguments):
        value = to_array(argument) if position in buffers else argument
        if position in buffers and value is None:
            return None
        if (position in buffers and value.dtype.kind in "iufb" and value.size <= MAX_ELEMENTS) or type(value) is int:
            given[position] = value
    return given


def _strip_indents(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def summarize_use(name: str, use: UndefinedUse) -> str:
    at = "" if use.read.index is None else str(list(use.read.index))
    if use.where == "its caller":
        others = f" and {use.elements - 1} more elements" if use.elements > 1 else ""
        return (
            f"function {name} leaves {use.read.buffer}{at}{others} unwritten, and call_tir passes it unwritten memory"
        )
    many = f", and {use.elements - 1} more of them" if use.elements > 1 else ""
    return f"function {name} reads {use.read.buffer}{at}, which nothing wrote before; it decides {use.where}{many}"


def _find_call_outputs(module: Node) -> dict[str, tuple[int, ...]]:
    """Return the positions of the outputs of each kernel that is only called through ``call_tir``."""
    called: dict[str, set[tuple[int, ...]]] = {}
    for function in module.functions.values():
        if not isinstance(function, tvm.relax.Function):
            continue
        for call in _list_calls(function):
            name, outputs = _read_outputs(call, module)
            if name:
                called.setdefault(name, set()).add(outputs)
    return {name: outputs for name, (outputs, *others) in called.items() if not others}


def _list_calls(function: Node) -> list[Node]:
    calls: list[Node] = []
    tvm.relax.analysis.post_order_visit(
        function, lambda node: calls.append(node) if ir.get_kind(node) == "Call" else None
    )
    return calls


def _read_outputs(call: Node, module: Node) -> tuple[str, tuple[int, ...]]:
    """Return the kernel of a call and the positions of its outputs. No outputs if they have values."""
    kernels = [one for one in (call.op, *call.args) if ir.get_kind(one) == "GlobalVar"]
    if not kernels:
        return "", ()
    name = str(kernels[0].name_hint)
    kernel = module.functions.get(kernels[0])
    plain = str(getattr(call.op, "name", "")) == "relax.call_tir" and ir.get_kind(call.args[1]) == "Tuple"
    if not plain or not isinstance(kernel, tirx.PrimFunc):
        return name, ()
    return name, tuple(list(ir.list_buffers(kernel))[len(call.args[1].fields) :])


# ---------------------------------------------------------------------------------------------- filling


def fill_buffers(
    function: Node, names: frozenset[str], fresh: Sequence[int], constant: Callable[[str], Node]
) -> Node:
    """Return the function with these buffers filled at their allocation, and outputs filled at the start."""
    outputs = [
        buffer for at, buffer in ir.list_buffers(function).items() if at in fresh and str(buffer.name) in names
    ]
    body = _fill_statement(function.body, names, constant)
    return function.with_body(_prepend_fills(body, [_make_fill(buffer, constant) for buffer in outputs]))


def _fill_statement(node: Node, names: frozenset[str], constant: Callable[[str], Node]) -> Node:
    def fill_part(part: Node) -> Node:
        return None if part is None else _fill_statement(part, names, constant)

    match ir.get_kind(node):
        case "SeqStmt":
            return tirx.SeqStmt(
                [out for one in node.seq for out in _fill_allocation(fill_part(one), names, constant)]
            )
        case "For" | "While" | "AttrStmt":
            return ir.rebuild_node(node, body=fill_part(node.body))
        case "IfThenElse":
            return ir.rebuild_node(node, then_case=fill_part(node.then_case), else_case=fill_part(node.else_case))
        case "SBlockRealize":
            fills = [_make_fill(one, constant) for one in node.block.alloc_buffers if str(one.name) in names]
            return _prepend_fills(
                ir.rebuild_node(node, block=ir.rebuild_node(node.block, body=fill_part(node.block.body))), fills
            )
    return node


def _fill_allocation(node: Node, names: frozenset[str], constant: Callable[[str], Node]) -> Iterator[Node]:
    yield node
    if ir.get_kind(node) == "AllocBuffer" and str(node.buffer.name) in names:
        yield _make_fill(node.buffer, constant)


def _prepend_fills(body: Node, fills: list[Node]) -> Node:
    """Return a body with the fills before it. In a block, the fills go inside."""
    if not fills:
        return body
    if ir.get_kind(body) == "SBlockRealize":
        block = ir.rebuild_node(body.block, body=tirx.SeqStmt([*fills, body.block.body]))
        return ir.rebuild_node(body, block=block)
    return tirx.SeqStmt([*fills, body])


def _make_fill(buffer: Node, constant: Callable[[str], Node]) -> Node:
    """Return loops that fill a whole buffer."""
    loops = [tirx.Var(f"reprobot_{axis}", ir.get_dtype(extent)) for axis, extent in enumerate(buffer.shape)]
    fill = tirx.BufferStore(buffer, constant(str(buffer.dtype)), loops)
    for variable, extent in reversed(list(zip(loops, buffer.shape, strict=True))):
        fill = tirx.For(variable, tirx.IntImm(ir.get_dtype(extent), 0), extent, tirx.ForKind.SERIAL, fill)
    return fill
