"""Who may import whom: the folder is the trust boundary, so crossing it has to turn a test red."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LETTERBOX = frozenset(
    {"protocol", "signature", "oracle", "output", "search", "errors", "progress", "catalogue", "toolchains"}
    | {"requirements", "bayes", "trail", "varied", "raised", "unequal"}
    | {"words", "frames", "likeness"}
)
"""What any module of ``bot`` may import from ``runners``: types, data and pure functions."""

SHELL = {
    "bot/app.py": frozenset({"execute", "minimize"}),
    "bot/jobs.py": frozenset({"execute"}),
    "bot/cli_jobs.py": frozenset({"environments", "job", "places", "workbench"}),
    "bot/cli_watch.py": frozenset({"child", "environments", "job", "places"}),
    "bot/watch.py": frozenset({"job"}),
    "bot/sweep.py": frozenset({"job"}),
    "bot/cli.py": frozenset(
        {
            "checkup",
            "commits",
            "config",
            "environments",
            "history",
            "minimize",
            "places",
            "refresh",
            "requirements",
            "sandbox.select",
            "workbench",
        }
    ),
}
"""The local verbs, which may also reach the entries that run a plan and look after the store."""

RUNS_THINGS = frozenset(
    {"subprocess", "multiprocessing", "ctypes", "pty", "runpy", "code", "codeop", "importlib", "socket"}
    | {"pickle", "marshal", "shelve", "pdb"}
)
HARMLESS = frozenset({"importlib.resources", "importlib.resources.abc", "importlib.metadata"})
CALLS = frozenset({"eval", "exec", "compile", "__import__", "breakpoint"})
COMPILES = frozenset({"bot/extract/names.py"})
"""Reads the names off a compiled text, which it never runs."""
OS_CALLS = ("system", "popen", "exec", "spawn", "fork", "posix_spawn", "startfile", "kill")

COMPILERS = {"tvm": frozenset({"tvm", "tvm_ffi", "numpy"}), "iree": frozenset({"iree", "numpy"})}
"""What a guest module may import beside the standard library, by the word its file name holds."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, by its full name: ``from a import b`` is ``a.b`` when that is a module, else ``a``."""

    module: str
    line: int


