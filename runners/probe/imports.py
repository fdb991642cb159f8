"""Which imports a process may do before it knows the rest of a testcase: those that the testcase begins with. Pure.

Executed in the testcase's own order, before anything else of it could have changed how they turn out, they leave the
state that the testcase would have had after them.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath

from runners.core.protocol import Testcase

MAX_CHARS = 200_000
MAX_STATEMENTS = 40


def own_modules(testcase: Testcase) -> frozenset[str]:
    """Names under which Python would find a file or folder of the testcase's before any other."""
    paths = map(PurePosixPath, testcase.files)
    importable = (path for path in paths if len(path.parts) > 1 or path.suffix in (".py", ".pyc", ".so"))
    return frozenset(path.parts[0].partition(".")[0] for path in importable)


def hides_the_library(testcase: Testcase) -> bool:
    """Whether one of its files has the name of a module of Python's own.

    Whatever else runs in that process then imports the testcase's instead, ours included: it is run plain.
    """
    return not sys.stdlib_module_names.isdisjoint(own_modules(testcase))


def leading_imports(testcase: Testcase, script: str) -> tuple[str, ...]:
    """Import statements at the start of a script, up to the first other statement or import of its own files."""
    code = testcase.files[script]
    if len(code) > MAX_CHARS:
        return ()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its string literals, which are no concern of ours
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_leading(body, own_modules(testcase)))[:MAX_STATEMENTS]


def _leading(body: list[ast.stmt], own: frozenset[str]) -> Iterator[str]:
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
