"""Cut a document into pieces: a fence may contain code, a prompt, output and a traceback one after another."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bot.extract.blocks.kinds import (
    ABSOLUTE_IMPORT,
    CALLS_OR_IMPORTS,
    IMPORT,
    classify_text,
    has_code_above_trace,
    is_environment,
    is_native,
    split_mlir,
)
from bot.extract.blocks.markdown import CodeBlock, Document, Shape
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, IssueSection, classify_heading, read_cue, read_heading_cue
from bot.extract.command_line.shell import PROMPTED_LINE, is_command
from bot.extract.links import find_linked_names
from bot.extract.python.parse import parse_python
from bot.extract.python.repair import drop_line_numbers
from bot.extract.split.notebook import find_cells
from bot.extract.split.patches import read_added_tests
from bot.extract.split.session import (
    is_interpreter_session,
    name_shown_files,
    read_argument_program,
    split_at_commands,
    split_heredoc,
    split_interpreter_session,
)
from bot.extract.split.statements import PYTHON_INFO, is_python_program, may_be_python, split_python
from bot.extract.split.unfenced import (
    find_code_in_sentence,
    find_command_in_sentence,
    find_mlir_in_sentence,
    find_unfenced_code,
)
from bot.extract.vocabulary import any_of, list_tools


def split_document(document: Document) -> tuple[Piece, ...]:
    """Return the pieces of the blocks and of the code without a fence, in document order."""
    unfenced = tuple(find_unfenced_code(document))
    covered = {line for piece in unfenced for line in range(piece.lines[0], piece.lines[1] + 1)}
    blocks = [_reach_up(document, block) for block in document.blocks]
    pieces = [piece for block in blocks if block.lines[0] not in covered for piece in split_block(block)]
    if not pieces and not unfenced and (program := find_code_in_sentence(document)) is not None:
        return (program,)
    if {piece.kind for piece in (*pieces, *unfenced)} <= _OUTPUTS and (command := find_command_in_sentence(document)):
        unfenced = (*unfenced, command)
    if all(p.kind is not Kind.MLIR for p in (*pieces, *unfenced)) and (function := find_mlir_in_sentence(document)):
        unfenced = (*unfenced, function)
    cells = (cell for cell in find_cells(document) if cell.lines[0] not in covered)
    ordered = sorted([*pieces, *unfenced, *cells], key=lambda p: p.lines)
    return tuple(_inherit_cues(_name_inputs(_mark_printed(ordered))))


_OUTPUTS = {Kind.OUTPUT, Kind.TRACEBACK, Kind.CONFIG}


_COMPILERS = any_of(re.escape(name) for tools in list_tools() for name in (*tools.compilers, *tools.stand_ins))
_COMMAND_ALONE = re.compile(
    r"\W{0,4}(?:(?:after|with|from|running|(?:the )?(?:output|result) of) (?:running )?)?"
    rf"`{_COMPILERS} [^`\n]{{1,300}}`"
    r"(?:[\s,;(]{0,3}(?:(?:on|in|with|of|from|by) )?(?:[A-Za-z]{2,10} )?v?\d[\w.]{0,20})?\W{0,4}",
    re.I,
)
"""A row that is a command alone, maybe with the build that ran it."""
_NAMES_COMMAND = re.compile(rf"`{_COMPILERS} [^`\n]{{1,300}}`", re.I)
_PRINTED_IN = {IssueSection.ACTUAL: Cue.OUTPUT, IssueSection.EXPECTED: Cue.EXPECTED}


def _mark_printed(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Give the cue of output to a program below another one that a command prints.

    It is directly below the command, or without words in a section about the output. The first of several programs is
    not output if nothing is above it, whatever its words: a program above would have to print it.
    """
    has_program, programs = False, [piece for piece in pieces if piece.kind is Kind.MLIR]
    above: Piece | None = None
    for piece in pieces:
        typed = above is not None and above.kind is Kind.SHELL and above.block == piece.block
        if typed and piece.kind is Kind.FRAGMENT and piece.cue is Cue.NONE:
            piece = replace(piece, cue=Cue.OUTPUT)  # operations without a function are not the command's input
        if piece in programs[:1] and programs[1:] and piece.cue is Cue.OUTPUT and piece is pieces[0]:
            piece = replace(piece, cue=Cue.NONE)
        if has_program and piece.kind in (Kind.MLIR, Kind.FRAGMENT):
            last = piece.intro.strip().rpartition("\n")[2]
            if _COMMAND_ALONE.fullmatch(last) or (piece.cue is Cue.QUOTED and _NAMES_COMMAND.search(last)):
                piece = replace(piece, cue=Cue.OUTPUT)
            elif piece.cue is Cue.NONE and not piece.intro.strip():
                piece = replace(piece, cue=_PRINTED_IN.get(piece.section, Cue.NONE))
        shows = piece.kind in (Kind.PYTHON, Kind.DEFINITIONS) and not CALLS_OR_IMPORTS.search(piece.text)
        if has_program and shows and piece.cue is Cue.NONE and not piece.intro.strip():
            piece = replace(piece, cue=_PRINTED_IN.get(piece.section, Cue.NONE))  # a printed module, or its rows
        has_program = has_program or (
            piece.kind in (Kind.MLIR, Kind.PYTHON) and piece.cue not in (Cue.OUTPUT, Cue.EXPECTED, Cue.QUOTED)
        )
        yield piece
        above = piece


