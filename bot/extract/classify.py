"""Blocks → pieces of one kind each: a fence may hold code, a prompt, output and a traceback one after another."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from bot.extract.markdown import Block, Document, Shape
from bot.extract.names import dotted
from bot.extract.pytext import Statement, iter_statements, parse_python, split_statements
from bot.extract.sections import Cue, Section, cue_of, section_of
from bot.extract.types import Repair


class Kind(StrEnum):
    PYTHON = "python"
    TVMSCRIPT = "tvmscript"
    """Only TVMScript definitions: a module to be used, or a dump."""
    MLIR = "mlir"
    FRAGMENT = "mlir-fragment"
    """MLIR operations without the function around them."""
    SHELL = "shell"
    QUOTED = "quoted-code"
    """Labelled as code, and no program: an excerpt, a sketch."""
    TRACEBACK = "traceback"
    OUTPUT = "output"
    DIFF = "diff"
    CONFIG = "config"
    NATIVE = "c++"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of one kind. ``lines`` are 1-based, inclusive, in the body (of comment n when ``comment`` is n)."""

    kind: Kind
    text: str
    lines: tuple[int, int]
    block: int
    section: Section = Section.OTHER
    heading: str = ""
    intro: str = ""
    cue: Cue = Cue.NONE
    name: str = ""
    """The file name that the text gives it, if any."""
    repairs: tuple[Repair, ...] = ()
    comment: int = 0


def read_pieces(document: Document) -> tuple[Piece, ...]:
    """Every piece of the document in order: those of its blocks, and code that stands in the prose unfenced."""
    bare = tuple(_bare_code(document))
    covered = {line for piece in bare for line in range(piece.lines[0], piece.lines[1] + 1)}
    pieces = [piece for block in document.blocks if block.lines[0] not in covered for piece in split_block(block)]
    return tuple(_with_inherited_cues(sorted([*pieces, *bare], key=lambda p: p.lines)))


