"""Run a testcase's file as ``__main__`` inside an instrumented process, or an action in a forked child."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Any

from runners.guest import forget_modules, import_without_collecting


def import_compiler() -> Any:
    """Import TVM and return it. As in a zygote, the garbage of its import is not collected."""
    tvm = import_without_collecting(lambda: importlib.import_module("tvm"))
    gc.freeze()
    return tvm


def set_script(path: str, arguments: Sequence[str]) -> None:
    """Give the process the arguments, the import path and the loaded modules of ``python PATH ARGUMENT…``."""
    forget_modules()
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))


def execute_file(file: str) -> None:
    """Execute the file as ``__main__``. ``runpy`` is not used, because it puts its own path into ``sys.argv``."""
    module = ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    with open(file, "rb") as source:
        code = compile(source.read(), file, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox


def run_testcase(file: str) -> int:
    """Execute the file and return its exit status. Print an exception's traceback as a plain run does.

    Raises:
        SystemExit: the testcase requested to exit.
    """
    try:
        execute_file(file)
    except SystemExit:
        raise
    except BaseException as error:
        # Set on the exception, because the default hook prints its own traceback.
        error.__traceback__ = trim_traceback(error, file)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def trim_traceback(error: BaseException, file: str) -> TracebackType | None:
    """Return the traceback from the testcase's first frame on. None without such a frame (a syntax error)."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != file:
        traceback = traceback.tb_next
    return traceback


def run_in_child(action: Callable[[int], object], seconds: int, max_bytes: int) -> tuple[bytes, int]:
    """Run ``action`` in a forked child without standard streams, where it is harmless.

    ``action`` gets a descriptor for its results. Return the first ``max_bytes`` of them, and the wait status.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            signal.alarm(seconds)  # the default action kills the process, even inside the compiler
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silence, stream)
            action(writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read(max_bytes)
    return data, os.waitpid(child, 0)[1]