def _name_inputs(pieces: Iterable[Piece]) -> list[Piece]:
    """Give the name between two programs to the program above, if the program below is output.

    "`mlir-opt a.mlir` prints:" names the input of the command.
    """
    named = list(pieces)
    for at in range(1, len(named)):
        above, piece = named[at - 1 : at + 1]
        is_output = piece.kind is Kind.MLIR and piece.cue in (Cue.OUTPUT, Cue.QUOTED) and piece.name in piece.intro
        if piece.name and is_output and above.kind is Kind.MLIR and above.cue not in (Cue.OUTPUT, Cue.QUOTED):
            named[at - 1 : at + 1] = replace(above, name=above.name or piece.name), replace(piece, name="")
    return named


def _inherit_cues(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Give `Cue.WORKS` to output right below working commands, and `Cue.FAILS` to code right above a traceback."""
    above: Piece | None = None
    for at, piece in enumerate(pieces):
        below = pieces[at + 1] if at + 1 < len(pieces) else None
        if piece.kind is Kind.PYTHON and piece.cue is Cue.NONE and below and _is_traceback_of(below, piece):
            piece = replace(piece, cue=Cue.FAILS)
        follows = above is not None and above.kind is Kind.SHELL and above.cue is Cue.WORKS and not piece.intro
        if follows and piece.kind is Kind.OUTPUT and piece.cue is Cue.NONE:
            piece = replace(piece, cue=Cue.WORKS)
        yield piece
        above = piece


def _is_traceback_of(below: Piece, code: Piece) -> bool:
    return below.kind is Kind.TRACEBACK and bool(code.block) and below.block == code.block


_SHELL_INFO = {"sh", "bash", "shell", "console", "zsh", "cmd", "terminal", "shell-session"}
_DIFF_INFO = {"diff", "patch"}
_CONFIG_INFO = {"json", "yaml", "yml", "toml", "ini", "cmake", "dockerfile", "makefile", "xml"}
_NATIVE_INFO = {"c", "cpp", "c++", "cc", "cxx", "cuda", "cu", "hpp", "rust", "llvm", "asm", "glsl"}
_TEXT_INFO = {"text", "txt", "output", "log", "plaintext", "plain", "none"}


def _reach_up(document: Document, block: CodeBlock) -> CodeBlock:
    """Return an indented block of Python with the indented rows of the paragraph right above it.

    Markdown counts indented rows below a row of words as words: ``#n = …`` and then the rest of the program.
    """
    first = begin = block.lines[0] - 1
    own = document.source[begin] if block.shape is Shape.INDENTED else ""
    margin = len(own) - len(own.lstrip(" "))
    for at in range(begin - 1, max(-1, begin - MAX_ROWS_ABOVE) if margin else begin, -1):
        row = document.source[at]
        if row[:margin].strip():
            break
        first = at if row.strip() else first
    above = document.source[first:begin]
    text = "\n".join([*(row[margin:] for row in above), block.text])
    if not above or parse_python(text) is None:
        return block
    return replace(block, text=text, lines=(first + 1, block.lines[1]))


MAX_ROWS_ABOVE = 200


def split_block(block: CodeBlock) -> list[Piece]:
    """Return the pieces of one block, in order."""
    whole = _make_piece(block)
    text = whole.text
    # The language word of ``[Python]``, ``{.python}`` or ``.py title=x``.
    word = re.sub(r"[^\w+#-]", " ", block.info.lower()).strip().partition(" ")[0]
    if word in _DIFF_INFO or re.match(r"diff --git |--- a/|@@ -\d", text):
        return read_added_tests(whole) or [replace(whole, kind=Kind.DIFF)]
    if is_interpreter_session(text) and parse_python(text) is None:  # a text with prompts in a docstring parses
        return split_interpreter_session(whole)
    labelled_otherwise = classify_text(text) is Kind.MLIR  # people label MLIR as llvm, c or json for its colours
    if (word in _CONFIG_INFO and not labelled_otherwise) or is_environment(text):
        return [replace(whole, kind=Kind.CONFIG)]
    if (word in _NATIVE_INFO and not labelled_otherwise) or is_native(text):
        return [replace(whole, kind=Kind.NATIVE)]
    if word not in _SHELL_INFO and is_python_program(text, word in PYTHON_INFO):
        return split_python(whole, word)
    parts = [inner for part in split_at_commands(whole) for inner in split_heredoc(part)]
    pieces: list[Piece] = []
    printed = False  # text below a prompt with a program is the output of that program
    for part in name_shown_files(parts):
        if part.kind is Kind.SHELL:
            program = read_argument_program(part)
            printed = bool(PROMPTED_LINE.match(part.text)) and is_command(part.text.partition("\n")[0])
            pieces += [part, program] if program else [part]
        elif part.kind is Kind.CONFIG:
            pieces.append(part)
        elif printed and not part.name and not IMPORT.search(part.text):
            kind = classify_text(part.text)
            pieces.append(replace(part, kind=kind if kind is Kind.TRACEBACK else Kind.OUTPUT))
        else:
            pieces += _classify_part(part, word)
    return [piece for piece in pieces if piece.text.strip()]


def _make_piece(block: CodeBlock) -> Piece:
    """Return the block as one unclassified piece. Undo the changes that Markdown made to the text."""
    text, info, lines = block.text, block.info, block.lines
    if block.shape is Shape.INDENTED and (inner := _INDENTED_FENCE.fullmatch(text)):
        text, info = inner["code"], inner["info"]
        lines = (lines[0] + 1, max(lines[0] + 1, lines[1] - 1))
    if block.shape is Shape.INDENTED and text.count("`") == 1:
        text = _LAST_TICK.sub("", text)  # the other backtick is in the paragraph above
    if block.shape is Shape.HTML and "&" in text:
        text = html.unescape(text)  # the page shows the text of <pre> like this: it is not a repair
    return Piece(
        kind=Kind.OUTPUT,
        text=drop_line_numbers(text),
        lines=lines,
        block=block.index,
        section=classify_heading(block.section),
        heading=block.section,
        intro=block.intro,
        cue=read_cue(block.intro) if block.intro else read_heading_cue(block.section),
        name=_find_file_name(text, info, block.intro),
        comment=block.comment,
    )


_INDENTED_FENCE = re.compile(r"[ \t]*```(?P<info>[^\n`]{0,40})\n(?P<code>.*\n)[ \t]*```\s*", re.S)
"""A fence indented by four columns or more: Markdown shows the backticks, the author meant code."""

_LAST_TICK = re.compile(r"`(?=[ \t]*\n?\Z)")

_FILE_NAME = re.compile(r"[\w.+-]{1,100}\.(?:py|mlir|mlirbc)\b")


def _find_file_name(text: str, info: str, intro: str) -> str:
    """Return the file name that the first line, the info string or the words before the block give to ``text``."""
    first = text.partition("\n")[0][:200]
    if re.match(r"\s*(?:#|//)\s*[\w./+-]+\.(?:py|mlir)\s*$", first) and (found := _FILE_NAME.search(first)):
        return found[0]
    if found := _FILE_NAME.search(info[:200]):
        return found[0]
    linked = find_linked_names(
        intro.rstrip().rpartition("\n")[0]
    )  # a link right above the block offers the block itself
    names = [name for name in _FILE_NAME.findall(intro[-300:]) if name not in linked]
    return names[-1] if names else ""


def _classify_part(piece: Piece, word: str) -> list[Piece]:
    kind = classify_text(piece.text)
    if kind in (Kind.MLIR, Kind.FRAGMENT):
        return split_mlir(piece, kind)
    if kind is Kind.TRACEBACK:
        is_python = has_code_above_trace(piece.text)
    elif word in _TEXT_INFO:
        is_python = bool(ABSOLUTE_IMPORT.search(piece.text))
    else:
        is_python = may_be_python(piece.text, word)
    return split_python(piece, word) if is_python else [replace(piece, kind=kind)]
