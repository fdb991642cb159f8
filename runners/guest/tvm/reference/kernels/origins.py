"""Record where a testcase's kernels come from: the versions that it wrote, before its passes and its schedules.

A kernel that the testcase wrote, as TVMScript or as tensor expressions, defines the meaning. A pass or a schedule
preserves the meaning of a kernel that keeps its name and parameters.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.ballot import Ballot

PARSER = "tvm.script.parser.core.entry"
CHANGES_MEANING = re.compile(
    r"\b(?:transform_layout|unsafe_\w+|tensorize|set_axis_separator|annotate_buffer_access|disable_predication"
    r"|fuse_reduction_epilogue)\b"
)
"""Text of a testcase whose schedule may change a kernel's meaning: other layouts, types, instructions or orders."""
DECLARES_ACCESSES = re.compile(r"\bT\.(?:reads|writes)\(|reinterpret|\bassume\b")
"""Text of a testcase whose blocks may declare accesses that differ from their real ones. Without a declaration, the
parser itself lists the accesses of a block."""
CHOOSES_MEANING = re.compile(r"Decompose|FastMath|Gradient|Tuning|Quantize|Legalize.*(?:FP8|BF16)|Bind")
"""Names of passes that intentionally give a function another meaning."""

OWN_PASS = re.compile(r"\b(?:prim_func_pass|module_pass|Apply)\b|StmtExprMutator|stmt_functor|ir_transform")
"""Text of a testcase that defines passes. They may change a kernel's meaning."""

Kernels = Mapping[str, Node]


