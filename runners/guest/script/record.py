"""What a script's run was like, told from inside its process: JSON lines on a descriptor, at most 48 KiB in all.

::

    {"phase": "compile", "at": 0.41}         entered, seconds after the script began
    {"phase": "run", "at": 1.93}             left again
    {"failed": [{"type", "message", "frames": [[file, line, function], …], "because"}, …], "at", "warnings"}
    {"ended": 0, "at", "warnings"}           instead, when no exception did it

A crash or a time-out leaves the phase it happened in. ``failed`` is the chain of exceptions, the one that ended the
script first, frames innermost first. All of it is a claim: the script can write here itself, or change what is told.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

from runners.guest import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

MAX_BYTES = 48 * 1024
MAX_CHAIN = 6
MAX_FRAMES = 30
MAX_MESSAGE = 2000
MAX_WARNINGS = 12
MAX_PHASES = 100


class Record:
    """Nothing here may be a reason for the script to fail, or to print anything else than it does alone."""

    def __init__(self, descriptor: int, compile_functions: list[str]) -> None:
        """``compile_functions`` are watched once their module is imported, as it may be when the script begins."""
        self._descriptor = descriptor
        self._pid = os.getpid()
        self._began = time.monotonic()
        self._left = MAX_BYTES
        self._phases = 0
        self._compiling = 0
        self._warnings: dict[tuple[str, str], None] = {}
        self._compile_functions: dict[str, list[str]] = {}
        for function in compile_functions:
            module, _, name = function.rpartition(".")
            self._compile_functions.setdefault(module, []).append(name)
        os.set_blocking(descriptor, False)
        self._watch_warnings()
        for module in self._compile_functions:
            if module in sys.modules:
                self._watch_compilers(module)
        sys.meta_path.insert(0, Later(self._compile_functions.keys() - sys.modules.keys(), self._watch_compilers))

    def ended(self, end: SystemExit | None) -> None:
        code = None if end is None else end.code
        self._say(ended=code if isinstance(code, int) else int(code is not None), warnings=self._told())

    def failed(self, error: BaseException) -> None:
        """Called when the exception has been printed as it would be without us."""
        chain = []
        for one, because in chained(error):
            try:
                chain.append(described(one, because))
            except Exception as trouble:  # a hostile __str__
                chain.append({"type": type(one).__name__[:200], "message": repr(type(trouble)), "frames": []})
        if not self._say(failed=chain, warnings=self._told()):
            self._say(failed=chain[:1], warnings=[])

    # ------------------------------------------------------------------------------------------ watching

    def _watch_warnings(self) -> None:
        """Beside the machinery that prints them: what replaces ``showwarning``, or records, works as before."""
        import warnings

        shown = getattr(warnings, "_showwarnmsg", None)
        if shown is None:
            return

        def show(message: Any) -> None:
            if len(self._warnings) < MAX_WARNINGS:
                with contextlib.suppress(Exception):  # a category of the script's own
                    self._warnings[getattr(message.category, "__name__", "?"), str(message.message)[:300]] = None
            shown(message)

        warnings._showwarnmsg = show  # type: ignore[attr-defined]  # private, and the only place all pass through

    def _told(self) -> list[list[str]]:
        return [list(one) for one in self._warnings]

    def _watch_compilers(self, name: str) -> None:
        module = sys.modules.get(name)
        for function in self._compile_functions[name] if module is not None else ():
            self._watch_compiler(module, function)

    def _watch_compiler(self, module: Any, name: str) -> None:
        original = vars(module).get(name)  # nothing that a module makes when asked: that may be an import
        if not callable(original):
            return
        compile_here = self._timed(original)
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__signature__", "__wrapped__"):
            if hasattr(original, attribute):
                setattr(compile_here, attribute, getattr(original, attribute))
        compile_here.__wrapped__ = original  # type: ignore[attr-defined]  # what inspect follows
        setattr(module, name, compile_here)

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_here(*args: Any, **kwargs: Any) -> Any:
            self._compiling += 1
            if self._compiling == 1:
                self._phase("compile")
            try:
                return original(*args, **kwargs)
            finally:
                self._compiling -= 1
                if self._compiling == 0:
                    self._phase("run")

        return compile_here

    def _phase(self, name: str) -> None:
        self._phases += 1
        if self._phases <= MAX_PHASES:
            self._say(phase=name)

    def _say(self, **line: Any) -> bool:
        """One line; False when it has no room (nothing is written then)."""
        try:
            import json

            if os.getpid() != self._pid:
                return True  # a child of the script's: its end is not the script's
            line["at"] = round(time.monotonic() - self._began, 4)
            data = json.dumps(line, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
            if len(data) > self._left:
                return False
            self._left -= os.write(self._descriptor, data)
        except Exception:  # the script may have changed any of these functions
            return False
        return True


class Later:
    """Finds modules as ever, and tells when one of ``names`` has been imported, or could not be.

    By the specification of the module, on which the last thing that importing does is to set ``_initializing``
    (Python 3.7 to 3.14). A loader of our own would put a frame of ours below the module's code, to which warnings
    with a stack level would then point.
    """

    def __init__(self, names: set[str], done: Callable[[str], None]) -> None:
        self._names = set(names)
        self._done = done

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._names:
            return None
        self._names.discard(name)
        finders = [find for one in sys.meta_path if one is not self and (find := getattr(one, "find_spec", None))]
        spec = next((spec for find in finders if (spec := find(name, path, target)) is not None), None)
        with contextlib.suppress(TypeError):  # a kind of specification that cannot become another
            if spec is not None:
                spec.__class__ = telling(type(spec), self._done)
        return spec


def telling(kind: type, done: Callable[[str], None]) -> type:
    """That kind of specification, until the import is over."""

    class Telling(kind):  # type: ignore[misc]  # whatever the finder has made
        @property
        def _initializing(self) -> bool:
            return bool(self.__dict__.get("_initializing"))

        @_initializing.setter
        def _initializing(self, value: bool) -> None:
            self.__dict__["_initializing"] = value
            if not value:
                self.__class__ = kind
                with contextlib.suppress(Exception):
                    done(self.name)

    return Telling


def chained(error: BaseException) -> list[tuple[BaseException, str]]:
    """The exception and those it came from, as a traceback would show them."""
    found: list[tuple[BaseException, str]] = []
    because = ""
    one: BaseException | None = error
    while one is not None and len(found) < MAX_CHAIN and all(one is not seen for seen, _ in found):
        found.append((one, because))
        if one.__cause__ is not None:
            one, because = one.__cause__, "cause"
        elif one.__context__ is not None and not one.__suppress_context__:
            one, because = one.__context__, "context"
        else:
            one = None
    return found


def described(error: BaseException, because: str) -> dict[str, Any]:
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return {
        "type": f"{module}{kind.__qualname__}"[:200],
        "message": str(error)[:MAX_MESSAGE],
        "frames": frames(error.__traceback__),
        "because": because,
    }


def frames(traceback: TracebackType | None) -> list[list[Any]]:
    """Innermost first, without our own."""
    found: list[list[Any]] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_ours(code.co_filename):
            found.append([code.co_filename[-300:], traceback.tb_lineno, code.co_name[:120]])
        traceback = traceback.tb_next
    return found[: -MAX_FRAMES - 1 : -1]
