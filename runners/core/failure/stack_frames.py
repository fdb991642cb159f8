"""Read the compiler's functions from the lines of a traceback or a stack dump. Pure.

Frames of the testcase, of other libraries and of the interpreter are left out. Functions that are on the stack of
every failure are left out too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from runners.core.toolchain.failures import FailureVocabulary

MAX_FRAMES = 8

PY_FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,400})", line \d+(?:, in (?P<name>.{1,300}))?$')
_NATIVE_FRAME = re.compile(
    r"^\s*(?:\[bt\] )?(?:#?\(?\d+\)?:?|\.{3}|…)\s+(?:0x[0-9a-fA-F]+\s+)?(?:in\s+)?"
    r"(?P<name>(?:[a-z]+ )?[A-Za-z_(][^\n]{0,600})$"
)
_NOISE_FRAMES = (
    *("llvm::sys::", "llvm::function_ref", "SignalHandler", "std::", "operator()", "(anonymous namespace)::operator"),
    *("__libc", "_start", "abort", "raise", "gsignal", "start_thread"),
    *("mlir::detail::", "mlir::impl::", "llvm::detail::"),
    *("mlir::applyPartialConversion", "mlir::applyFullConversion", "applyConversion", "mlir::applyPatternsGreedily"),
    *("(anonymous namespace)::GreedyPattern", "(anonymous namespace)::Operation", "mlir::failableParallelForEach"),
    *(
        "llvm::StdThreadPool",
        "llvm::ThreadPool",
        "(anonymous namespace)::ConversionPattern",
        "mlir::parallelForEach",
        "mlir::verify",
    ),
)
"""Prefixes of native functions that occur in the stack of every failure: signal handling, the C library, and the
functions that run LLVM's and MLIR's passes and patterns."""
_MLIR_CORE = re.compile(r"mlir::[A-Z]\w*(?:<.{0,300}>)?::")
"""A method of one of MLIR's own classes (a type's width, an operation's model). Only its caller identifies the
failure. Passes and dialects have their own namespaces."""


def find_native_frames(
    lines: Iterable[str], vocabulary: FailureVocabulary
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the C++ functions of a stack dump, innermost first, and those of them that any caller may call.

    Both are without arguments and addresses. A stack that contains only such callees is truncated. Then its functions
    are the callees.
    """
    noise = (*_NOISE_FRAMES, *vocabulary.noise_frames)
    found = (_parse_function_name(one["name"]) for line in lines if (one := _NATIVE_FRAME.match(line)))
    names = [name for name in found if name and "::" in name and not name.startswith(noise)]
    callees = _take_distinct(name for name in names if _MLIR_CORE.match(name))
    return _take_distinct(name for name in names if not _MLIR_CORE.match(name)) or callees, callees


def _parse_function_name(symbol: str) -> str:
    """Return ``ns::f<int>`` for ``void ns::f<int>(ns::A&) const x.cpp:0:0``. Keep anonymous namespaces."""
    symbol = symbol.replace("(anonymous namespace)", "{anonymous}")
    depth, end = 0, len(symbol)
    for i, char in enumerate(symbol):
        if char == "<":
            depth += 1
        elif char == ">" and (i == 0 or symbol[i - 1] != "-"):
            depth = max(0, depth - 1)
        elif char == "(" and depth == 0 and i > 0:
            end = i
            break
    name = symbol[:end].strip()
    depth = 0
    for i in range(len(name) - 1, -1, -1):  # cut a return type: the last space outside angle brackets
        if name[i] == ">":
            depth += 1
        elif name[i] == "<":
            depth = max(0, depth - 1)
        elif name[i] == " " and depth == 0:
            name = name[i + 1 :]
            break
    return name.replace("{anonymous}", "(anonymous namespace)")[:300]


def find_python_frames(lines: Iterable[str], vocabulary: FailureVocabulary) -> tuple[str, ...]:
    """Return the functions of the compiler's Python side, innermost first: ``tvm.relax.vm_build.build``."""
    frames = []
    for line in lines:
        found = PY_FRAME.match(line)
        if not found or not found["name"]:
            continue
        path = found["path"].replace("\\", "/")
        _, marker, inside = path.rpartition("site-packages/")
        if not marker:
            _, marker, inside = path.rpartition("/python/")
        if marker and inside.split("/")[0] in vocabulary.packages:
            module = inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            frames.append(f"{module}.{found['name'].strip()}"[:300])
    return _take_distinct(reversed(frames))


_SITE_FRAME = re.compile(
    r'^ {2,4}File "[^"]{1,400}\.(?:cc|cpp|cu|h|hpp)", line [1-9]\d{0,6}, in (?P<name>.{1,2000})$'
)
_TEMPLATE = re.compile(r"\[with [^\]]{0,200}?= (?:\w+::){0,8}(?P<of>\w+)\]$")


def find_raise_site(lines: Iterable[str]) -> str:
    """Return the innermost C++ function of a traceback, without its namespace: ``TryConstFold[FloorDiv]``.

    Namespaces, files and lines change from release to release. A template's argument is kept: the folded operation or
    the built node. The result is empty if the innermost frame is Python's.
    """
    frames = [line for line in lines if line.startswith("  ") and line.lstrip().startswith('File "')]
    found = _SITE_FRAME.match(frames[-1]) if frames else None
    if found is None:
        return ""
    name = _parse_function_name(found["name"].removeprefix("virtual ").removeprefix("static "))
    of = _TEMPLATE.search(found["name"])
    bare = re.sub(r"<.{0,300}>|\(anonymous namespace\)::|\{anonymous\}::", "", name).rpartition("::")[2]
    return f"{bare}[{of['of']}]" if of and bare else bare


def _take_distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:MAX_FRAMES]
