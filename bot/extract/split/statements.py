"""Separate the statements of the reporter's program from the output around them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from bot.extract.blocks.kinds import classify_text, has_failure
from bot.extract.blocks.pieces import Kind, Piece, cut_rows
from bot.extract.python.brackets import mend_brackets
from bot.extract.python.names import read_dotted_name
from bot.extract.python.parse import Statement, is_docstring, parse_python, split_statements, walk
from bot.extract.python.repair import dedent_text, repair_text
from bot.extract.types import DROP_CODE, Repair
from bot.extract.vocabulary import any_of, list_vocabularies

PYTHON_INFO = {"python", "py", "python3", "py3", "pycon", "ipython", "ipynb", "pyhton", "pythn", "phyton"}
"""Names of Python in the info string of a fence, with the misspellings seen in issues."""


def is_python_program(text: str, labelled: bool) -> bool:
    """True if ``text`` parses and does something. An unlabelled text must contain more than bare values."""
    tree = parse_python(dedent_text(text))
    if tree is None or not any(is_substantive(node) for node in tree.body):
        return False
    return labelled or not all(_is_bare_value(node) for node in tree.body)


def _is_bare_value(node: ast.stmt) -> bool:
    """True for a statement such as ``f32=8``, which is as often printed as written."""
    return isinstance(node, ast.Assign | ast.Expr | ast.AnnAssign) and not any(
        isinstance(inner, ast.Call | ast.Attribute) for inner in walk(node)
    )


def may_be_python(text: str, word: str) -> bool:
    """True if the label ``word``, an import, a definition or most rows show that ``text`` is Python."""
    if word in PYTHON_INFO:
        return True
    statements = split_statements(dedent_text(text))
    strong = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    if any(isinstance(node, strong) for statement in statements for node in statement.body):
        return True
    good = sum(s.rows for s in statements if any(is_substantive(n) for n in s.body))
    return good >= 2 and good * 2 >= sum(s.rows for s in statements)


def is_substantive(node: ast.stmt) -> bool:
    """True for a statement that is not output or prose which parses by accident."""
    match node:
        case ast.Expr(value=ast.List() | ast.Tuple() | ast.Set() | ast.Dict()):
            return False  # ``[tensor(1.), tensor(2.)]`` is the printed value far more often than a statement
        case ast.Expr(value=value):
            return any(isinstance(inner, ast.Call | ast.Await | ast.NamedExpr) for inner in walk(value))
        case ast.AnnAssign(value=None) | ast.Raise(exc=None):
            return False
        case _:
            return not isinstance(node, _LONE_WORDS)


_LONE_WORDS = (ast.Pass, ast.Break, ast.Continue, ast.Return, ast.Global, ast.Nonlocal)
"""Statements without an effect at the top level of a program that compiles."""

_PLAIN_VALUES = (
    *(ast.Expr, ast.AnnAssign, ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Set, ast.Dict),
    *(ast.UnaryOp, ast.USub, ast.UAdd, ast.expr_context),
)


def has_effect(node: ast.stmt) -> bool:
    """True unless the program means the same without the statement: a word, a literal, a version, ``name: word``."""
    if isinstance(node, _LONE_WORDS):
        return False
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return True
    match node:
        case ast.Expr(value=ast.Attribute(attr=name)) if name.startswith("__") and name.endswith("__"):
            return False  # ``tvm.__version__`` at the end of a notebook's cell
        case _:
            pass
    return not all(isinstance(inner, _PLAIN_VALUES) for inner in walk(node))


def split_python(piece: Piece, word: str) -> list[Piece]:
    """Return the code of ``piece`` and the text around it: output below the code, a prompt, a traceback."""
    text, repairs = repair_text(piece.text)
    text, mended = mend_brackets(text, piece.lines[0])
    piece = replace(piece, text=text, repairs=(*piece.repairs, *repairs, *mended))
    statements = split_statements(text)
    if _is_printed_body(statements):
        return [replace(piece, kind=Kind.OUTPUT)]
    begin, end = _find_code(statements)
    if begin == end or not (word in PYTHON_INFO or any(map(_does_something, statements[begin:end]))):
        kind = classify_text(piece.text)
        shown = kind is Kind.OUTPUT and word in PYTHON_INFO and not has_failure(piece.text)
        return [replace(piece, kind=Kind.QUOTED if shown else kind)]
    first, last = statements[begin].row, statements[end - 1].row + statements[end - 1].rows
    code = _drop_foreign(cut_rows(piece, first, last), statements[begin:end], first)
    tree = parse_python(code.text)
    code = replace(code, kind=Kind.DEFINITIONS if tree and _has_only_definitions(tree) else Kind.PYTHON)
    rest = cut_rows(piece, last, len(piece.text.split("\n")) - 1)
    before = cut_rows(piece, 0, first)
    if rest.text.strip():
        detail = f"line {rest.lines[0]} on is output, not code"
        code = replace(code, repairs=(*code.repairs, Repair(kind="cut-output", detail=detail)))
    code = record_left_out(code, (*statements[:begin], *statements[end:]))
    around = [replace(p, kind=classify_text(p.text), repairs=()) for p in (before, rest) if p.text.strip()]
    return sorted([code, *around], key=lambda p: p.lines)


def _is_printed_body(statements: Sequence[Statement]) -> bool:
    """True for the body of a printed function, from inside its ``def`` to its ``return``.

    The printer writes the type of each value, which is a call: ``lv: R.Tensor((m, n), "float32") = R.add(x, y)``. A
    program has imports, definitions or calls beside such rows, also if it lost its indentation.
    """
    nodes = [node for statement in statements for node in statement.body]
    returns = any(isinstance(node, ast.Return) for node in nodes)
    if not returns or not all(isinstance(node, _OF_BODIES) for node in nodes):
        return False
    return any(_is_typed_value(inner) for node in nodes for inner in walk(node))


_OF_BODIES = (ast.AnnAssign, ast.Assign, ast.For, ast.If, ast.Return, ast.With)


def _is_typed_value(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.annotation, ast.Call)


def _does_something(statement: Statement) -> bool:
    """True unless a statement only names values, as a printed ``f32=0.25`` seems to do."""
    return statement.tree is None or any(isinstance(node, _DOING) for outer in statement.body for node in walk(outer))


_DOING = (
    *(
        ast.Call,
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Assert,
        ast.Raise,
    ),
    *(ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Delete, ast.Await, ast.Lambda),
)


def record_left_out(code: Piece, statements: Sequence[Statement]) -> Piece:
    """Record the ``statements`` that have an effect or are damaged code. Without them, the program is another one."""
    repairs = [
        Repair(kind=DROP_CODE, detail=f"left out {statement.text.strip()[:80]!r}")
        for statement in statements
        if any(has_effect(node) for node in statement.body) or (statement.tree is None and is_damaged_code(statement))
    ]
    return replace(code, repairs=(*code.repairs, *repairs[:MAX_RECORDED])) if repairs else code


MAX_RECORDED = 20
"""One statement is enough: it decides as much as a thousand."""


def _drop_foreign(code: Piece, statements: Sequence[Statement], first: int) -> Piece:
    """Drop the statements that are not Python: notebook magics, marks of omission, output in between."""
    unparsed = [s for s in statements if s.tree is None]
    magics = [s for s in unparsed if _MAGIC.match(s.text)]
    omissions = [s for s in statements if _is_omission(s)]
    named = {s.row for s in (*magics, *omissions)}  # rows: comparing each pair of statements would be quadratic
    output = [s for s in unparsed if s.row not in named and not is_damaged_code(s)]
    dropped: set[int] = set()
    repairs = list(code.repairs)
    for kind, foreign in (("drop-magic", magics), ("elision", omissions), ("drop-lines", output)):
        for statement in foreign:
            dropped.update(range(statement.row - first, statement.row - first + statement.rows))
            runs_code = kind == "drop-magic" and not _SETUP_MAGIC.match(statement.text)
            detail = f"left out {statement.text.strip()[:80]!r}"
            repairs.append(Repair(kind=DROP_CODE if runs_code else kind, detail=detail))
    if not dropped:
        return code
    kept = [row for i, row in enumerate(code.text.split("\n")) if i not in dropped]
    return replace(code, text="\n".join(kept), repairs=tuple(repairs))


_MAGIC = re.compile(r"[!%]\s?[A-Za-z]")
_SETUP_MAGIC = re.compile(
    r"[!%]\s?(?:pip3?|conda|mamba|uv|apt|apt-get|python3? -m pip|matplotlib|load_ext|reload_ext|autoreload|config|env"
    r"|set_env|cd|pwd|ls|cat|nvidia-smi|uname|lscpu|which|git)\b"
)
"""Magics and shell lines that prepare or describe the machine. Any other (``%timeit f(x)``) runs code."""
_OMISSION = re.compile(
    r"\s*(?:<[\w .:,'-]{2,60}>|[\[(]\.{3,}[\])]|…|\[…\]|\.{4,}"
    r"|\.{3} ?[A-Za-z][\w ,'.-]{2,80}(?: ?\.{3})?)\s*$"
)


def _is_omission(statement: Statement) -> bool:
    """True for ``<snip>``, ``[...]`` or ``... the rest of the model ...``: the reporter left code out here."""
    text = statement.text.strip()
    return bool(_OMISSION.match(text)) and (statement.tree is None or text in ("[...]", "(...)"))


def _find_code(statements: Sequence[Statement]) -> tuple[int, int]:
    """Return the range of statements that are the program: from the first good statement up to a stop.

    Output at the end does not belong to the range.
    """
    good = [any(is_substantive(n) for n in s.body) for s in statements]
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
        elif statements[i].tree is None and (_is_stop(statements[i]) or not _has_more_code(good, i)):
            if is_damaged_code(statements[i]):
                end = i + 1
            break
    bound = _list_bound(statements[begin:end])
    while end < len(statements) and _shows_value(statements[end], bound):
        end += 1
    return begin, end


def _list_bound(statements: Sequence[Statement]) -> frozenset[str]:
    nodes = (inner for one in statements for node in one.body for inner in walk(node))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _shows_value(statement: Statement, bound: frozenset[str]) -> bool:
    """True for an expression of names that the code above binds, such as ``s / n`` at the end of a notebook's cell.

    A printed value has no such name.
    """
    if statement.tree is None or not all(isinstance(node, ast.Expr) for node in statement.body):
        return False
    names = {inner.id for node in statement.body for inner in walk(node) if isinstance(inner, ast.Name)}
    return bool(names) and names <= bound


def _is_header(statement: Statement) -> bool:
    """True for comments and a docstring."""
    return statement.tree is not None and all(is_docstring(node) for node in statement.body)


_STOP = re.compile(
    r"\s*(?:Traceback \(most recent|\$ |# ?python |[\w./-]*python3? +[\w./-]+\.py|Error\b|[A-Z]\w+Error:|Stack dump"
    r"|\[\d\d:\d\d:\d\d\]|-{5,}|={5,}|!{5,}|~{3,}$|`{3,}|'{3}\s*$|Output\b|Result\b|\(?core dumped)"
)


def _is_stop(statement: Statement) -> bool:
    return bool(_STOP.match(statement.text))


def _has_more_code(good: Sequence[bool], at: int) -> bool:
    """True if more than a stray line of code follows. Then the text at ``at`` is output in between."""
    return sum(good[at + 1 : at + 60]) >= 2


_CODE_START = re.compile(
    r"\s*(?:@|(?:async )?(?:def|with|for) |class |import |from |while |if |try:|return |assert |[\w.]+\(.*"
    r"|raise \w|del \w|await \w|match .*:\s*$|[\w.\[\], ]+ ?[-+*/]?= ?\S)"
)


def is_damaged_code(statement: Statement) -> bool:
    """True for code that does not parse. The code stays in the testcase, which is then incomplete."""
    return bool(_CODE_START.match(statement.text)) and not _is_stop(statement)


def _has_only_definitions(tree: ast.Module) -> bool:
    """True for a module of classes and functions in a compiler's own language. A docstring is allowed."""
    definitions = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    others = [n for n in tree.body if not isinstance(n, ast.ClassDef | ast.FunctionDef)]
    return (
        bool(definitions)
        and all(isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) for n in others)
        and all(_is_embedded(d) for d in definitions)
    )


def _is_embedded(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """True if a decorator marks a definition in a compiler's own language."""
    names = {read_dotted_name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
    return any(_EMBEDDED.fullmatch(name) for name in names)


_EMBEDDED = re.compile(any_of(p for words in list_vocabularies() if (p := words.python.definition_pattern)))