class Origins:
    """Watches the parser, tensor expressions, passes and schedules of a testcase."""

    def __init__(self, ballot: Ballot, path: str, script: str, own_passes: bool) -> None:
        self._ballot = ballot
        self._path = path
        self._script = script
        self._own_passes = own_passes
        self.depth = 0
        """Number of running compiler functions that apply passes, build and call by themselves."""
        self._written: dict[int, Node] = {}
        """Kernels that the testcase wrote, by their bodies. Keeping them alive keeps the hashes unique."""
        self._passed: dict[int, tuple[Node, Node]] = {}
        """Kernels that passes made, with the kernels before all passes, by the bodies of the new ones."""
        self._scheduled: dict[int, tuple[Node, Node]] = {}
        """The same for schedules."""
        self._schedules: dict[int, tuple[Any, Kernels]] = {}
        """Schedules with their original kernels, by id."""
        self._expressions: dict[int, tuple[Node, list[Node]]] = {}
        """Kernels of tensor expressions, with their arguments as tensors and variables, by the kernels' bodies."""

    def install(self) -> None:
        tvm = importlib.import_module("tvm")
        self._watch_parser()
        passes = tvm.ir.transform.Pass
        passes.__call__ = self._watch_pass(passes.__call__)
        tvm.te.create_prim_func = self._watch_expressions(tvm.te.create_prim_func)
        if not CHANGES_MEANING.search(self._script):
            home = getattr(tvm, "s_tir", None) or tvm.tir
            self._watch_schedule(home.Schedule)

    def run_inside(self, original: Callable[..., Any], *args: Any, **words: Any) -> Any:
        """Run a function of the compiler. It may apply passes, build and call by itself."""
        self.depth += 1
        try:
            return original(*args, **words)
        finally:
            self.depth -= 1

    def is_written(self, kernel: Node) -> bool:
        return hash(kernel.body) in self._written

    def find_expressions(self, kernel: Node) -> list[Node] | None:
        """Return the tensors and variables of a kernel of tensor expressions. None for another kernel."""
        return self._expressions.get(hash(kernel.body), (None, None))[1]

    def has_own_expressions(self, kernel: Node) -> bool:
        """True for a kernel of tensor expressions that the testcase itself wrote, not the compiler's library.

        The library tags its expressions. It may be wrong, and an interpreter of its expressions would only repeat the
        fault.
        """
        given = self.find_expressions(kernel)
        return given is not None and not ir.has_library_expressions(given)

    def find_before_passes(self, kernel: Node) -> Node:
        """Return the kernel from which passes made this one. The kernel itself if none did."""
        return self._passed.get(hash(kernel.body), (None, kernel))[1]

    def find_before_schedule(self, kernel: Node) -> Node | None:
        """Return the kernel from which a schedule made this one. None if none did."""
        return self._scheduled.get(hash(kernel.body), (None, None))[1]

    def _watch_parser(self) -> None:
        """Replace the parser's entry in every module that imported it."""
        original = sys.modules[PARSER].parse

        @functools.wraps(original)
        def parse(program: Any, *arguments: Any, **options: Any) -> Any:
            parsed = original(program, *arguments, **options)
            # Text that the compiler printed may be the result of a pass or a schedule.
            if _is_called_from(self._path) and (not isinstance(program, str) or program in self._script):
                self._record_written(parsed)
            return parsed

        for name, module in list(sys.modules.items()):
            if name.split(".")[0] == "tvm":
                for attribute, value in list(vars(module).items()):
                    if value is original:
                        setattr(module, attribute, parse)

    def _watch_expressions(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the writer of kernels for tensor expressions. It simplifies them, and may be wrong itself."""

        @functools.wraps(original)
        def create(*args: Any, **words: Any) -> Any:
            made = self.run_inside(original, *args, **words)
            given = args[0] if args else words.get("ops")
            if not self.depth and isinstance(given, list | tuple):
                self._expressions[hash(made.body)] = made, list(given)
            return made

        return create

    def _record_written(self, made: Any) -> None:
        for kernel in list_kernels(made).values():
            self._written[hash(kernel.body)] = kernel

    def _watch_pass(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def apply(applied: Any, *args: Any, **words: Any) -> Any:
            given = args[0] if args else words.get("mod")
            before = self._ballot.try_action(lambda: list_kernels(given)) if not self.depth else None
            made = self.run_inside(original, applied, *args, **words)
            if before and not self._own_passes:
                self._ballot.try_action(lambda: self._record_pass(before, made))
            return made

        return apply

    def _record_pass(self, before: Kernels, made: Any) -> None:
        for _, kernel, given in pair_kernels(before, list_kernels(made)):
            self._passed[hash(kernel.body)] = kernel, self.find_before_passes(given)
            if (origin := self.find_before_schedule(given)) is not None:
                self._scheduled[hash(kernel.body)] = kernel, origin

    def _watch_schedule(self, schedule: Any) -> None:
        make, read = schedule.__init__, schedule.mod.fget

        @functools.wraps(make)
        def begin(made: Any, *args: Any, **words: Any) -> None:
            self.run_inside(make, made, *args, **words)
            if not self.depth:
                given = args[0] if args else words.get("mod")
                kernels = self._ballot.try_action(lambda: list_given(given))
                self._schedules[id(made)] = made, kernels or {}

        @functools.wraps(read)
        def get_module(made: Any) -> Any:
            module = read(made)
            known, given = self._schedules.get(id(made), (None, {}))
            if known is made and given and not self.depth:
                self._ballot.try_action(lambda: self._record_schedule(given, module))
            return module

        schedule.__init__ = begin
        schedule.mod = property(get_module)

    def _record_schedule(self, before: Kernels, module: Any) -> None:
        for _, kernel, given in pair_kernels(before, list_kernels(module)):
            earlier = self.find_before_schedule(given)
            self._scheduled[hash(kernel.body)] = kernel, earlier or self.find_before_passes(given)


def list_kernels(module: Any) -> dict[str, Node]:
    """Return the kernels of a module, or of a single function, by name."""
    if ir.get_kind(module) == "PrimFunc":
        return {get_symbol(module) or "main": module}
    if ir.get_kind(module) != "IRModule":
        return {}
    found = {str(variable.name_hint): function for variable, function in module.functions.items()}
    return {name: function for name, function in found.items() if ir.get_kind(function) == "PrimFunc"}


def list_given(given: Any) -> Kernels:
    """Return the kernels of a schedule. The schedule names a single function ``main``."""
    return {"main": given} if ir.get_kind(given) == "PrimFunc" else list_kernels(given)


def pair_kernels(before: Kernels, after: Kernels) -> list[tuple[str, Node, Node]]:
    """Return the kernels that changed but kept their name and parameters: name, kernel, previous kernel."""
    pairs = ((name, kernel, before.get(name)) for name, kernel in after.items())
    return [
        (name, kernel, given)
        for name, kernel, given in pairs
        if given is not None
        and hash(given.body) != hash(kernel.body)
        and _list_parameters(given) == _list_parameters(kernel)
    ]


def get_symbol(kernel: Node) -> str:
    return str(kernel.attrs["global_symbol"]) if kernel.attrs and "global_symbol" in kernel.attrs else ""


def _is_called_from(path: str) -> bool:
    """True if the testcase, not the compiler, called the function that calls this one."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "tvm":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == path


def _list_parameters(kernel: Node) -> list[tuple[str, ...]]:
    """Return the types of a kernel's parameters. Shapes with variables count by their rank."""
    buffers = ir.list_buffers(kernel)
    told: list[tuple[str, ...]] = []
    for position, parameter in enumerate(kernel.params):
        buffer = buffers.get(position)
        if buffer is None:
            told.append((ir.get_dtype(parameter),))
        else:
            told.append((str(buffer.dtype), *(str(getattr(one, "value", "?")) for one in buffer.shape)))
    return told
