"""What kind of text a stretch is that is neither Python nor a command: MLIR, a traceback, C++, output."""

from __future__ import annotations

import re
from dataclasses import replace

from bot.extract.blocks.pieces import Kind, Piece, rows_of
from bot.extract.vocabulary import all_tools, any_of, any_word, join_words

_DIALECTS = any_of(map(re.escape, join_words(lambda words: (*words.mlir_functions, *words.mlir_modules))))
_MLIR_TOP = re.compile(
    r"^[ \t]*(?:func\.func|func|module|builtin\.module|\"builtin\.module\"|transform\.|ml_program\.global"
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

_RESULT = any_of(pattern for tools in all_tools() for pattern in tools.result_header_patterns)
_AFTER_MLIR = re.compile(
    rf"{_DIAGNOSTIC.pattern}|^(?:\w+\.){{0,6}}\w*(?:Error|Exception): |^Traceback \(most|^Stack dump:|^{_RESULT}"
    r"|^={3,}|^-{5,}$",
    re.M,
)

_DUMP = re.compile(r"^[ \t]*// -----// IR Dump (?:After|Before)", re.M)

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


def looks_native(text: str) -> bool:
    found = len(_NATIVE_TEXT.findall(text))
    return found >= 1 and not re.search(r"^[ \t]*(?:import|from) \w+", text, re.M) and not _MLIR_TOP.search(text)


def text_kind(text: str) -> Kind:
    """The kind of a stretch that is neither Python nor a command."""
    first = _first_row(_TRACE_TEXT, text)
    top, diagnostic = _first_row(_MLIR_TOP, text), _first_row(_DIAGNOSTIC, text)
    if top is not None and (diagnostic is None or top < diagnostic) and (first is None or top < first):
        return Kind.MLIR
    if first is not None:
        return Kind.TRACEBACK
    if diagnostic is None and len(_MLIR_OP.findall(text)) >= max(1, text.count("\n") // 3):
        return Kind.FRAGMENT
    return Kind.OUTPUT


def _first_row(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return found.start() if found else None


def mlir_pieces(piece: Piece, kind: Kind) -> list[Piece]:
    """The MLIR of the piece apart from diagnostics and output pasted below it."""
    found = _AFTER_MLIR.search(piece.text)
    if kind is not Kind.MLIR or found is None:
        return [replace(piece, kind=kind)]
    row = piece.text.count("\n", 0, found.start())
    rest = rows_of(piece, row, piece.text.count("\n"))
    return [rows_of(piece, 0, row, kind), replace(rest, kind=text_kind(rest.text), name="")]


def code_above_trace(text: str) -> bool:
    """A program stands above the traceback in the same block."""
    found = _TRACE_TEXT.search(text)
    above = text[: found.start()] if found else ""
    return bool(re.search(r"^[ \t]*(?:import|from) [\w.]+", above, re.M))


def tells_failure(text: str) -> bool:
    return bool(_DIAGNOSTIC.search(text) or _AFTER_MLIR.search(text))


def is_dump(piece: Piece) -> bool:
    """Printed by the compiler, not written as an input: marked so, or the module again and again."""
    modules = len(_MODULE_ROW.findall(piece.text))
    return bool(_DUMP.search(piece.text)) or (modules > 1 and "// -----" not in piece.text)
