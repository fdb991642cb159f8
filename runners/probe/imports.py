"""Find the imports that a process may execute before it forks to run a testcase: those at the script's start. Pure.

No statement of the testcase precedes these imports, so none can change their effect. Executed in the testcase's
order, they leave the same state as in the testcase itself.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath

from runners.core.protocol import Testcase
from runners.core.toolchain.guest import GuestFacts

MAX_CHARS = 200_000
MAX_STATEMENTS = 40


def list_own_modules(testcase: Testcase) -> frozenset[str]:
    """Return the module names that Python resolves to files or folders of the testcase before any other module."""
    paths = map(PurePosixPath, testcase.files)
    importable = (path for path in paths if len(path.parts) > 1 or path.suffix in (".py", ".pyc", ".so"))
    return frozenset(path.parts[0].partition(".")[0] for path in importable)


def hides_stdlib(testcase: Testcase) -> bool:
    """True if a file of the testcase has the name of a module of the standard library.

    Then any code in that process imports the testcase's file instead, including ours. Such a testcase is run without
    a fork.
    """
    return not sys.stdlib_module_names.isdisjoint(list_own_modules(testcase))


def find_leading_imports(testcase: Testcase, script: str) -> tuple[str, ...]:
    """Return the import statements at the start of a script, up to the first other statement or own import."""
    code = testcase.files[script]
    if len(code) > MAX_CHARS:
        return ()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the testcase's string literals
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_list_leading(body, list_own_modules(testcase)))[:MAX_STATEMENTS]


def _list_leading(body: list[ast.stmt], own: frozenset[str]) -> Iterator[str]:
    for number, node in enumerate(body):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) if number == 0:
                continue
            case ast.ImportFrom(module="__future__"):
                continue
            case ast.ImportFrom(module=str(module), level=0) if module.partition(".")[0] not in own:
                yield ast.unparse(node)
            case ast.Import(names=names) if not own & {alias.name.partition(".")[0] for alias in names}:
                yield ast.unparse(node)
            case _:
                return


def are_fast_after_base(statements: tuple[str, ...], guest: GuestFacts) -> bool:
    """True if import statements import the compiler, and are fast in a process that has imported only the compiler.

    Such a process can start the testcase as well as one that has executed the statements.
    """
    modules = {module for statement in statements for module in _list_modules(statement)}
    compiler = guest.base_import.removeprefix("import ")
    return any(_is_below(module, (compiler,)) for module in modules) and all(
        _is_below(module, guest.base_packages) and not _is_below(module, guest.slow_modules)
        for module in modules
        if module.partition(".")[0] not in sys.stdlib_module_names
    )


def _is_below(module: str, parents: tuple[str, ...]) -> bool:
    return any(module == parent or module.startswith(f"{parent}.") for parent in parents)


def _list_modules(statement: str) -> Iterator[str]:
    """Return the modules that an import statement may import."""
    for node in ast.parse(statement).body:
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case _:
                raise AssertionError(f"{statement!r} is no import statement")