def imports(name: str, tree: ast.AST) -> Iterator[Import]:
    """Every import in a file, wherever it stands, in a function or under a condition too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, name)
            submodules = [f"{base}.{alias.name}" for alias in node.names if _is_module(f"{base}.{alias.name}")]
            yield from (Import(module, node.lineno) for module in submodules or [base])


def _absolute(node: ast.ImportFrom, name: str) -> str:
    package = Path(name).parts[: -node.level] if node.level else ()
    return ".".join((*package, *filter(None, (node.module,))))


def _is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_name(f"{place.name}.py").is_file() or place.is_dir() or name in HARMLESS


def crossings(name: str, text: str) -> list[str]:
    """Every crossing in the file ``name`` (its path below the root), as ``file:line what``."""
    tree = ast.parse(text)
    match name.split("/"):
        case ["bot", *_]:
            found = [*_of_bot(name, tree), *_calls(name, tree)]
        case ["runners", "guest", *_]:
            found = [*_of_guest(name, tree)]
        case _:
            found = [*_of_runners(name, tree)]
    return [f"{name}:{line} {what}" for line, what in found]


def _of_bot(name: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    allowed = LETTERBOX | SHELL.get(name, frozenset())
    for one in imports(name, tree):
        package, _, inner = one.module.partition(".")
        if package == "runners" and not any(inner == room or inner.startswith(f"{room}.") for room in allowed):
            yield one.line, f"imports {one.module}"
        if package in RUNS_THINGS and one.module not in HARMLESS:
            yield one.line, f"imports {one.module}"
        if package == "github" and name != "bot/github.py":
            yield one.line, "imports github: bot/github.py alone does"


def _calls(name: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="compile")) if name in COMPILES:
                pass
            case ast.Call(func=ast.Name(id=called)) if called in CALLS:
                yield node.lineno, f"calls {called}"
            case ast.Attribute(value=ast.Name(id="os"), attr=called) if called.startswith(OS_CALLS):
                yield node.lineno, f"uses os.{called}"
            case ast.Attribute(value=ast.Name(id="builtins"), attr=called) if called in CALLS:
                yield node.lineno, f"uses builtins.{called}"
            case ast.ImportFrom(module="builtins"):
                yield node.lineno, "imports from builtins"
            case ast.ImportFrom(module="os", names=names):
                yield from ((node.lineno, f"uses os.{one.name}") for one in names if one.name.startswith(OS_CALLS))
            case _:
                pass


def _of_runners(name: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    open_to_bot = name.removeprefix("runners/").removesuffix(".py").split("/")[0] in LETTERBOX
    for one in imports(name, tree):
        package, _, inner = one.module.partition(".")
        if package == "bot":
            yield one.line, f"imports {one.module}"
        # What bot may import must not lead to what it may not.
        if open_to_bot and package == "runners" and inner.split(".")[0] not in LETTERBOX:
            yield one.line, f"is open to bot and imports {one.module}"
        if open_to_bot and package in RUNS_THINGS and one.module not in HARMLESS:
            yield one.line, f"is open to bot and imports {one.module}"


def _of_guest(name: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    own = {other.stem for other in (ROOT / "runners/guest").glob("*.py")}
    compilers = {module for word, modules in COMPILERS.items() if word in name for module in modules}
    for one in imports(name, tree):
        package = one.module.split(".")[0]
        if package not in sys.stdlib_module_names | own | compilers and not one.module.startswith("runners.guest"):
            yield one.line, f"imports {one.module}"


@pytest.mark.parametrize("package", ["bot", "runners"])
def test_no_import_crosses_a_boundary(package: str) -> None:
    """``runners`` never imports ``bot``, ``bot`` only the letterbox, and the guest only the standard library."""
    paths = sorted(ROOT.glob(f"{package}/**/*.py"))
    assert len(paths) > 10
    assert [what for path in paths for what in crossings(path.relative_to(ROOT).as_posix(), _text(path))] == []


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_guest_is_written_for_the_oldest_python_it_meets() -> None:
    """A sandbox may hold CPython 3.10: newer syntax there would fail before any testcase runs."""
    for path in ROOT.glob("runners/guest/**/*.py"):
        ast.parse(_text(path), str(path), feature_version=(3, 10))


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("runners/search.py", "from bot.verdict import Report", "imports bot.verdict"),
        ("runners/sandbox/contract.py", "import bot", "imports bot"),
        ("runners/guest/tvm_trace.py", "from bot import issue", "imports bot.issue"),
        ("runners/guest/supervisor.py", "import numpy", "imports numpy"),
        ("runners/guest/supervisor.py", "from runners.protocol import Cell", "imports runners.protocol"),
        (
            "runners/signature.py",
            "from runners.execute import investigate",
            "is open to bot and imports runners.execute",
        ),
        ("runners/oracle.py", "import subprocess", "is open to bot and imports subprocess"),
        ("runners/toolchains/tvm.py", "import ctypes", "is open to bot and imports ctypes"),
        ("runners/toolchains/iree.py", "from runners import uv", "is open to bot and imports runners.uv"),
        ("bot/judge.py", "from runners import execute", "imports runners.execute"),
        ("bot/judge.py", "from runners.execute import investigate", "imports runners.execute"),
        ("bot/app.py", "from runners.sandbox import none", "imports runners.sandbox.none"),
        ("bot/comment.py", "import subprocess", "imports subprocess"),
        ("bot/comment.py", "import importlib", "imports importlib"),
        ("bot/extract/types.py", "import ctypes.util", "imports ctypes.util"),
        ("bot/page.py", "from github import Github", "imports github: bot/github.py alone does"),
        ("bot/issue.py", "exec('1')", "calls exec"),
        ("bot/extract/names.py", "builtins.exec('1')", "uses builtins.exec"),
        ("bot/github.py", "os.execv('/bin/sh', [])", "uses os.execv"),
        ("bot/github.py", "from os import system", "uses os.system"),
    ],
)
def test_a_crossing_is_noticed(file: str, line: str, said: str) -> None:
    """One forbidden line planted in a copy of a real file, hidden in a function, is found by its place."""
    text = _text(ROOT / file)
    before = crossings(file, text)
    planted = f"{text}\n\ndef planted() -> None:\n    {line}\n"
    assert crossings(file, planted) == [*before, f"{file}:{len(text.splitlines()) + 4} {said}"]
