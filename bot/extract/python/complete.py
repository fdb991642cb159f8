"""What a program needs to run: imports that go without saying, a call of ``main``, and what cannot be had."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from bot.extract.python.grouping import Unit, acts
from bot.extract.python.known_names import well_known
from bot.extract.python.names import Names, files_read
from bot.extract.python.parse import parse_python
from bot.extract.python.requirements import Imports, read_imports
from bot.extract.types import Missing, Repair
from bot.extract.vocabulary import join_words
from runners.core.toolchain.reports import Written


def add_imports(code: str, names: Names, toolchain: str, written: Written) -> tuple[str, tuple[Repair, ...]]:
    """``code`` with imports of the well-known names that it uses and nobody binds, and a repair for each."""
    known = [found for name in names.free if (found := well_known(name, toolchain, code, written))]
    lines = list(dict.fromkeys(found.line for found in sorted(known, key=lambda found: found.order)))
    if not lines:
        return code, ()
    at = _after_header(code)
    rows = code.split("\n")
    fixed = "\n".join([*rows[:at], *lines, *rows[at:]])
    return fixed, tuple(Repair(kind="add-import", detail=line) for line in lines)


def _after_header(code: str) -> int:
    """The row behind the docstring and ``from __future__`` imports."""
    tree = parse_python(code)
    row = 0
    for node in tree.body if tree else ():
        docstring = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        row = node.end_lineno or row
    return row


def call_main(code: str) -> tuple[str, tuple[Repair, ...]]:
    """``code`` with calls of its entry functions when it defines some and calls nothing at all."""
    tree = parse_python(code)
    if tree is None or any(acts(n) for n in tree.body):
        return code, ()
    entries = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and _is_entry(n)]
    if not entries:
        return code, ()
    calls = "".join(f"{name}()\n" for name in entries)
    return f"{code.rstrip()}\n\n{calls}", tuple(Repair(kind="call-main", detail=f"{name}()") for name in entries)


_ENTRY = re.compile(r"(?:main|test\w*|run\w*|repro\w*|reproduce\w*)$")


def _is_entry(node: ast.FunctionDef) -> bool:
    arguments = node.args
    required = len(arguments.args) + len(arguments.posonlyargs) - len(arguments.defaults)
    needed = required or sum(d is None for d in arguments.kw_defaults)
    return not needed and not node.decorator_list and bool(_ENTRY.match(node.name))


def needs_of(
    code: str, undefined: Iterable[str], toolchain: str, units: Sequence[Unit], extra: Mapping[str, str] | None
) -> tuple[tuple[Missing, ...], tuple[str, ...], dict[str, Unit]]:
    """What the program lacks, what has to be installed for it, and the other files of the issue that it imports."""
    tree = parse_python(code)
    if tree is None:
        return (Missing(kind="code", name="the code does not parse as Python"),), (), {}
    imports = read_imports(tree, toolchain, extra)
    by_name = {u.piece.name.removesuffix(".py"): u for u in units if u.piece.name.endswith(".py")}
    imports, given = _followed_imports(imports, by_name, toolchain, extra)
    missing = [
        *(Missing(kind="module", name=m) for m in imports.unknown),
        *(Missing(kind="file", name=f) for f in files_read(tree)),
        *_missing_code(tree),
    ]
    missing += [Missing(kind="name", name=n) for n in undefined if n not in _OMITTED]
    files = {f"{name}.py": unit for name, unit in given.items()}
    return tuple(dict.fromkeys(missing)), imports.requirements, files


def _followed_imports(
    imports: Imports, by_name: Mapping[str, Unit], toolchain: str, extra: Mapping[str, str] | None
) -> tuple[Imports, dict[str, Unit]]:
    """``imports`` with those of the modules that the issue gives, and these modules, by name."""
    given: dict[str, Unit] = {}
    requirements, unknown = list(imports.requirements), []
    pending = deque(imports.unknown)
    while pending:
        module = pending.popleft()
        name = module.strip(".")
        if name not in by_name:
            unknown.append(module)
        elif name not in given:
            given[name] = by_name[name]
            if (tree := by_name[name].tree) is not None:
                more = read_imports(tree, toolchain, extra)
                requirements += more.requirements
                pending.extend(more.unknown)
    return Imports(requirements=tuple(dict.fromkeys(requirements)), unknown=tuple(dict.fromkeys(unknown))), given


_OMITTED = join_words(lambda words: words.python.omitted_constants)


def _missing_code(tree: ast.Module) -> Iterable[Missing]:
    """Constants that a printed module leaves out, and bodies elided to ``...``."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name in _OMITTED:
                yield Missing(kind="code", name=f'{name}["{key}"]')
            case ast.FunctionDef(name=name, body=[*_, ast.Expr(value=ast.Constant(value=value))]) if (
                value is Ellipsis
            ):
                if not _may_be_empty(node):
                    yield Missing(kind="code", name=f"the body of {name}")
            case ast.Assign(value=ast.Constant(value=value), targets=[ast.Name(id=name)]) if value is Ellipsis:
                yield Missing(kind="code", name=f"the value of {name}")
            case _:
                continue


def _may_be_empty(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name | ast.Attribute) and "overload" in ast.dump(d) for d in node.decorator_list)
