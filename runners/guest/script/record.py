"""Record the run of a script from inside its process: JSON lines on a descriptor, at most 48 KiB in all.

::

    {"phase": "compile", "at": 0.41}         compilation begins, seconds after the start of the script
    {"phase": "run", "at": 1.93}             compilation ends
    {"failed": [{"type", "message", "frames": [[file, line, function], …], "because"}, …], "at", "warnings"}
    {"ended": 0, "at", "warnings"}           the script ended without an exception

After a crash or a time-out, the last phase is the one in which it happened. ``failed`` is the chain of exceptions,
beginning with the exception that ended the script, frames innermost first. The record is a claim, because the script
can write to the same descriptor, or change the functions that write.
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
NATIVE_HEADER = "Traceback (most recent call last):"
"""First line of a message that contains a native stack."""
MAX_WARNINGS = 12
MAX_PHASES = 100


class RunRecord:
    """Writes the record. Its methods must not make the script fail, or print other output than a plain run."""

    def __init__(self, descriptor: int, compile_functions: list[str]) -> None:
        """Watch each of ``compile_functions`` once its module is imported. This may be before the script begins."""
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
                self._watch_module(module)
        sys.meta_path.insert(
            0, ImportWatcher(self._compile_functions.keys() - sys.modules.keys(), self._watch_module)
        )

    def write_end(self, end: SystemExit | None) -> None:
        code = None if end is None else end.code
        self._write_line(
            ended=code if isinstance(code, int) else int(code is not None), warnings=self._list_warnings()
        )

    def write_failure(self, error: BaseException) -> None:
        """Write the failure. The caller has printed the exception as in a plain run."""
        chain = []
        for link, because in list_chain(error):
            try:
                chain.append(describe_exception(link, because))
            except Exception as problem:  # a hostile __str__
                chain.append({"type": type(link).__name__[:200], "message": repr(type(problem)), "frames": []})
        if not self._write_line(failed=chain, warnings=self._list_warnings()):
            self._write_line(failed=chain[:1], warnings=[])

    # ------------------------------------------------------------------------------------------ watching

    def _watch_warnings(self) -> None:
        """Add a hook to the machinery that prints warnings. A replaced ``showwarning`` and recording still work."""
        import warnings

        shown = getattr(warnings, "_showwarnmsg", None)
        if shown is None:
            return

        def show_warning(message: Any) -> None:
            if len(self._warnings) < MAX_WARNINGS:
                with contextlib.suppress(Exception):  # a category that the script defines
                    self._warnings[getattr(message.category, "__name__", "?"), str(message.message)[:300]] = None
            shown(message)

        warnings._showwarnmsg = show_warning  # type: ignore[attr-defined]  # private; all warnings pass through here

    def _list_warnings(self) -> list[list[str]]:
        return [list(warning) for warning in self._warnings]

    def _watch_module(self, name: str) -> None:
        module = sys.modules.get(name)
        for function in self._compile_functions[name] if module is not None else ():
            self._watch_function(module, function)

    def _watch_function(self, module: Any, name: str) -> None:
        original = vars(module).get(name)  # not getattr: a module may import or create attributes on access
        if not callable(original):
            return
        compile_here = self._wrap_timed(original)
        for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__signature__", "__wrapped__"):
            if hasattr(original, attribute):
                setattr(compile_here, attribute, getattr(original, attribute))
        compile_here.__wrapped__ = original  # type: ignore[attr-defined]  # for the inspect module
        setattr(module, name, compile_here)

    def _wrap_timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_here(*args: Any, **kwargs: Any) -> Any:
            self._compiling += 1
            if self._compiling == 1:
                self._write_phase("compile")
            try:
                return original(*args, **kwargs)
            finally:
                self._compiling -= 1
                if self._compiling == 0:
                    self._write_phase("run")

        return compile_here

    def _write_phase(self, name: str) -> None:
        self._phases += 1
        if self._phases <= MAX_PHASES:
            self._write_line(phase=name)

    def _write_line(self, **line: Any) -> bool:
        """Write a line. Return False, without writing, if the line exceeds the remaining space."""
        try:
            import json

            if os.getpid() != self._pid:
                return True  # the end of a child is not the end of the script
            line["at"] = round(time.monotonic() - self._began, 4)
            data = json.dumps(line, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n"
            if len(data) > self._left:
                return False
            self._left -= os.write(self._descriptor, data)
        except Exception:  # the script may have changed any of these functions
            return False
        return True


class ImportWatcher:
    """A finder that calls ``done`` after the import of each module in ``names``, even if the import fails.

    The finder replaces the type of the module's specification, because an import ends by setting ``_initializing``
    there (Python 3.7 to 3.14). A loader would add a frame below the module's code, and warnings with a stack level
    would point to that frame.
    """

    def __init__(self, names: set[str], done: Callable[[str], None]) -> None:
        self._names = set(names)
        self._done = done

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._names:
            return None
        self._names.discard(name)
        others: list[Any] = [getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self]
        spec = next((spec for find in others if find and (spec := find(name, path, target)) is not None), None)
        with contextlib.suppress(TypeError):  # a type of specification that cannot change
            if spec is not None:
                spec.__class__ = watch_initializing(type(spec), self._done)
        return spec


def watch_initializing(kind: type, done: Callable[[str], None]) -> type:
    """Return a subclass of a specification's type. Its instances become ``kind`` again when the import is over."""

    class WatchedSpec(kind):  # type: ignore[misc]  # the type depends on the finder
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

    return WatchedSpec


def list_chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """Return the exception and its causes, in a traceback's order, each with its relation to the previous one."""
    chain: list[tuple[BaseException, str]] = []
    because = ""
    link: BaseException | None = error
    while link is not None and len(chain) < MAX_CHAIN and all(link is not earlier for earlier, _ in chain):
        chain.append((link, because))
        if link.__cause__ is not None:
            link, because = link.__cause__, "cause"
        elif link.__context__ is not None and not link.__suppress_context__:
            link, because = link.__context__, "context"
        else:
            link = None
    return chain


def describe_exception(error: BaseException, because: str) -> dict[str, Any]:
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return {
        "type": f"{module}{kind.__qualname__}"[:200],
        "message": shorten_message(str(error)),
        "frames": list_frames(error.__traceback__),
        "because": because,
    }


def shorten_message(text: str) -> str:
    """Return the beginning of a message. If it begins with a native stack, return its beginning and its end.

    The sentence follows such a stack.
    """
    if len(text) <= MAX_MESSAGE or not text.lstrip().startswith(NATIVE_HEADER):
        return text[:MAX_MESSAGE]
    begin, end = text[: MAX_MESSAGE // 2], text[1 - MAX_MESSAGE // 2 :]
    return f"{begin.rpartition(chr(10))[0]}\n{end.partition(chr(10))[2] or end}"


def list_frames(traceback: TracebackType | None) -> list[list[Any]]:
    """Return [file, line, function] of each frame of the script and its libraries, innermost first."""
    found: list[list[Any]] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_ours(code.co_filename):
            found.append([code.co_filename[-300:], traceback.tb_lineno, code.co_name[:120]])
        traceback = traceback.tb_next
    return found[: -MAX_FRAMES - 1 : -1]
