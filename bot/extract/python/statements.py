"""Which statements of a block are the reporter's program, and which are output pasted around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from bot.extract.blocks.kinds import tells_failure, text_kind
from bot.extract.blocks.pieces import Kind, Piece, rows_of
from bot.extract.python.indentation import dedented, mended
from bot.extract.python.names import dotted
from bot.extract.python.parse import Statement, parse_python, split_statements
from bot.extract.types import Repair
from bot.extract.vocabulary import any_of, vocabularies

PYTHON_INFO = {"python", "py", "python3", "py3", "pycon", "ipython", "ipynb", "pyhton", "pythn", "phyton"}
"""What a fence's info string calls Python, misspellings seen included."""


def is_python_program(text: str, labelled: bool) -> bool:
    tree = parse_python(dedented(text))
    if tree is None or not any(is_substantive(node) for node in tree.body):
        return False
    return labelled or not all(_is_bare_value(node) for node in tree.body)


def _is_bare_value(node: ast.stmt) -> bool:
    """``f32=8``: printed as often as written."""
    return isinstance(node, ast.Assign | ast.Expr | ast.AnnAssign) and not any(
        isinstance(inner, ast.Call | ast.Attribute) for inner in ast.walk(node)
    )


def could_be_python(text: str, word: str) -> bool:
    if word in PYTHON_INFO:
        return True
    statements = split_statements(dedented(text))
    good = sum(s.rows for s in statements if s.tree and any(is_substantive(n) for n in body_of(s)))
    strong = any(
        isinstance(n, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
        for s in statements
        if s.tree
        for n in s.tree.body
    )
    return strong or (good >= 2 and good * 2 >= sum(s.rows for s in statements))


def body_of(statement: Statement) -> Sequence[ast.stmt]:
    return statement.tree.body if statement.tree else ()


def is_substantive(node: ast.stmt) -> bool:
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


def python_pieces(piece: Piece, word: str) -> list[Piece]:
    """Code, then what follows it in the same block (output pasted below the code, a prompt, a traceback)."""
    text, repairs = mended(piece.text)
    piece = replace(piece, text=text, repairs=(*piece.repairs, *repairs))
    statements = split_statements(text)
    begin, end = _code_range(statements)
    if begin == end:
        kind = text_kind(piece.text)
        shown = kind is Kind.OUTPUT and word in PYTHON_INFO and not tells_failure(piece.text)
        return [replace(piece, kind=Kind.QUOTED if shown else kind)]
    first, last = statements[begin].row, statements[end - 1].row + statements[end - 1].rows
    code = rows_of(piece, first, last)
    code = _without_foreign(code, statements[begin:end], first)
    tree = parse_python(code.text)
    code = replace(code, kind=Kind.DEFINITIONS if tree and _only_defines(tree) else Kind.PYTHON)
    rest = rows_of(piece, last, len(piece.text.split("\n")) - 1)
    before = rows_of(piece, 0, first)
    if rest.text.strip():
        cut = f"line {rest.lines[0]} on is output, not code"
        code = replace(code, repairs=(*code.repairs, Repair(kind="cut-output", detail=cut)))
    around = [replace(p, kind=text_kind(p.text), repairs=()) for p in (before, rest) if p.text.strip()]
    return sorted([code, *around], key=lambda p: p.lines)


def _without_foreign(code: Piece, statements: Sequence[Statement], first: int) -> Piece:
    """``code`` without what is no Python in it: notebook magics, marks of omission, output in between."""
    magics = [s for s in statements if s.tree is None and _MAGIC.match(s.text)]
    omissions = [s for s in statements if _is_omission(s)]
    output = [
        s for s in statements if s.tree is None and s not in magics and s not in omissions and not _is_damaged_code(s)
    ]
    gone: set[int] = set()
    repairs = list(code.repairs)
    for kind, found in (("drop-magic", magics), ("elision", omissions), ("drop-lines", output)):
        for statement in found:
            gone.update(range(statement.row - first, statement.row - first + statement.rows))
            repairs.append(Repair(kind=kind, detail=f"left out {statement.text.strip()[:80]!r}"))
    if not gone:
        return code
    kept = [row for i, row in enumerate(code.text.split("\n")) if i not in gone]
    return replace(code, text="\n".join(kept), repairs=tuple(repairs))


_MAGIC = re.compile(r"[!%]\s?[A-Za-z]")
_OMISSION = re.compile(
    r"\s*(?:<[\w .:,'-]{2,60}>|[\[(]\.{3,}[\])]|…|\[…\]|\.{4,}"
    r"|\.{3} ?[A-Za-z][\w ,'.-]{2,80}(?: ?\.{3})?)\s*$"
)


def _is_omission(statement: Statement) -> bool:
    """``<snip>``, ``[...]``, ``... the rest of the model ...``: code stood here and was not copied."""
    text = statement.text.strip()
    return bool(_OMISSION.match(text)) and (statement.tree is None or text in ("[...]", "(...)"))


def _code_range(statements: Sequence[Statement]) -> tuple[int, int]:
    """Which statements are the program: from the first good one up to a stop, trailing output cut off."""
    good = [any(is_substantive(n) for n in body_of(s)) for s in statements]
    if not any(good):
        return 0, 0
    begin = good.index(True)
    while begin > 0 and (_is_header(statements[begin - 1]) or _MAGIC.match(statements[begin - 1].text)):
        begin -= 1
    end = begin
    for i in range(begin, len(statements)):
        if good[i]:
            end = i + 1
        elif _is_omission(statements[i]) or _MAGIC.match(statements[i].text):
            continue
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


def _only_defines(tree: ast.Module) -> bool:
    """Nothing but classes and functions in a compiler's own language, embedded in Python (a docstring aside)."""
    definitions = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    others = [n for n in tree.body if not isinstance(n, ast.ClassDef | ast.FunctionDef | ast.Import | ast.ImportFrom)]
    return (
        bool(definitions)
        and not any(isinstance(n, ast.Import | ast.ImportFrom) for n in tree.body)
        and all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in others)
        and all(_is_embedded(d) for d in definitions)
    )


def _is_embedded(node: ast.ClassDef | ast.FunctionDef) -> bool:
    names = {dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
    return any(_EMBEDDED.fullmatch(name) for name in names)


_EMBEDDED = re.compile(any_of(p for words in vocabularies() if (p := words.python.definition_pattern)))
