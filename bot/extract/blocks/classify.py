"""Blocks → pieces of one kind each: a fence may hold code, a prompt, output and a traceback one after another."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.extract.blocks.kinds import code_above_trace, looks_native, mlir_pieces, text_kind
from bot.extract.blocks.markdown import Block, Document, Shape
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, cue_of, heading_cue, section_of
from bot.extract.blocks.session import (
    PROMPTED_LINE,
    given_as_argument,
    is_command,
    is_transcript,
    named_by_cat,
    read_transcript,
    split_at_commands,
    take_heredoc,
)
from bot.extract.blocks.unfenced import bare_code
from bot.extract.python.parse import parse_python
from bot.extract.python.statements import PYTHON_INFO, could_be_python, is_python_program, python_pieces


def read_pieces(document: Document) -> tuple[Piece, ...]:
    """Every piece of the document in order: those of its blocks, and code that stands in the prose unfenced."""
    bare = tuple(bare_code(document))
    covered = {line for piece in bare for line in range(piece.lines[0], piece.lines[1] + 1)}
    pieces = [piece for block in document.blocks if block.lines[0] not in covered for piece in split_block(block)]
    return tuple(_with_inherited_cues(sorted([*pieces, *bare], key=lambda p: p.lines)))


def _with_inherited_cues(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Output right below the commands that work is what works prints; code right above a traceback fails."""
    above: Piece | None = None
    for at, piece in enumerate(pieces):
        below = pieces[at + 1] if at + 1 < len(pieces) else None
        if piece.kind is Kind.PYTHON and piece.cue is Cue.NONE and below and _same_fence(piece, below):
            piece = replace(piece, cue=Cue.FAILS)
        follows = above is not None and above.kind is Kind.SHELL and above.cue is Cue.WORKS and not piece.intro
        if follows and piece.kind is Kind.OUTPUT and piece.cue is Cue.NONE:
            piece = replace(piece, cue=Cue.WORKS)
        yield piece
        above = piece


def _same_fence(code: Piece, below: Piece) -> bool:
    return below.kind is Kind.TRACEBACK and bool(code.block) and below.block == code.block


_SHELL_INFO = {"sh", "bash", "shell", "console", "zsh", "cmd", "terminal", "shell-session"}

_DIFF_INFO = {"diff", "patch"}

_CONFIG_INFO = {"json", "yaml", "yml", "toml", "ini", "cmake", "dockerfile", "makefile", "xml"}

_NATIVE_INFO = {"c", "cpp", "c++", "cc", "cxx", "cuda", "cu", "hpp", "rust", "llvm", "asm", "glsl"}

_TEXT_INFO = {"text", "txt", "output", "log", "plaintext", "plain", "none"}


def info_word(info: str) -> str:
    """The language word of a fence: ``[Python]``, ``{.python}``, ``.py title=x`` → lower-case first word."""
    return re.sub(r"[^\w+#-]", " ", info.lower()).strip().partition(" ")[0]


def split_block(block: Block) -> list[Piece]:
    """The pieces of one block, in order."""
    whole = _whole(block)
    text = whole.text
    word = info_word(block.info)
    if word in _DIFF_INFO or re.match(r"diff --git |--- a/|@@ -\d", text):
        return [replace(whole, kind=Kind.DIFF)]
    if is_transcript(text) and parse_python(text) is None:  # it parses when the prompts stand in a docstring
        return read_transcript(whole)
    if word in _CONFIG_INFO:
        return [replace(whole, kind=Kind.CONFIG)]
    if word in _NATIVE_INFO or looks_native(text):
        return [replace(whole, kind=Kind.NATIVE)]
    if word not in _SHELL_INFO and is_python_program(text, word in PYTHON_INFO):
        return python_pieces(whole, word)
    parts = [inner for part in split_at_commands(whole) for inner in take_heredoc(part)]
    found: list[Piece] = []
    printed = False  # below a prompt with a program behind it stands what that printed
    for part in named_by_cat(parts):
        if part.kind is Kind.SHELL:
            program = given_as_argument(part)
            printed = bool(PROMPTED_LINE.match(part.text)) and is_command(part.text.partition("\n")[0])
            found += [part, program] if program else [part]
        elif printed and not part.name and not _IMPORTS.search(part.text):
            found.append(replace(part, kind=_printed_kind(part.text)))
        else:
            found += _classify(part, word)
    return [piece for piece in found if piece.text.strip()]


_IMPORTS = re.compile(r"^[ \t]*(?:import|from) [\w.]+", re.M)


def _printed_kind(text: str) -> Kind:
    kind = text_kind(text)
    return kind if kind is Kind.TRACEBACK else Kind.OUTPUT


def _whole(block: Block) -> Piece:
    """The block as one unclassified piece, with what Markdown did to it undone."""
    text = block.text
    if block.shape is Shape.INDENTED and (inner := _FENCE_INSIDE.fullmatch(text)):
        lines = block.lines
        block = replace(
            block, text=inner["code"], info=inner["info"], lines=(lines[0] + 1, max(lines[0] + 1, lines[1] - 1))
        )
        text = block.text
    if block.shape is Shape.HTML and "&" in text:
        text = html.unescape(text)  # inside <pre> this is what the page shows, not a repair
    return Piece(
        kind=Kind.OUTPUT,
        text=text,
        lines=block.lines,
        block=block.index,
        section=section_of(block.section),
        heading=block.section,
        intro=block.intro,
        cue=cue_of(block.intro) if block.intro else heading_cue(block.section),
        name=_file_name(block),
        comment=block.comment,
    )


_FENCE_INSIDE = re.compile(r"[ \t]*```(?P<info>[^\n`]{0,40})\n(?P<code>.*\n)[ \t]*```\s*", re.S)
"""A fence indented by four columns or more: Markdown shows its backticks, its author meant code."""

_FILE_NAME = re.compile(r"[\w.+-]{1,100}\.(?:py|mlir|mlirbc)\b")


def _file_name(block: Block) -> str:
    """The name that the info string, the first line or the words before the block give to its text."""
    first = block.text.partition("\n")[0][:200]
    if re.match(r"\s*(?:#|//)\s*[\w./+-]+\.(?:py|mlir)\s*$", first) and (found := _FILE_NAME.search(first)):
        return found[0]
    if found := _FILE_NAME.search(block.info[:200]):
        return found[0]
    names = _FILE_NAME.findall(block.intro[-300:])
    return names[-1] if names else ""


def _classify(piece: Piece, word: str) -> list[Piece]:
    if piece.kind is Kind.SHELL:
        return [piece]
    kind = text_kind(piece.text)
    if kind in (Kind.MLIR, Kind.FRAGMENT):
        return mlir_pieces(piece, kind)
    if kind is Kind.TRACEBACK and code_above_trace(piece.text):
        return python_pieces(piece, word)
    if kind is Kind.OUTPUT and word not in _TEXT_INFO:
        if could_be_python(piece.text, word):
            return python_pieces(piece, word)
    elif kind is Kind.OUTPUT and re.search(r"^[ \t]*(?:import|from) \w", piece.text, re.M):
        return python_pieces(piece, word)
    return [replace(piece, kind=kind)]
