"""Run a script like ``python SCRIPT ARGUMENT…``, and write a record of its failure (``record.py``).

Usage: ``launch.py script.run RECORD,STACKS,SEED FUNCTIONS SCRIPT ARGUMENT…`` with the numbers of two inherited
descriptors, a seed or an empty string (``seeding.py``), and the compile functions, separated by commas. A zygote's
child calls ``run_script`` itself. Streams, traceback, exit status, ``sys`` and ``__main__`` are those of a plain run
(a test compares them). Frames of this package occur only in stacks, and the host removes them.

The script shares the process with this module, so the record is a claim.
"""

from __future__ import annotations

import builtins
import os
import sys
from types import ModuleType, TracebackType

from runners.guest import forget_modules, is_ours
from runners.guest.script.record import RunRecord, list_chain
from runners.guest.script.seeding import seed_generators

FIRST_DESCRIPTOR = 200
"""Lowest number of our descriptors. A script's own descriptors have lower numbers."""
STACK_SIGNAL = 64
"""SIGRTMAX prints the stack of each thread. Other programs do not use this signal."""


def move_descriptor(descriptor: int) -> int:
    """Return the same file under a high number that children do not inherit. Close the old number."""
    import fcntl

    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    os.close(descriptor)
    return high


def run_script(argv: list[str], record: int, stacks: int, seed: int | None, compile_functions: list[str]) -> None:
    """Become ``python argv…``. Return if the script ends well.

    Raises:
        SystemExit: the script failed or requested to exit. The status is that of a plain run.
        KeyboardInterrupt: the script was interrupted.
    """
    path = os.path.abspath(argv[0])
    if seed is not None:
        seed_generators(seed)
    forget_modules()
    sys.argv = list(argv)
    sys.path[0] = os.path.dirname(path)
    sys.path_importer_cache.clear()
    print_stacks_on_signal(stacks)
    notes = RunRecord(record, compile_functions)
    try:
        execute_file(path, create_main(path))
    except SystemExit as end:
        notes.write_end(end)
        raise
    except BaseException as error:
        # Set on the exceptions, because the default hook prints their own tracebacks.
        for link, _ in list_chain(error):
            link.__traceback__ = remove_our_frames(link)
        sys.excepthook(type(error), error, error.__traceback__)
        notes.write_failure(error)
        exit_like_interpreter(error)
    notes.write_end(None)


def execute_file(path: str, module: ModuleType) -> None:
    with open(path, "rb") as source:
        code = compile(source.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox


def create_main(path: str) -> ModuleType:
    """Return ``__main__`` as the interpreter creates it for a file."""
    from importlib.machinery import SourceFileLoader

    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=path, __builtins__=builtins, __loader__=SourceFileLoader("__main__", path), __cached__=None
    )
    if sys.version_info < (3, 14):
        module.__annotations__ = {}
    sys.modules["__main__"] = module
    return module


def remove_our_frames(error: BaseException) -> TracebackType | None:
    """Return the traceback of a plain run. None without frames (a syntax error in the script)."""
    kept = []
    traceback = error.__traceback__
    while traceback is not None:
        if not is_ours(traceback.tb_frame.f_code.co_filename):
            kept.append(traceback)
        traceback = traceback.tb_next
    rebuilt = None
    for entry in reversed(kept):
        rebuilt = TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rebuilt


def print_stacks_on_signal(stacks: int) -> None:
    """Install a handler in C, which works even if Python code no longer runs."""
    import faulthandler

    faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=True, chain=False)


def exit_like_interpreter(error: BaseException) -> None:
    """End with the exit status of an uncaught exception: raise SystemExit, or KeyboardInterrupt again."""
    if isinstance(error, KeyboardInterrupt):
        sys.excepthook = lambda *_: None  # it is printed already
        raise error
    raise SystemExit(1) from None


def main(arguments: list[str]) -> int:
    record, stacks, seed = arguments[0].split(",")
    functions = arguments[1].split(",") if arguments[1] else []
    descriptors = move_descriptor(int(record)), move_descriptor(int(stacks))
    run_script(arguments[2:], *descriptors, int(seed) if seed else None, functions)
    return 0
