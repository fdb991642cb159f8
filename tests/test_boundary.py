"""Which folder may import which: the folder is the trust boundary, and the arrows point one way.

`ARROWS` is the whole structure. A folder that is not listed, an import that is not allowed, and a circle of folders
each fail here.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from bench.structure import compiler_literals

ROOT = Path(__file__).parent.parent

_EVIDENCE = {"bot.issue", "bot.extract", "bot.verdict"}
_ANSWER = {*_EVIDENCE, "bot.plan", "bot.settings", "bot.report", "bot.suspects", "bot.forge"}

ARROWS: dict[str, set[str]] = {
    # What both rings use: pure.
    "runners.core": set(),
    "runners.toolchains": {"runners.guest.iree"},  # a pipeline's text is read as the guest reads it
    # The ring that holds the token. Reads issues, judges evidence, writes answers; executes nothing of an issue.
    "bot.issue": set(),
    "bot.extract": {"bot.issue"},
    "bot.verdict": {"bot.issue", "bot.extract"},
    "bot.plan": {"bot.extract"},
    "bot.settings": {"bot.verdict"},
    "bot.suspects": _EVIDENCE,
    "bot.report": {*_EVIDENCE, "bot.plan", "bot.suspects"},
    "bot.forge": {*_EVIDENCE, "bot.settings", "bot.report"},
    "bot.requests": _ANSWER,
    "bot.daemon": {*_ANSWER, "bot.requests"},
    "bot.tracker": {*_ANSWER, "bot.requests", "bot.daemon"},
    "bot.cli": {*_ANSWER, "bot.requests", "bot.daemon", "bot.tracker"},
    "bot.__main__": {"bot.cli", "bot.report"},
    # The ring that executes, host side. Holds no token.
    "runners.rewrite": {"runners.toolchains"},
    "runners.minimization": set(),
    "runners.sandbox": set(),
    "runners.hardware": {"runners.sandbox"},
    "runners.environments": {"runners.toolchains"},
    "runners.builds": {"runners.toolchains", "runners.environments", "runners.sandbox"},
    "runners.probe": {"runners.toolchains", "runners.environments", "runners.sandbox"},
    "runners.diagnosis": set(),
    "runners.investigation": {"runners.rewrite"},
    "runners.doctor": {"runners.toolchains", "runners.environments", "runners.sandbox", "runners.hardware"},
    "runners.workbench": {
        *("runners.toolchains", "runners.rewrite", "runners.minimization", "runners.sandbox", "runners.hardware"),
        *("runners.environments", "runners.builds", "runners.probe", "runners.diagnosis", "runners.investigation"),
    },
    "runners.cells": {
        *("runners.hardware", "runners.minimization", "runners.workbench", "runners.environments"),
        *("runners.sandbox", "runners.toolchains"),
    },
    # The hostile ring: standard library, and the compiler under test where the folder has its name.
    "runners.guest": set(),
    "runners.guest.probe": {"runners.guest"},
    "runners.guest.script": {"runners.guest"},
    "runners.guest.tvm": {"runners.guest"},
    "runners.guest.iree": {"runners.guest"},
}
"""Folder → the folders of its own side that its modules may import."""
OPEN_TO_BOT = {"runners.core", "runners.toolchains", "runners.rewrite"}
"""What any module of ``bot`` may import from ``runners``.

``rewrite`` turns text into text: the comment shows a ported testcase, which a record names by its changes alone.
"""
LOCAL_VERBS = {
    *("runners.workbench", "runners.cells", "runners.doctor", "runners.environments"),
    *("runners.builds", "runners.sandbox", "runners.minimization"),
}
"""What ``bot.cli`` alone may import from ``runners``: the entries that run a plan and look after the store."""

RUNS_THINGS = frozenset(
    {"subprocess", "multiprocessing", "ctypes", "pty", "runpy", "code", "codeop", "importlib", "socket"}
    | {"pickle", "marshal", "shelve", "pdb"}
)
HARMLESS = frozenset({"importlib.resources", "importlib.resources.abc", "importlib.metadata"})
CALLS = frozenset({"eval", "exec", "compile", "__import__", "breakpoint"})
COMPILES = frozenset({"bot/extract/python/names.py"})
"""Reads the names off a compiled text, which it never runs."""
LISTENS = frozenset({("bot/daemon/webhook.py", "socket")})
"""Closes and reads the connections of its own server, with deadlines that `socketserver` does not have."""
OS_CALLS = ("system", "popen", "exec", "spawn", "fork", "posix_spawn", "startfile", "kill")
PURE = ("bot.extract", "bot.verdict", "runners.core", "runners.rewrite", "runners.toolchains")
"""Folders that read no file, clock or environment. A package's own data files count as constants."""
IMPURE = {
    "runners.core.database": {"sqlite3", "pathlib.Path"},
    "runners.core.job_files": {"os", "pathlib.Path"},
    "runners.core.hostile.folders": {"os", "pathlib.Path"},
    "runners.core.packages.catalogue": {"pathlib.Path"},  # reads refreshed listings
    "runners.core.toolchain.contract": {"pathlib.Path"},  # the type of an installed package's folder
    "runners.toolchains.iree": {"os", "pathlib.Path"},  # looks into an installed package
    "runners.toolchains.tvm": {"pathlib.Path"},
}
"""The exceptions. docs/architecture.md names those of ``runners.core``."""
EFFECTS = frozenset(
    {"fcntl", "glob", "os", "pathlib.Path", "random", "shutil", "sqlite3", "tempfile", "time", "urllib.request"}
)
"""Modules and names with which code reads or changes something outside its arguments."""

