"""Run a script and report which of some names it reached in the compiler's Python code.

Usage: ``launch.py script.exercise PACKAGES NAMES SCRIPT ARGUMENT…``, packages and names separated by commas. A name
is *reached* if a function or a class of that name is called in one of the packages. It is *known* if a file of the
packages defines it. Case and underscores are ignored: an importer's class ``LayerNorm`` matches ``layer_norm``.

The line ``{"kind": "reach", "summary", "evidence": {"reached": […], "known": […]}}`` is written to the file that
REPROBOT_FINDINGS names. It is a claim, because the script shares the process.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType, ModuleType
from typing import Any

from runners.guest import forget_modules

MAX_FILES = 4000
MAX_FILE_BYTES = 2 * 1024 * 1024


def main(arguments: list[str]) -> int:
    packages, names, path, *rest = arguments
    report = os.environ.pop("REPROBOT_FINDINGS", None)
    watch = Watch(packages.split(","), [name for name in names.split(",") if name])
    file = os.path.abspath(path)
    forget_modules()
    sys.argv = [path, *rest]
    sys.path[0] = os.path.dirname(file)
    try:
        run_watched(file, watch)
    finally:
        watch.write_report(report)
    return 0


def run_watched(file: str, watch: Watch) -> None:
    import threading

    module = ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    with open(file, "rb") as source:
        code = compile(source.read(), file, "exec", dont_inherit=True)
    threading.setprofile(watch.see_call)
    sys.setprofile(watch.see_call)
    try:
        exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class Watch:
    """The names to look for, and those that were reached."""

    def __init__(self, packages: list[str], names: list[str]) -> None:
        self._packages = tuple(packages)
        self._names = {simplify_name(name): name for name in names}
        self._codes: dict[CodeType, tuple[frozenset[str], bool]] = {}
        self._reached: set[str] = set()

    def see_call(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call. A class method counts for the class on which it is called."""
        if event != "call":
            return
        code = frame.f_code
        seen = self._codes.get(code)
        if seen is None:
            seen = self._codes[code] = self._read_code(frame)
        names, of_class = seen
        if names:
            self._reached |= names
        if of_class:
            kind = frame.f_locals.get("cls")
            self._reached |= {simplify_name(getattr(kind, "__name__", ""))} & self._names.keys()

    def _read_code(self, frame: FrameType) -> tuple[frozenset[str], bool]:
        home = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if home not in self._packages:
            return frozenset(), False
        code = frame.f_code
        parts = getattr(code, "co_qualname", code.co_name).split(".")
        # A class body runs when its module is imported. This is not a use of the class.
        defines = "__qualname__" in code.co_names and not code.co_flags & 0x2
        names = frozenset() if defines else frozenset(map(simplify_name, parts)) & self._names.keys()
        return names, code.co_varnames[:1] == ("cls",) and code.co_argcount > 0

    def write_report(self, path: str | None) -> None:
        if path is None:
            return
        import json

        known = self._find_known()
        line = {
            "kind": "reach",
            "summary": "which of the accused names the script called",
            "evidence": {
                "reached": [name for simple, name in self._names.items() if simple in self._reached],
                "known": [name for simple, name in self._names.items() if simple in known],
            },
        }
        with open(path, "w", encoding="ascii") as out:
            out.write(json.dumps(line) + "\n")

    def _find_known(self) -> set[str]:
        """Return the names that the files of the packages define."""
        import re

        definition = re.compile(rb"^[ \t]*(?:def|class) +(\w+)", re.M)
        known: set[str] = set()
        for file in list_files(self._packages):
            with open(file, "rb") as source:
                found = definition.findall(source.read(MAX_FILE_BYTES))
            known |= {simplify_name(name.decode("ascii", "ignore")) for name in found} & self._names.keys()
        return known


def list_files(packages: tuple[str, ...]) -> list[str]:
    """Return the Python files of the packages that the script imported."""
    files: list[str] = []
    for package in packages:
        for folder in list(getattr(sys.modules.get(package), "__path__", ())):
            for place, _, names in os.walk(folder):
                files += [os.path.join(place, name) for name in names if name.endswith(".py")]
    return files[:MAX_FILES]


def simplify_name(name: str) -> str:
    return name.replace("_", "").lower()
