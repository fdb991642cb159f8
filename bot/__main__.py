"""Console script. Exit codes: 0 a verdict, 2 a usage error, 75 infrastructure, 130 interrupted, 3 a bug of ours."""

from __future__ import annotations

import os
import platform
import signal
import sys
import threading
import time
import traceback
from types import FrameType
from typing import NoReturn

from bot.report.quote import clean_text, escape_commands
from runners.core.errors import InfraError, ReprobotError, explain_shortage

INTERRUPTED = 130
_NO_MEMORY = f"reprobot: {explain_shortage(MemoryError())}\n".encode()


def main() -> None:
    """Run the command line, and exit with its code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        from bot.cli.app import app  # the imports alone may need more memory than is free

        # Without its standalone mode typer returns the code of an early exit, and 130 for an interrupt.
        code = app(standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except ReprobotError as error:
        _print_error(f"reprobot: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _stop_runs()
        _print_error("reprobot: interrupted; nothing was left running")
        # CPython remembers an interrupt that passed through generated code, such as the methods of a dataclass, and
        # then ends ``python -m`` by a SIGINT to itself. Where SIGINT is blocked, it exits with 130 (pymain's
        # exit_sigint).
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the pipe has ended
        sys.exit(0)
    except Exception as error:
        try:
            _exit_on_usage_error(error)
            code = _explain_failure(error)
        except Exception as second:  # the explanation needs memory too
            if not (_is_shortage(error) or _is_shortage(second)):
                raise
            os.write(2, _NO_MEMORY)
            code = InfraError.exit_code
        if code == InfraError.exit_code:
            _end_at_once(code)
        sys.exit(code)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C, so that sandboxes are closed. A faster handler replaces this one during runs."""
    raise KeyboardInterrupt


def _stop_runs() -> None:
    """Stop sandboxes that another thread has open, such as a self-test. Python waits for that thread at its end."""
    running = sys.modules.get("runners.sandbox.process")  # an import here could itself be interrupted
    if running is not None:
        running.stop_all_runs()


def _explain_failure(error: Exception) -> int:
    """Print the next step after a shortage, or after a bug of ours. Return the exit code."""
    shortage = explain_shortage(error)
    if shortage is not None:
        _print_error(f"reprobot: {shortage}")
        return shortage.exit_code
    trace = traceback.format_exc()  # before the first line: Python can turn a lack of memory into another error
    machine = f"python {platform.python_version()} on {platform.platform()}; {' '.join(sys.argv[1:])!r}"
    text = (
        f"reprobot: a bug of ours ({type(error).__name__}): please report it with these lines\n\n{machine}\n{trace}"
    )
    _print_error(text)
    return ReprobotError.exit_code


def _is_shortage(error: Exception) -> bool:
    try:
        return explain_shortage(error) is not None
    except Exception:  # only a lack of memory raises here
        return True


CLOSING_S = 10.0
"""How long the runs of other threads may take to close their sandboxes."""


def _end_at_once(code: int) -> NoReturn:
    """End without CPython's own clean-up, after all sandboxes are closed.

    Without free memory, that clean-up prints a line for each exception that it ignores, changes the exit code, or
    crashes. Hundreds of such lines hide our sentence.
    """
    try:
        _stop_runs()
        end = time.monotonic() + CLOSING_S
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join(max(0.0, end - time.monotonic()))  # an idle thread of a pool waits forever
        sys.stdout.flush()
    finally:
        os._exit(code)


def _exit_on_usage_error(error: Exception) -> None:
    """Exit if typer raised a usage error. Such an error prints its message itself."""
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):
        show()
        sys.exit(code)


def _print_error(text: str) -> None:
    sys.stderr.write(escape_commands(clean_text(text)) + "\n")


if __name__ == "__main__":
    main()