COMPILER_MODULES = {"runners.guest.tvm": {"tvm", "tvm_ffi", "numpy"}, "runners.guest.iree": {"iree", "numpy"}}
"""What a guest folder may import beside the standard library."""
LIBRARIES = {"github": "bot/forge/github/"}
"""A library that one folder alone may import."""


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


@functools.cache
def _is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_name(f"{place.name}.py").is_file() or place.is_dir() or name in HARMLESS


def crossings(name: str, tree: ast.AST) -> list[str]:
    """Every crossing in the file ``name`` (its path below the root), as ``file:line what``."""
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    found = list(_imports(folder_of(module), name, tree))
    if module.startswith("bot"):
        found += _calls(name, tree)
    return [f"{name}:{line} {what}" for line, what in found]


def folder_of(module: str) -> str:
    """The folder of `ARROWS` that a module belongs to: the longest that fits."""
    parts = module.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in ARROWS), module)


def _imports(folder: str, name: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    pure = folder.startswith("bot") or folder in OPEN_TO_BOT
    for one in imports(name, tree):
        top = one.module.split(".")[0]
        if top in ("bot", "runners"):
            if one.module not in ("bot", "runners") and _follows_an_arrow(folder, folder_of(one.module)):
                continue
            if one.module == top and folder.startswith(top):
                continue
            yield one.line, f"imports {one.module}"
        elif pure and top in RUNS_THINGS and one.module not in HARMLESS and (name, one.module) not in LISTENS:
            yield one.line, f"imports {one.module}"
        elif top in LIBRARIES and not name.startswith(LIBRARIES[top]):
            yield one.line, f"imports {top}: {LIBRARIES[top]} alone does"
        elif folder.startswith("runners.guest") and top not in _known_to_guest(folder):
            yield one.line, f"imports {one.module}"


def _known_to_guest(folder: str) -> set[str]:
    return set(sys.stdlib_module_names) | COMPILER_MODULES.get(folder, set())


def _follows_an_arrow(source: str, target: str) -> bool:
    if source == target or target in ARROWS.get(source, set()):
        return True
    if source.startswith("runners.guest"):
        return False
    if source.startswith("bot"):
        return target in OPEN_TO_BOT or (source == "bot.cli" and target in LOCAL_VERBS)
    return target == "runners.core"


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


@pytest.mark.parametrize("package", ["bot", "runners"])
def test_no_import_crosses_a_boundary(package: str) -> None:
    """Every import follows an arrow; ``bot`` and what is open to it cannot run anything."""
    paths = sorted(ROOT.glob(f"{package}/**/*.py"))
    assert len(paths) > 10
    assert [what for path in paths for what in crossings(path.relative_to(ROOT).as_posix(), _tree(path))] == []


def test_the_installed_package_only_starts_the_command_line() -> None:
    """It chooses the folders that are imported, and does nothing else."""
    used = {
        one.module
        for path in (ROOT / "reprobot").glob("*.py")
        for one in imports(path.relative_to(ROOT).as_posix(), ast.parse(_text(path)))
    }
    assert used - set(sys.stdlib_module_names) == {"bot.__main__", "reprobot", "__future__"} - set(
        sys.stdlib_module_names
    )


def test_pure_folders_have_no_effects_outside_the_named_modules() -> None:
    """A module of a pure folder that opens a file, or reads the clock, is one of `IMPURE`."""
    assert {name: found for name, one in _read_pure_modules().items() if (found := effects(one))} == IMPURE
    planted = "def late():\n    import time\n    from pathlib import Path, PurePath\n    open('a')"
    assert effects(ast.parse(planted)) == {"time", "pathlib.Path", "open"}


def test_the_architecture_names_the_impure_modules_of_the_core() -> None:
    text = _text(ROOT / "docs/architecture.md")
    core = [name for name in IMPURE if name.startswith("runners.core.") and name != "runners.core.toolchain.contract"]
    assert [name for name in core if f"`{name.replace('.', '/')}.py`" not in text] == []


def _read_pure_modules() -> dict[str, ast.Module]:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for ring in ("bot", "runners")
        for path in sorted((ROOT / ring).rglob("*.py"))
    }
    return {name: _tree(path) for name, path in modules.items() if name.startswith(PURE)}


