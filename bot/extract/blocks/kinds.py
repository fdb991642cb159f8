"""Kinds of text that are neither Python nor a command: MLIR, a traceback, C++, output."""

from __future__ import annotations

import re
from dataclasses import replace

from bot.extract.blocks.pieces import Kind, Piece, cut_rows
from bot.extract.vocabulary import any_of, any_word, join_words, list_tools

_DIALECTS = any_of(map(re.escape, join_words(lambda words: (*words.mlir_functions, *words.mlir_modules))))
_MLIR_TOP = re.compile(
    r"^[ \t]*(?!(?:builtin\.)?module\([a-z])"  # the pipeline of passes that a tool prints
    r"(?:func\.func|func|module|builtin\.module|\"builtin\.module\"|transform\.|ml_program\.global"
    rf"|module attributes|\"func\.func\"|{_DIALECTS})"
    r"(?:\s|\(|\.|$)[^\n]*?(?:@|\{|\bprivate\b|\bpublic\b|\($|\(\{)",
    re.M,
)
_MLIR_OP = re.compile(
    r"^[ \t]*(?:%[\w#$.-]+(?::\d+)?(?:, ?%[\w#$.:-]+){0,20} = |\^bb\d+|#[\w.]+ = |![\w.]+ = "
    r"|[\w]+\.[\w.]+ .{0,200}%|return %)",
    re.M,
)
_DIAGNOSTIC = re.compile(
    r"^[^\s:]{1,300}:\d+:\d+: (?:error|note|remark|warning):|^(?:<unknown>:0|loc\(.{1,300}\)): error:"
    r"|^error: ",
    re.M,
)
_RESULT = any_of(pattern for tools in list_tools() for pattern in tools.result_header_patterns)
_AFTER_MLIR = re.compile(
    rf"{_DIAGNOSTIC.pattern}|^(?:\w+\.){{0,6}}\w*(?:Error|Exception): |^Traceback \(most|^Stack dump:|^{_RESULT}"
    r"|^={3,}|^-{5,}$",
    re.M,
)
_DUMP = re.compile(r"^[ \t]*// (?:-----//|\*\*\*) IR Dump (?:After|Before)", re.M)
_MODULE_ROW = re.compile(r"^module\b[^\n]*\{\s*$", re.M)
_NATIVE_TEXT = re.compile(
    r"^[ \t]*(?:#include [<\"]|template ?<|namespace \w+|using namespace |void \w+\(|static \w+ \w+"
    rf"|{any_word(lambda words: words.native_marks)})",
    re.M,
)
_TRACE_TEXT = re.compile(
    r"^[ \t]*(?:Traceback \(most recent|Stack dump:|#0 +0x|Thread \d+ .*received signal|Program received signal)",
    re.M,
)
CALLS_OR_IMPORTS = re.compile(r"^(?:import|from)\b|^[\w.]{1,80} ?\(|\bprint\(", re.M)
"""Rows of a program, and not of a printed module."""
IMPORT = re.compile(r"^[ \t]*(?:import|from) [\w.]", re.M)
ABSOLUTE_IMPORT = re.compile(r"^[ \t]*(?:import|from) \w", re.M)
IMPORT_ROW = re.compile(
    r"^ {0,3}(?:import [A-Za-z_][\w.]*(?: as \w+)?(?:, ?[A-Za-z_][\w.]*(?: as \w+)?)*"
    r"|from [A-Za-z_.][\w.]* import [\w*(][^\n]{0,300})\s*(?:#.*)?$"
)
"""A whole import in one row, with at most three spaces of margin."""


def is_native(text: str) -> bool:
    """True if ``text`` is C++ or a relative of C++."""
    return bool(_NATIVE_TEXT.search(text)) and not ABSOLUTE_IMPORT.search(text) and not _MLIR_TOP.search(text)


