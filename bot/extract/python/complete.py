"""Complete a program: add conventional imports and a call of ``main``, and list the parts that are missing."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from bot.extract.python.grouping import Unit, list_entries
from bot.extract.python.known_names import find_known_import
from bot.extract.python.names import ModuleNames, find_files_read, read_dotted_name
from bot.extract.python.parse import is_docstring, parse_python, walk
from bot.extract.python.requirements import DISTRIBUTIONS, Imports, read_imports
from bot.extract.types import ASSUME_VALUE, Missing, Repair
from bot.extract.vocabulary import join_words, list_vocabularies, vocabulary_of
from runners.core.packages.requirements import check_requirements
from runners.core.toolchain.reports import ReportAge


def add_imports(code: str, names: ModuleNames, toolchain: str, age: ReportAge) -> tuple[str, tuple[Repair, ...]]:
    """Import the well-known names that ``code`` uses without a binding. Return the code and a repair per import."""
    known = [found for name in names.free if (found := find_known_import(name, toolchain, code, age))]
    lines = list(dict.fromkeys(found.line for found in sorted(known, key=lambda found: found.order)))
    if not lines:
        return code, ()
    at = _find_header_end(code)
    rows = code.split("\n")
    completed = "\n".join([*rows[:at], *lines, *rows[at:]])
    return completed, tuple(Repair(kind="add-import", detail=line) for line in lines)


def bind_defaults(code: str, names: ModuleNames, toolchain: str, prose: str) -> tuple[str, Mapping[str, Repair]]:
    """Assign their usual values to names of a target or device that an excerpt leaves out, above their first use.

    Return the code, and a repair for each of the names that it now binds.
    A value that needs a module which the code does not use is left out.
    """
    tree = parse_python(code)
    choose = vocabulary_of(toolchain).python.choose_default
    defaults = {name: value for name in names.free if (value := choose(name, f"{prose}\n{code}")) is not None}
    if tree is None or not defaults:
        return code, {}
    rows, repairs = code.split("\n"), {}
    known = {node.id for node in walk(tree) if isinstance(node, ast.Name)}
    for name, value in defaults.items():
        users = (node for node in tree.body if any(isinstance(n, ast.Name) and n.id == name for n in walk(node)))
        user = next(users, None)
        needed = {node.id for node in walk(ast.parse(value)) if isinstance(node, ast.Name)}
        if user is None or not needed <= known:
            continue
        line = f"{name} = {value}"
        first = min([user.lineno, *(one.lineno for one in getattr(user, "decorator_list", ()))])
        rows[first - 1] = f"{line}\n{rows[first - 1]}"  # a row keeps its position until all are written
        repairs[name] = Repair(kind=ASSUME_VALUE, detail=line)
    return "\n".join(rows), repairs


def leave_out_imports(code: str, mentioned: frozenset[str]) -> tuple[str, tuple[Repair, ...]]:
    """Leave out imports of packages that no testcase may install, if the code does not use them.

    Such a package is often one that draws a picture. An import that the report mentions stays: the import itself may
    fail. The rows of the code keep their numbers.
    """
    tree = parse_python(code)
    if tree is None:
        return code, ()
    used = {node.id for node in walk(tree) if isinstance(node, ast.Name)}
    rows, repairs = code.split("\n"), []
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom) or node.lineno != node.end_lineno:
            continue
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        alone = rows[node.lineno - 1].strip() == ast.unparse(node)
        if alone and not bound & used and all(_is_refused(module, mentioned) for module in modules):
            repairs.append(Repair(kind="drop-import", detail=f"left out {ast.unparse(node)}, which nothing uses"))
            rows[node.lineno - 1] = ""
    return "\n".join(rows), tuple(repairs)


def _is_refused(module: str, mentioned: frozenset[str]) -> bool:
    top = module.partition(".")[0]
    wheel = DISTRIBUTIONS.get(top)
    return wheel is not None and top not in mentioned and bool(check_requirements([wheel])[1])


def _find_header_end(code: str) -> int:
    """Return the row after the docstring and the ``from __future__`` imports."""
    tree = parse_python(code)
    row = 0
    for node in tree.body if tree else ():
        if not (is_docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            break
        row = node.end_lineno or row
    return row


def call_main(code: str) -> tuple[str, tuple[Repair, ...]]:
    """Call the entry functions of code that only defines functions. Return the code and a repair per call."""
    tree = parse_python(code)
    entries = list_entries(tree) if tree is not None else ()
    if not entries:
        return code, ()
    calls = "".join(f"{name}()\n" for name in entries)
    return f"{code.rstrip()}\n\n{calls}", tuple(Repair(kind="call-main", detail=f"{name}()") for name in entries)


def find_needs(
    code: str, undefined: Iterable[str], toolchain: str, units: Sequence[Unit], extra: Mapping[str, str] | None
) -> tuple[tuple[Missing, ...], tuple[str, ...], dict[str, Unit]]:
    """Return the missing parts, the distributions to install, and the files of the issue that ``code`` imports."""
    tree = parse_python(code)
    if tree is None:
        return (Missing(kind="code", name="the code does not parse as Python"),), (), {}
    by_name = {u.piece.name.removesuffix(".py"): u for u in units if u.piece.name.endswith(".py")}
    imports, given = _follow_imports(read_imports(tree, toolchain, extra), by_name, toolchain, extra)
    defined = {*_OMITTED, *_list_language_names(tree)}
    missing = [
        *(Missing(kind="module", name=m) for m in imports.unknown),
        *(Missing(kind="file", name=f) for f in find_files_read(tree)),
        *_find_missing_code(tree),
        *(Missing(kind="name", name=n) for n in undefined if n not in defined),
    ]
    files = {f"{name}.py": unit for name, unit in given.items()}
    return tuple(dict.fromkeys(missing)), imports.requirements, files


def _list_language_names(tree: ast.AST) -> frozenset[str]:
    """Return the names that languages define in decorated functions: ``allocate`` below ``@tvm.hybrid.script``."""
    decorators = (
        read_dotted_name(decorator.func if isinstance(decorator, ast.Call) else decorator)
        for node in walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    )
    languages = [
        (f".{name}", defined)
        for words in list_vocabularies()
        for name, defined in words.python.language_names.items()
    ]
    return frozenset(
        name
        for used in decorators
        for suffix, defined in languages
        if f".{used}".endswith(suffix)
        for name in defined
    )


def _follow_imports(
    imports: Imports, by_name: Mapping[str, Unit], toolchain: str, extra: Mapping[str, str] | None
) -> tuple[Imports, dict[str, Unit]]:
    """Add the imports of the modules that the issue gives. Return all imports, and these modules by name."""
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


def _find_missing_code(tree: ast.Module) -> Iterable[Missing]:
    """Yield the constants that a printed module leaves out, and the bodies and values elided to ``...``."""
    for node in walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name in _OMITTED:
                yield Missing(kind="code", name=f'{name}["{key}"]')
            case ast.FunctionDef(name=name, body=[*_, ast.Expr(value=ast.Constant(value=value))]) if (
                value is Ellipsis and not _is_overload(node)
            ):
                yield Missing(kind="code", name=f"the body of {name}")
            case ast.Assign(value=ast.Constant(value=value), targets=[ast.Name(id=name)]) if value is Ellipsis:
                yield Missing(kind="code", name=f"the value of {name}")
            case _:
                continue


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name | ast.Attribute) and "overload" in ast.dump(d) for d in node.decorator_list)