def _with_inherited_cues(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Output right below the commands that work is what works prints."""
    above: Piece | None = None
    for piece in pieces:
        follows = above is not None and above.kind is Kind.SHELL and above.cue is Cue.WORKS and not piece.intro
        if follows and piece.kind is Kind.OUTPUT and piece.cue is Cue.NONE:
            piece = replace(piece, cue=Cue.WORKS)
        yield piece
        above = piece


# ---------------------------------------------------------------------------------------------- one block

_PYTHON_INFO = {"python", "py", "python3", "py3", "pycon", "ipython", "ipynb", "pyhton", "pythn", "phyton"}
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
    if _prompted(text):
        return _transcript(whole)
    if word in _CONFIG_INFO:
        return [replace(whole, kind=Kind.CONFIG)]
    if word in _NATIVE_INFO or _looks_native(text):
        return [replace(whole, kind=Kind.NATIVE)]
    if word not in _SHELL_INFO and _is_python_program(text, word in _PYTHON_INFO):
        return _python_pieces(whole, word)
    parts = [inner for part in _split_at_commands(whole) for inner in _heredoc(part)]
    found: list[Piece] = []
    printed = False  # below a prompt with a program behind it stands what that printed
    for part in _named_by_cat(parts):
        if part.kind is Kind.SHELL:
            printed = bool(_PROMPTED_LINE.match(part.text)) and is_command(part.text.partition("\n")[0])
            found.append(part)
        elif printed and not part.name and not _IMPORTS.search(part.text):
            found.append(replace(part, kind=_printed_kind(part.text)))
        else:
            found += _classify(part, word)
    return [piece for piece in found if piece.text.strip()]


_IMPORTS = re.compile(r"^[ \t]*(?:import|from) [\w.]+", re.M)


def _printed_kind(text: str) -> Kind:
    kind = _text_kind(text)
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
        cue=cue_of(block.intro),
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


def rows_of(piece: Piece, begin: int, end: int, kind: Kind | None = None) -> Piece:
    """The part of ``piece`` from row ``begin`` to before row ``end`` (0-based), blank edges cut."""
    return _part(piece, piece.text.split("\n"), begin, end, kind)


def _part(piece: Piece, rows: Sequence[str], begin: int, end: int, kind: Kind | None = None) -> Piece:
    while begin < end and not rows[begin].strip():
        begin += 1
    while begin < end and not rows[end - 1].strip():
        end -= 1
    text = "".join(f"{row}\n" for row in rows[begin:end])
    first = piece.lines[0] + begin
    return replace(piece, text=text, lines=(first, max(first, first + end - begin - 1)), kind=kind or piece.kind)


# ---------------------------------------------------------------------------------------------- transcripts

_PROMPT = re.compile(r"^\s*(>>>|\.\.\.|In \[\d*\]:|\s*\.{3,}:|\$(?= (?:import|from) \w))(?: |$)")
_PYTHON_PROMPT = re.compile(r"^[ \t]*(?:>>> |In \[\d*\]: |\$ (?:import|from) \w)", re.M)


def _prompted(text: str) -> bool:
    return bool(_PYTHON_PROMPT.search(text))


def _transcript(piece: Piece) -> list[Piece]:
    """An interactive session → its code (one piece, prompts stripped) and its output."""
    code: list[str] = []
    output: list[str] = []
    session = False
    for row in piece.text.split("\n"):
        found = _PROMPT.match(row)
        if found and (session or not found[1].startswith("...")):
            session = True
            code.append(row[found.end() :])
        else:
            session = session and not row.strip()
            output.append(row)
    body = "\n".join(code).strip("\n") + "\n"
    repair = Repair(kind="strip-prompt", detail="took the code of an interactive session without prompts and output")
    pieces = [replace(piece, kind=Kind.PYTHON, text=body, repairs=(*piece.repairs, repair))]
    said = "\n".join(output).strip("\n")
    if said:
        kind = Kind.TRACEBACK if "Traceback (most recent" in said else Kind.OUTPUT
        pieces.append(replace(piece, kind=kind, text=said + "\n"))
    return pieces


# ---------------------------------------------------------------------------------------------- Python


def _is_python_program(text: str, labelled: bool) -> bool:
    tree = parse_python(_dedented(text))
    if tree is None or not any(_is_substantive(node) for node in tree.body):
        return False
    return labelled or not all(_is_bare_value(node) for node in tree.body)


def _is_bare_value(node: ast.stmt) -> bool:
    """``f32=8``: printed as often as written."""
    return isinstance(node, ast.Assign | ast.Expr | ast.AnnAssign) and not any(
        isinstance(inner, ast.Call | ast.Attribute) for inner in ast.walk(node)
    )


def _body(statement: Statement) -> Sequence[ast.stmt]:
    return statement.tree.body if statement.tree else ()


def _is_substantive(node: ast.stmt) -> bool:
    """Statements that output and prose do not parse as by accident."""
    match node:
        case (
            ast.Import()
            | ast.ImportFrom()
            | ast.FunctionDef()
            | ast.ClassDef()
            | ast.With()
            | ast.For()
            | ast.Assign()
        ):
            return True
        case ast.Expr(value=ast.Call()):
            return True
        case ast.Assert() | ast.Try() | ast.While() | ast.If() | ast.AugAssign():
            return True
        case _:
            return False


def _dedented(text: str) -> str:
    margin = _margin(text)
    return "\n".join(row[margin:] if row.strip() else "" for row in text.split("\n")) if margin else text


def _margin(text: str) -> int:
    widths = [len(row) - len(row.lstrip(" \t")) for row in text.split("\n") if row.strip()]
    return min(widths, default=0)


def _python_pieces(piece: Piece, word: str) -> list[Piece]:
    """Code, then what follows it in the same block (output pasted below the code, a prompt, a traceback)."""
    text, repairs = _unmangled(piece.text)
    piece = replace(piece, text=text, repairs=(*piece.repairs, *repairs))
    statements = split_statements(text)
    begin, end = _code_range(statements, lenient=word in _PYTHON_INFO)
    if begin == end:
        kind = _text_kind(piece.text)
        shown = kind is Kind.OUTPUT and word in _PYTHON_INFO and not _tells_failure(piece.text)
        return [replace(piece, kind=Kind.QUOTED if shown else kind)]
    first, last = statements[begin].row, statements[end - 1].row + statements[end - 1].rows
    code = rows_of(piece, first, last)
    dropped = [s for s in statements[begin:end] if s.tree is None and not _is_damaged_code(s)]
    if dropped:
        code = _without(code, [(s.row - first, s.row - first + s.rows) for s in dropped])
    tree = parse_python(code.text)
    code = replace(code, kind=Kind.TVMSCRIPT if tree and _only_tvmscript(tree) else Kind.PYTHON)
    rest = rows_of(piece, last, len(piece.text.split("\n")) - 1)
    before = rows_of(piece, 0, first)
    if rest.text.strip():
        cut = f"line {rest.lines[0]} on is output, not code"
        code = replace(code, repairs=(*code.repairs, Repair(kind="cut-output", detail=cut)))
    around = [replace(p, kind=_text_kind(p.text), repairs=()) for p in (before, rest) if p.text.strip()]
    return sorted([code, *around], key=lambda p: p.lines)


def _tells_failure(text: str) -> bool:
    return bool(_DIAGNOSTIC.search(text) or _AFTER_MLIR.search(text))


def _without(code: Piece, ranges: Sequence[tuple[int, int]]) -> Piece:
    rows = code.text.split("\n")
    kept = [row for i, row in enumerate(rows) if not any(a <= i < b for a, b in ranges)]
    cut = [row for i, row in enumerate(rows) if any(a <= i < b for a, b in ranges) and row.strip()]
    detail = (
        f"left out {len(cut)} line(s) that are not Python, the first being {cut[0].strip()[:80]!r}" if cut else ""
    )
    return replace(code, text="\n".join(kept), repairs=(*code.repairs, Repair(kind="drop-lines", detail=detail)))


_SMART = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " ", "–": "-", "−": "-", "…": "..."}
)


def _unmangled(text: str) -> tuple[str, tuple[Repair, ...]]:
    """``text`` with common indentation, entities, smart quotes and mixed tabs undone, each only where it helps."""
    repairs: list[Repair] = []
    margin = _margin(text)
    if margin:
        text = _dedented(text)
        repairs.append(_dedent_repair(margin))
    if parse_python(text) is not None:
        return text, tuple(repairs)
    best = text
    used: tuple[_Change, ...] = ()
    for changes in _RECIPES:
        changed, helped = _applied(changes, text)
        if helped and _parsed_rows(changed) > _parsed_rows(best):
            best, used = changed, _needed(helped, text, _parsed_rows(changed))
    if used:
        best, _ = _applied(used, text)
    return best, (*repairs, *(Repair(kind=change.kind, detail=change.detail) for change in used))


def _applied(changes: Sequence[_Change], text: str) -> tuple[str, tuple[_Change, ...]]:
    """``text`` after ``changes``, and those of them that changed it."""
    helped = []
    for change in changes:
        changed = change.apply(text)
        if changed != text:
            helped.append(change)
            text = changed
    return text, tuple(helped)


def _needed(changes: tuple[_Change, ...], text: str, rows: int) -> tuple[_Change, ...]:
    """``changes`` without those that the code does as well without."""
    for change in changes:
        fewer = tuple(c for c in changes if c is not change)
        if _parsed_rows(_applied(fewer, text)[0]) >= rows:
            changes = fewer
    return changes


def _parsed_rows(text: str) -> int:
    return sum(s.rows for s in split_statements(text) if s.tree is not None)


def _expand(width: int) -> Callable[[str], str]:
    return lambda text: text.expandtabs(width)


def _hanging(text: str) -> str:
    """Code whose first line lost its indentation when it was copied: the others still have theirs."""
    first, _, rest = text.partition("\n")
    margin = _margin(rest)
    return f"{first}\n{_dedented(rest)}" if margin and not first.rstrip().endswith(":") else text


@dataclass(frozen=True, slots=True)
class _Change:
    kind: str
    detail: str
    apply: Callable[[str], str]


_UNESCAPE = _Change("unescape", "HTML entities to characters", html.unescape)
_STRAIGHTEN = _Change(
    "straighten-quotes", "typographic quotes, dashes and spaces to plain ones", lambda text: text.translate(_SMART)
)
_HANG = _Change("dedent", "lines after the first moved to the margin", _hanging)
_RECIPES: tuple[tuple[_Change, ...], ...] = tuple(
    (_UNESCAPE, _STRAIGHTEN, _Change("expand-tabs", f"tabs to {width} columns", _expand(width)), *more)
    for width in (4, 8)
    for more in ((), (_HANG,))
)
"""What to try, in order; of each recipe only the steps that the code needs are kept."""


def _code_range(statements: Sequence[Statement], lenient: bool) -> tuple[int, int]:
    """Which statements are the program: from the first good one up to a stop, trailing output cut off."""
    good = [any(_is_substantive(n) for n in _body(s)) for s in statements]
    if not any(good):
        return 0, 0
    begin = good.index(True)
    while begin > 0 and _is_header(statements[begin - 1]):
        begin -= 1
    end = begin
    for i in range(begin, len(statements)):
        if good[i]:
            end = i + 1
        elif statements[i].tree is None and (_stops(statements[i]) or not _resumes(good, i)):
            if _is_damaged_code(statements[i]):
                end = i + 1
            break
    return begin, end


def _is_header(statement: Statement) -> bool:
    """Comments and a docstring at the top."""
    return statement.tree is not None and all(
        isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)
        for n in statement.tree.body
    )


_STOP = re.compile(
    r"\s*(?:Traceback \(most recent|\$ |# ?python |[\w./-]*python3? +[\w./-]+\.py|Error\b|[A-Z]\w+Error:|Stack dump"
    r"|\[\d\d:\d\d:\d\d\]|-{5,}|={5,}|!{5,}|~{3,}$|`{3,}|'{3}\s*$|Output\b|Result\b|\(?core dumped)"
)


def _stops(statement: Statement) -> bool:
    return bool(_STOP.match(statement.text))


def _resumes(good: Sequence[bool], at: int) -> bool:
    """More than a stray line of code follows: the junk was output in between."""
    return sum(good[at + 1 : at + 60]) >= 2


_CODE_START = re.compile(
    r"\s*(?:@|(?:async )?def |class |import |from |with |for |while |if |try:|return |assert |[\w.]+\(.*"
    r"|[\w.\[\], ]+ ?[-+*/]?= ?\S)"
)


def _is_damaged_code(statement: Statement) -> bool:
    """Meant as code, though it does not parse: it stays, and the testcase is incomplete."""
    return bool(_CODE_START.match(statement.text)) and not _stops(statement)


def _only_tvmscript(tree: ast.Module) -> bool:
    """Nothing but TVMScript classes and functions (a docstring and imports aside)."""
    definitions = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    others = [n for n in tree.body if not isinstance(n, ast.ClassDef | ast.FunctionDef | ast.Import | ast.ImportFrom)]
    return (
        bool(definitions)
        and not any(isinstance(n, ast.Import | ast.ImportFrom) for n in tree.body)
        and all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in others)
        and all(_is_tvmscript(d) for d in definitions)
    )


def _is_tvmscript(node: ast.ClassDef | ast.FunctionDef) -> bool:
    names = {dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
    return any(
        name.endswith(("ir_module", "R.function", "prim_func", "script.tir")) or name.startswith(("R.", "T.", "I."))
        for name in names
    )


# ---------------------------------------------------------------------------------------------- the rest

_COMMAND = re.compile(
    r"^\s{0,8}(?:\$ ?|% |> ?|# ?|// ?(?:RUN: ?)?|\w+@[\w.-]+:[^$#\n]{0,80}[$#] ?|[❯➜] ?)?(?:time |sudo "
    r"|gdb --args |[A-Z_]{2,40}=\S{0,200} )*"
    r"(?:[\w.~<>{}$/-]{0,200}/)?"
    r"(?:iree-(?:compile|opt|run-module|benchmark-module|dump-module|run-mlir|check-module|translate|import-onnx|"
    r"benchmark-executable|run-trace|e2e-matmul-test)\b(?![.:])|python[23.]*\s+(?:-\w )?[\w./-]+\.py\b"
    r"|python[23.]* -m \w|pytest )"
)
_PROMPTED_LINE = re.compile(r"^\s{0,8}(?:[$%] |\w+@[\w.-]+:[^$#\n]{0,80}[$#] )")
_PLAIN_SHELL = re.compile(
    r"^\s*(?:pip3? install|cd |export \w+=|git |cmake |make\b|ninja\b|source |mkdir |wget |iree-[a-z-]+ "
    r"|curl |sudo |apt "
    r"|conda |docker |cat |rm |echo |set -|#!/)"
)


_BUILD_LOG = re.compile(r"^(?:\[\d+/\d+\] |ninja: |FAILED: |make(?:\[\d+\])?: )", re.M)


def is_command(line: str) -> bool:
    return bool(_COMMAND.match(line[:2000]))


def _split_at_commands(piece: Piece) -> Iterator[Piece]:
    """Commands (with their continuation lines and here-documents) apart from the text between them."""
    rows = piece.text.split("\n")[:-1]
    begin = row = 0
    if _BUILD_LOG.search(piece.text):  # its commands are steps of a build, not of the reporter
        yield piece
        return
    while row < len(rows):
        line = rows[row]
        if not (is_command(line) or _PROMPTED_LINE.match(line) or _PLAIN_SHELL.match(line)):
            row += 1
            continue
        if row > begin:
            yield _part(piece, rows, begin, row)
        end = _command_end(rows, row)
        yield _part(piece, rows, row, end, Kind.SHELL)
        begin = row = end
    if begin < len(rows):
        yield _part(piece, rows, begin, len(rows))


_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w{1,40})\1")


def _command_end(rows: Sequence[str], row: int) -> int:
    """Behind the last row of the command that begins at ``row``."""
    if found := _HEREDOC.search(rows[row]):
        for end in range(row + 1, len(rows)):
            if rows[end].strip() == found[2]:
                return end + 1
        return len(rows)
    end = row + 1
    comment = rows[row].lstrip().startswith("//")
    while end < len(rows) and (_goes_on(rows[end - 1]) or (not comment and _is_flag_row(rows[end]))):
        end += 1
    return end


def _heredoc(piece: Piece) -> list[Piece]:
    """A here-document apart from the command that it feeds; the file that it writes gives it its name."""
    rows = piece.text.split("\n")
    found = _HEREDOC.search(rows[0]) if piece.kind is Kind.SHELL else None
    if found is None:
        return [piece]
    end = next((i for i in range(1, len(rows)) if rows[i].strip() == found[2]), len(rows) - 1)
    target = re.search(r">>? *([\w./+-]{1,200})", rows[0])
    name = target[1].rpartition("/")[2] if target else ""
    body = replace(_part(piece, rows, 1, end, Kind.OUTPUT), name=name or piece.name, cue=Cue.NONE)
    return [_part(piece, rows, 0, 1), body]


_CAT = re.compile(r"[ \t]*\$? ?(?:cat|less|more|bat) +([\w./+-]{1,200})\s*$")


def _named_by_cat(parts: Sequence[Piece]) -> Iterator[Piece]:
    """What follows ``$ cat model.mlir`` is that file."""
    name = ""
    for part in parts:
        if part.kind is Kind.SHELL:
            shown = _CAT.match(part.text)
            name = shown[1].rpartition("/")[2] if shown else ""
        elif name:
            part, name = replace(part, name=name, cue=Cue.NONE), ""
        yield part


def _goes_on(line: str) -> bool:
    return line.rstrip().endswith("\\")


def _is_flag_row(line: str) -> bool:
    """A row of flags below a command: the backslash before it was forgotten."""
    return bool(re.match(r"\s*--?[a-z][\w-]*(?:[= ]|$)", line))


def _classify(piece: Piece, word: str) -> list[Piece]:
    if piece.kind is Kind.SHELL:
        return [piece]
    kind = _text_kind(piece.text)
    if kind in (Kind.MLIR, Kind.FRAGMENT):
        return _mlir_pieces(piece, kind)
    if kind is Kind.TRACEBACK and _code_above_trace(piece.text):
        return _python_pieces(piece, word)
    if kind is Kind.OUTPUT and word not in _TEXT_INFO:
        if _could_be_python(piece.text, word):
            return _python_pieces(piece, word)
    elif kind is Kind.OUTPUT and re.search(r"^[ \t]*(?:import|from) \w", piece.text, re.M):
        return _python_pieces(piece, word)
    return [replace(piece, kind=kind)]


def _could_be_python(text: str, word: str) -> bool:
    if word in _PYTHON_INFO:
        return True
    statements = split_statements(_dedented(text))
    good = sum(s.rows for s in statements if s.tree and any(_is_substantive(n) for n in _body(s)))
    strong = any(
        isinstance(n, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
        for s in statements
        if s.tree
        for n in s.tree.body
    )
    return strong or (good >= 2 and good * 2 >= sum(s.rows for s in statements))


_MLIR_TOP = re.compile(
    r"^[ \t]*(?:func\.func|func|util\.func|module|builtin\.module|\"builtin\.module\"|hal\.executable"
    r"|flow\.executable|util\.global|"
    r"stream\.executable|vm\.module|transform\.|ml_program\.global|util\.initializer|check\."
    r"|module attributes|\"func\.func\")"
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
_AFTER_MLIR = re.compile(
    rf"{_DIAGNOSTIC.pattern}|^(?:\w+\.){{0,6}}\w*(?:Error|Exception): |^Traceback \(most|^Stack dump:|^EXEC @"
    r"|^={3,}|^-{5,}$",
    re.M,
)
_DUMP = re.compile(r"^[ \t]*// -----// IR Dump (?:After|Before)", re.M)
_MODULE_ROW = re.compile(r"^module\b[^\n]*\{\s*$", re.M)
_NATIVE_TEXT = re.compile(
    r"^[ \t]*(?:#include [<\"]|template ?<|namespace \w+|using namespace |TVM_REGISTER|void \w+\(|static \w+ \w+)",
    re.M,
)
_TRACE_TEXT = re.compile(
    r"^[ \t]*(?:Traceback \(most recent|Stack dump:|#0 +0x|Thread \d+ .*received signal|Program received signal)",
    re.M,
)


def _looks_native(text: str) -> bool:
    found = len(_NATIVE_TEXT.findall(text))
    return found >= 1 and not re.search(r"^[ \t]*(?:import|from) \w+", text, re.M) and not _MLIR_TOP.search(text)


def _text_kind(text: str) -> Kind:
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


def _mlir_pieces(piece: Piece, kind: Kind) -> list[Piece]:
    """The MLIR of the piece apart from diagnostics and output pasted below it."""
    found = _AFTER_MLIR.search(piece.text)
    if kind is not Kind.MLIR or found is None:
        return [replace(piece, kind=kind)]
    row = piece.text.count("\n", 0, found.start())
    rest = rows_of(piece, row, piece.text.count("\n"))
    return [rows_of(piece, 0, row, kind), replace(rest, kind=_text_kind(rest.text), name="")]


def _code_above_trace(text: str) -> bool:
    """A program stands above the traceback in the same block."""
    found = _TRACE_TEXT.search(text)
    above = text[: found.start()] if found else ""
    return bool(re.search(r"^[ \t]*(?:import|from) [\w.]+", above, re.M))


def is_dump(piece: Piece) -> bool:
    """Printed by the compiler, not written as an input: marked so, or the module again and again."""
    modules = len(_MODULE_ROW.findall(piece.text))
    return bool(_DUMP.search(piece.text)) or (modules > 1 and "// -----" not in piece.text)


# ---------------------------------------------------------------------------------------------- no fence at all

_IMPORT_ROW = re.compile(
    r"^ {0,3}(?:import [A-Za-z_][\w.]*(?: as \w+)?(?:, ?[A-Za-z_][\w.]*(?: as \w+)?)*"
    r"|from [A-Za-z_.][\w.]* import [\w*(][^\n]{0,300})\s*(?:#.*)?$"
)
_CODE_ROW = re.compile(
    r"^ {0,3}(?:[A-Za-z_][\w.]*(?:, ?[A-Za-z_]\w*){0,8} ?= ?[\w(\[{'\"-]|@[A-Za-z]|with [\w.]+\(|def \w+\("
    r"|class \w+[(:]|[A-Za-z_][\w.]*\()"
)
_FIELD_NAME = re.compile(r"\b(?:tvm|relax|relay|tir|te|iree|ireert|ireec|onnx|torch|np)\.\w")
_MLIR_ROW = re.compile(
    r"^ {0,3}(?:func\.func|util\.func|module)\b[^\n]{0,1000}\{\s*$"
    r"|^ {0,3}(?:util\.)?func(?:\.func)? (?:p\w+ )?@\w+\("
)


def _bare_code(document: Document) -> Iterator[Piece]:
    """Code that stands in the text without a fence: from an import row to the last statement that parses."""
    above = _Above(document)
    steps = _rows_of_steps(document)
    for begin, end in _open_ranges(document):
        row = begin
        while row < end:
            line = document.source[row]
            if _IMPORT_ROW.match(line) or (row in steps and _CODE_ROW.match(line)):
                piece, row = _bare_python(document, row, end)
            elif _MLIR_ROW.match(line):
                piece, row = _bare_mlir(document, row, end)
            else:
                piece, row = None, row + 1
            if piece is not None:
                yield above.describe(piece)


def _rows_of_steps(document: Document) -> frozenset[int]:
    """Rows (0-based) under a heading that announces how to reproduce; there, code needs no import to be seen as code.

    A heading of no known sort does not end them: a comment in unfenced Python looks like one.
    """
    rows: set[int] = set()
    begin: int | None = None
    for prose in document.prose:
        section = section_of(prose.text) if prose.heading else Section.OTHER
        if section is Section.OTHER:
            continue
        if begin is not None:
            rows.update(range(begin, prose.lines[0] - 1))
        begin = prose.lines[1] if section is Section.STEPS else None
    if begin is not None:
        rows.update(range(begin, len(document.source)))
    return frozenset(rows)


class _Above:
    """The heading and paragraph above a piece; asked in document order, so that one pass serves all."""

    def __init__(self, document: Document) -> None:
        self.prose = document.prose
        self.at = 0
        self.heading = self.intro = ""

    def describe(self, piece: Piece) -> Piece:
        while self.at < len(self.prose) and self.prose[self.at].lines[1] < piece.lines[0]:
            prose = self.prose[self.at]
            self.heading, self.intro = (prose.text, "") if prose.heading else (self.heading, prose.text)
            self.at += 1
        return replace(
            piece,
            section=section_of(self.heading),
            heading=self.heading,
            intro=self.intro,
            cue=cue_of(self.intro),
            comment=self.prose[0].comment if self.prose else 0,
        )


def _open_ranges(document: Document) -> Iterator[tuple[int, int]]:
    """Stretches of the body (0-based, end exclusive) outside fences; indented code belongs to them."""
    at = 0
    for block in document.blocks:
        if block.shape is Shape.INDENTED:
            continue
        begin = block.lines[0] - 1
        if begin > at:
            yield at, begin - (1 if block.shape is Shape.FENCE else 0)
        at = block.lines[1] + (1 if block.shape is Shape.FENCE else 0)
    if at < len(document.source):
        yield at, len(document.source)


MAX_BARE_ROWS = 2_000


def _bare_python(document: Document, begin: int, end: int) -> tuple[Piece | None, int]:
    """The program that starts at row ``begin``, if one does, and the row to go on from."""
    margin = len(document.source[begin]) - len(document.source[begin].lstrip(" "))
    window: Sequence[str] = document.source[begin : min(end, begin + MAX_BARE_ROWS)]
    if margin:
        window = [_outdented(row, margin) for row in window]
    kept = list(takewhile(lambda s: s.tree is not None, iter_statements(window)))
    looked_at = begin + max(1, sum(s.rows for s in kept))
    while kept and not any(_is_substantive(n) for n in _body(kept[-1])):
        kept.pop()
    acts = [s for s in kept if s.tree and any(not isinstance(n, ast.Import | ast.ImportFrom) for n in s.tree.body)]
    rows = list(window[: kept[-1].row + kept[-1].rows]) if kept else []
    while rows and (not rows[-1].strip() or rows[-1].startswith("#")):
        rows.pop()
    imports = _IMPORT_ROW.match(window[0])
    if not acts or (not imports and (len(kept) < 2 or not _FIELD_NAME.search("\n".join(rows)))):
        return None, looked_at
    piece = _bare_piece(Kind.PYTHON, rows, begin)
    if margin:
        piece = replace(piece, repairs=(_dedent_repair(margin),))
    return piece, begin + len(rows)


def _outdented(row: str, margin: int) -> str:
    return row[margin:] if not row[:margin].strip() else row


def _dedent_repair(margin: int) -> Repair:
    return Repair(kind="dedent", detail=f"removed {margin} column(s) of indentation")


def _bare_mlir(document: Document, begin: int, end: int) -> tuple[Piece | None, int]:
    depth = 0
    for row in range(begin, min(end, begin + MAX_BARE_ROWS)):
        line = document.source[row]
        depth += line.count("{") - line.count("}")
        if depth <= 0 and "}" in line:
            return _bare_piece(Kind.MLIR, document.source[begin : row + 1], begin), row + 1
    return None, min(end, begin + MAX_BARE_ROWS)


def _bare_piece(kind: Kind, rows: Sequence[str], begin: int) -> Piece:
    text = "".join(f"{row}\n" for row in rows)
    return Piece(kind=kind, text=text, lines=(begin + 1, begin + len(rows)), block=0)