_PACKAGE_ROW = re.compile(
    r"[ \t]{0,8}[A-Za-z][\w.\[\]-]{0,60}(?:[ \t]{0,8}==[ \t]{0,8}|[ \t]{1,60}@?[ \t]?)v?\d+\.[\w.+!-]{0,40}"
    r"(?:[ \t]{1,20}\S{1,60}){0,2}[ \t]{0,20}|[ \t]{0,8}Package[ \t]{1,60}Version.{0,60}|[- ]{3,200}"
)
_COMMON_PACKAGE = re.compile(
    r"^[ \t]{0,8}(?:pip|setuptools|wheel|numpy|scipy|packaging|attrs|torch|onnx|jax|sympy|psutil|typing[_-]extensions"
    r"|cloudpickle|tensorflow|pytest|requests|ml[_-]dtypes)\b|==",
    re.M | re.I,
)
"""Packages of nearly every list. Other rows with a word and a number are output."""
_MACHINE_ROW = re.compile(
    r"[ \t]{0,8}[-*]?[ \t]{0,8}(?P<key>[A-Za-z][\w /().+-]{0,50}?)[ \t]{0,8}[:=][ \t]{0,8}\S[^\n]{0,200}"
    r"|[ \t]{0,8}\[(?:pip3?|conda)\][^\n]{1,200}"
)
_MACHINE_KEY = re.compile(
    r"\b(?:os|platform|system|kernel|distro\w*|architecture|arch|gcc|clang|g\+\+|cmake|ninja|llvm|libc|glibc|python|pip"
    r"|conda|cpu|gpus?|cuda|cudnn|rocm|hip|vulkan|driver|nvidia|memory|ram|processor|model name|vendor|machine|host"
    r"|compiler|environment|versions?|is debug build|used to build|runtime|os type)\b",
    re.I,
)


def is_environment(text: str) -> bool:
    """True for a list of packages with their versions, or of facts about the machine: never a program's output."""
    rows = [row for row in text[:20_000].split("\n") if row.strip()]
    if len(rows) < 3:
        return False
    packages = sum(bool(_PACKAGE_ROW.fullmatch(row)) for row in rows)
    facts = [found for row in rows if (found := _MACHINE_ROW.fullmatch(row)) is not None]
    machine = sum(found["key"] is None or bool(_MACHINE_KEY.search(found["key"])) for found in facts)
    listed = 5 * packages >= 4 * len(rows) and bool(_COMMON_PACKAGE.search(text))
    return listed or (5 * len(facts) >= 4 * len(rows) and 2 * machine >= len(rows))


def classify_text(text: str) -> Kind:
    """Return the kind of a text that is neither Python nor a command."""
    trace = _find_start(_TRACE_TEXT, text)
    top, diagnostic = _find_start(_MLIR_TOP, text), _find_start(_DIAGNOSTIC, text)
    if top is not None and (diagnostic is None or top < diagnostic) and (trace is None or top < trace):
        return Kind.MLIR
    if trace is not None:
        return Kind.TRACEBACK
    # An error that quotes operations of IR is output, as the header of its exception shows.
    if not has_failure(text) and len(_MLIR_OP.findall(text)) >= max(1, text.count("\n") // 3):
        return Kind.FRAGMENT
    return Kind.OUTPUT


def _find_start(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return found.start() if found else None


def split_mlir(piece: Piece, kind: Kind) -> list[Piece]:
    """Split off the diagnostics and the output that were pasted below the MLIR of ``piece``."""
    found = _AFTER_MLIR.search(piece.text)
    if kind is not Kind.MLIR or found is None:
        return [replace(piece, kind=kind)]
    row = piece.text.count("\n", 0, found.start())
    rest = cut_rows(piece, row, piece.text.count("\n"))
    return [cut_rows(piece, 0, row, kind), replace(rest, kind=classify_text(rest.text), name="")]


def has_code_above_trace(text: str) -> bool:
    """True if a program is above the traceback in the same block."""
    found = _TRACE_TEXT.search(text)
    return found is not None and bool(IMPORT.search(text[: found.start()]))


def has_failure(text: str) -> bool:
    """True if ``text`` contains a diagnostic, an exception or a stack dump."""
    return bool(_AFTER_MLIR.search(text))


def is_dump(piece: Piece) -> bool:
    """True for MLIR that a compiler printed: marked as a dump, or several modules without a separator."""
    modules = len(_MODULE_ROW.findall(piece.text))
    return bool(_DUMP.search(piece.text)) or (modules > 1 and "// -----" not in piece.text)