def effects(tree: ast.AST) -> set[str]:
    """What a module imports or calls to read or change something outside its arguments."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {one.name for one in names}
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module, *(f"{module}.{one.name}" for one in names)}
            case ast.Call(func=ast.Name(id="open")):
                found.add("open")
    return found & {*EFFECTS, "open"}


def test_the_arrows_have_no_circle() -> None:
    assert list(TopologicalSorter(ARROWS).static_order())


def test_a_constant_of_a_module_has_one_value() -> None:
    """A second assignment further down also changes the functions above it, and no checker notices."""
    again = {}
    for path in sorted(path for package in ("bot", "runners") for path in ROOT.glob(f"{package}/**/*.py")):
        given = Counter(
            target.id
            for node in _tree(path).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        )
        twice = [name for name, times in given.items() if times > 1]
        if twice:
            again[path.relative_to(ROOT).as_posix()] = twice
    assert again == {}


def test_every_folder_is_small_enough_to_read() -> None:
    """About twelve modules and folders, the face not counted."""
    crowded = {}
    for folder in sorted({path.parent for package in ("bot", "runners") for path in ROOT.glob(f"{package}/**/*.py")}):
        names = {path.stem for path in folder.glob("*.py")} | {
            path.parent.name for path in folder.glob("*/__init__.py")
        }
        count = len(names - {"__init__", "__main__"})
        if count > CROWDED.get(folder.relative_to(ROOT).as_posix(), 13):
            crowded[folder.relative_to(ROOT).as_posix()] = count
    assert crowded == {}


CROWDED = {"runners": 15, "runners/core": 15}
"""The host side's own face: its folders, and the entries that use them."""


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(_text(path), str(path))


def test_the_guest_is_written_for_the_oldest_python_it_meets() -> None:
    """A sandbox may hold CPython 3.10: newer syntax there would fail before any testcase runs."""
    for path in ROOT.glob("runners/guest/**/*.py"):
        ast.parse(_text(path), str(path), feature_version=(3, 10))


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("runners/core/bisection/releases.py", "from bot.issue import Issue", "imports bot.issue"),
        ("runners/core/errors.py", "from runners.toolchains import iree", "imports runners.toolchains.iree"),
        ("runners/core/failure/oracle/failed.py", "import subprocess", "imports subprocess"),
        ("runners/toolchains/tvm/__init__.py", "import ctypes", "imports ctypes"),
        (
            "runners/toolchains/iree/__init__.py",
            "from runners.environments import uv",
            "imports runners.environments.uv",
        ),
        ("runners/sandbox/contract.py", "import bot", "imports bot"),
        ("runners/sandbox/contract.py", "from runners.probe import run", "imports runners.probe.run"),
        ("runners/guest/tvm/trace.py", "from bot import issue", "imports bot.issue"),
        ("runners/guest/probe/supervisor.py", "import numpy", "imports numpy"),
        ("runners/guest/probe/supervisor.py", "import tvm", "imports tvm"),
        ("runners/guest/iree/trace.py", "import tvm", "imports tvm"),
        ("runners/guest/probe/supervisor.py", "from runners.core import errors", "imports runners.core.errors"),
        ("bot/verdict/judge.py", "from runners import workbench", "imports runners.workbench"),
        ("bot/verdict/judge.py", "from bot.report import comment", "imports bot.report.comment"),
        ("bot/cli/app.py", "from runners.probe import run", "imports runners.probe.run"),
        ("bot/report/comment.py", "import subprocess", "imports subprocess"),
        ("bot/report/comment.py", "import importlib", "imports importlib"),
        ("bot/extract/types.py", "import ctypes.util", "imports ctypes.util"),
        ("bot/report/page.py", "from github import Github", "imports github: bot/forge/github/ alone does"),
        ("bot/issue.py", "exec('1')", "calls exec"),
        ("bot/extract/python/names.py", "builtins.exec('1')", "uses builtins.exec"),
        ("bot/forge/github/forge.py", "os.execv('/bin/sh', [])", "uses os.execv"),
        ("bot/forge/github/forge.py", "from os import system", "uses os.system"),
    ],
)
def test_a_crossing_is_noticed(file: str, line: str, said: str) -> None:
    """One forbidden line planted in a copy of a real file, hidden in a function, is found by its place."""
    text = _text(ROOT / file)
    before = crossings(file, ast.parse(text))
    planted = f"{text}\n\ndef planted() -> None:\n    {line}\n"
    assert crossings(file, ast.parse(planted)) == [*before, f"{file}:{len(text.splitlines()) + 4} {said}"]


NAME_NO_COMPILER = ("bot", "runners.core", "runners.rewrite", "runners.probe", "runners.guest")


def test_no_string_names_a_compiler_outside_its_folders() -> None:
    """A compiler's words are in its own folders; other modules read them from `runners.toolchains`."""
    paths = sorted(path for package in ("bot", "runners") for path in ROOT.glob(f"{package}/**/*.py"))
    trees = {".".join(path.relative_to(ROOT).with_suffix("").parts): _tree(path) for path in paths}
    assert compiler_literals({name: tree for name, tree in trees.items() if name.startswith(NAME_NO_COMPILER)}) == {}
    assert compiler_literals({"bot.issue": ast.parse("NAME = 'tvm'")}) == {"bot.issue": 1}
