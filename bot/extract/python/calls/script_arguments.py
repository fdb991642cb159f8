"""Find the words that a script reads from its command line, and the commands in the report that give them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.command_line.shell import PROMPT
from bot.extract.python.parse import parse_python, walk

MAX_WORDS, MAX_RUNS = 40, 4
_COMMAND = re.compile(
    rf"^[ \t]{{0,8}}(?:{PROMPT}|> ?)?(?:[A-Z_]\w{{0,40}}=\S{{1,100}} ){{0,5}}"
    r"python[\d.]{0,5} (?:-[uBX] )?[\w./-]{1,200}\.py"
    r"(?P<words> [^\n|;&<>]{1,2000}?)?(?: \d?>.{0,200}| [|&;].{0,400})?$",
    re.M,
)


def find_arguments(pieces: Sequence[Piece]) -> tuple[tuple[str, ...], ...]:
    """Return the arguments of each command of the report that runs a script with arguments, without repetitions."""
    found: dict[tuple[str, ...], None] = {}
    typed = (piece.text for piece in pieces if piece.kind is Kind.SHELL)
    for command in (one["words"] or "" for text in typed for one in _COMMAND.finditer(text)):
        try:
            words = tuple(shlex.split(command)[:MAX_WORDS])
        except ValueError:
            continue
        if words:
            found.setdefault(words)
    return tuple(islice(found, MAX_RUNS))


_PATH = re.compile(r"(?:~|\.{0,2})/.|[\w.-]+/[\w./-]*\.\w{1,6}$")
_OUTPUT = re.compile(r"--?(?:o$|out|save|log|dump|work)")


def list_files(words: Sequence[str]) -> Iterator[str]:
    """Yield the words that name files to read by a path. A path after a flag such as ``--output`` is written."""
    for before, word in pairwise(("", *words)):
        if _PATH.match(word) and not _OUTPUT.match(before):
            yield word


def list_read_words(code: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the words that a script opens to read: ``load(sys.argv[1])``, or each of ``sys.argv[1:]`` in a loop."""
    tree = parse_python(code)
    if tree is None:
        return
    named: dict[str, int] = {}
    each: dict[str, int] = {}
    """Names of loops over all words from a position on."""
    for node in walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (at := _find_position(value)) is not None:
                named[name] = at
            case ast.For(
                target=ast.Name(id=name), iter=ast.Subscript(value=words_of, slice=ast.Slice(lower=lower))
            ) if ast.unparse(words_of) == "sys.argv" and isinstance(lower, ast.Constant):
                each[name] = int(lower.value) if isinstance(lower.value, int) else 1
            case _:
                pass
    places = set()
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[first, *rest]) if _READS.match(
                name
            ):
                at = named.get(first.id) if isinstance(first, ast.Name) else _find_position(first)
                if at is not None and not _opens_to_write(rest):
                    places.add(at)
                if isinstance(first, ast.Name) and first.id in each and not _opens_to_write(rest):
                    places.update(range(max(1, each[first.id]), len(words) + 1))
            case _:
                pass
    yield from (words[at - 1] for at in sorted(places) if at <= len(words) and not words[at - 1].startswith("-"))


_READS = re.compile(r"(?:load\w*|open|read\w*|from_?file|mmap|parse_?file|compile_file)$")


def _find_position(node: ast.expr) -> int | None:
    """Return 2 for ``sys.argv[2]``; None for another expression."""
    match node:
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id="sys"), attr="argv"), slice=ast.Constant(value=int(at))
        ) if at >= 1:
            return at
        case _:
            return None


def _opens_to_write(rest: Sequence[ast.expr]) -> bool:
    return any(isinstance(one, ast.Constant) and set(str(one.value)) & set("wax") for one in rest[:1])


def reads_arguments(code: str) -> bool:
    return "sys.argv" in code or "argparse" in code


def needs_arguments(code: str) -> bool:
    """True if a script cannot run without arguments."""
    tree = parse_python(code)
    if tree is None or "len(sys.argv)" in code:
        return False
    return any(map(_needs_word, walk(tree)))


def _needs_word(node: ast.AST) -> bool:
    """True for ``sys.argv[1]``, and for a positional argument of a parser without a default."""
    match node:
        case ast.Subscript():
            return _find_position(node) is not None
        case ast.Call(
            func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=str(name)), *_], keywords=keywords
        ):
            return not name.startswith("-") and not {"nargs", "default"} & {one.arg for one in keywords}
        case _:
            return False
