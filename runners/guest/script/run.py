"""Runs a script as ``python SCRIPT ARGUMENT…`` would, and leaves a record of how it failed: see ``record.py``.

Usage: ``launch.py script.run RECORD,STACKS,SEED FUNCTIONS SCRIPT ARGUMENT…`` with the numbers of two inherited
descriptors, a seed or none (see ``seeding.py``), and the functions that compile, with commas between them. A zygote's
child calls ``run`` itself. Streams, traceback, exit status and what the script finds in ``sys`` and ``__main__`` are
those of a plain run (a test compares them); our own frames below it show up only in stacks, where the host removes
them.

The script shares the process with this module: the record is a claim.
"""

from __future__ import annotations

import builtins
import os
import sys
from types import ModuleType, TracebackType

from runners.guest import forget_modules, is_ours
from runners.guest.script import record as recording, seeding

HIGH = 200
"""Descriptors from here on are out of the way of those that a script opens."""
STACK_SIGNAL = 64
"""SIGRTMAX: prints where each thread is, and is what nobody else uses."""


def out_of_the_way(descriptor: int) -> int:
    """The same file under a high number, not inherited."""
    import fcntl

    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(descriptor)
    return high


def run(argv: list[str], record: int, stacks: int, seed: int | None, compile_functions: list[str]) -> None:
    """Become ``python argv…``. Returns when the script ended well; raises SystemExit otherwise."""
    path = os.path.abspath(argv[0])
    if seed is not None:
        seeding.seed_all(seed)
    forget_modules()
    sys.argv = list(argv)
    sys.path[0] = os.path.dirname(path)
    sys.path_importer_cache.clear()
    tell_where_on_signal(stacks)
    notes = recording.Record(record, compile_functions)
    try:
        execute(path, new_main(path))
    except SystemExit as end:
        notes.ended(end)
        raise
    except BaseException as error:
        # Set on the exception too: the default hook prints what the exception carries.
        for one, _ in recording.chained(error):
            one.__traceback__ = own_frames_removed(one)
        sys.excepthook(type(error), error, error.__traceback__)
        notes.failed(error)
        end_as_interpreter_does(error)
    notes.ended(None)


def execute(path: str, module: ModuleType) -> None:
    with open(path, "rb") as source:
        code = compile(source.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox


def new_main(path: str) -> ModuleType:
    """``__main__`` as the interpreter makes it for a file."""
    from importlib.machinery import SourceFileLoader

    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=path, __builtins__=builtins, __loader__=SourceFileLoader("__main__", path), __cached__=None
    )
    if sys.version_info < (3, 14):
        module.__annotations__ = {}
    sys.modules["__main__"] = module
    return module


def own_frames_removed(error: BaseException) -> TracebackType | None:
    """The traceback as it would be without us; none when that has no frame (a syntax error in the script)."""
    kept = []
    traceback = error.__traceback__
    while traceback is not None:
        if not is_ours(traceback.tb_frame.f_code.co_filename):
            kept.append(traceback)
        traceback = traceback.tb_next
    rebuilt = None
    for one in reversed(kept):
        rebuilt = TracebackType(rebuilt, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return rebuilt


def tell_where_on_signal(stacks: int) -> None:
    """From C code, so that it works also where no Python runs any more."""
    import faulthandler

    faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=True, chain=False)


def end_as_interpreter_does(error: BaseException) -> None:
    """The exit status of an exception that nothing caught; raises SystemExit or dies of SIGINT."""
    if isinstance(error, KeyboardInterrupt):
        sys.excepthook = lambda *_: None  # told already
        raise error
    raise SystemExit(1) from None


def main(arguments: list[str]) -> int:
    record, stacks, seed = arguments[0].split(",")
    functions = arguments[1].split(",") if arguments[1] else []
    descriptors = out_of_the_way(int(record)), out_of_the_way(int(stacks))
    run(arguments[2:], *descriptors, int(seed) if seed else None, functions)
    return 0
