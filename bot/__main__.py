"""Exit codes: 0 a verdict, 2 a usage error, 75 infrastructure, 130 interrupted, 3 a bug of ours."""

from __future__ import annotations

import platform
import sys
import traceback

from bot.cli.app import app
from bot.report.quote import clean, disarm
from runners.core.errors import ReprobotError

INTERRUPTED = 130


def main() -> None:
    """The console script."""
    try:
        # Without its standalone mode typer returns the code of an early exit, and 130 for an interrupt.
        code = app(standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except ReprobotError as error:
        _say(f"reprobot: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("reprobot: interrupted; nothing was left running")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away: nobody is left to tell
        sys.exit(0)
    except Exception as error:
        _exit_on_usage_error(error)
        _say(f"reprobot: a bug of ours ({type(error).__name__}): please report it with these lines\n")
        _say(f"python {platform.python_version()} on {platform.platform()}; {' '.join(sys.argv[1:])!r}")
        _say(traceback.format_exc())
        sys.exit(ReprobotError.exit_code)


def _exit_on_usage_error(error: Exception) -> None:
    """typer raises its own usage errors; they know how to show themselves."""
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if callable(show) and isinstance(code, int):
        show()
        sys.exit(code)


def _say(text: str) -> None:
    sys.stderr.write(disarm(clean(text)) + "\n")


if __name__ == "__main__":
    main()
