"""Programs that run inside the sandbox, beside the testcase. All their output is a claim.

- ``probe/`` supervises the steps of a probe; start with ``supervisor.py``.
- ``script/`` runs a testcase's script and records how it ended; start with ``run.py``.
- ``tvm/`` and ``iree/`` contain the diagnosers of each compiler; start with ``session.py`` and ``pass_bisect.py``.

Standard library only; the modules of a compiler may import that compiler. Python 3.10 or newer.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
LAUNCHER = FOLDER + "launch.py"


def is_ours(file: str) -> bool:
    """True if the file belongs to this package, not to the testcase."""
    return file.startswith(FOLDER)


def forget_modules() -> None:
    """Remove this package from ``sys.modules``, so that a testcase finds its own module of the same name."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "runners":
            del sys.modules[name]


def import_without_collecting(action: "Callable[[], Result]") -> "Result":
    """Import modules without automatic garbage collection, which takes an eighth of TVM's import.

    ``gc.disable`` is not used, because a module may call it for the whole process. A threshold that a module sets is
    kept.
    """
    import gc  # a testcase must find only modules that a plain run has loaded

    usual = gc.get_threshold()
    gc.set_threshold(0)
    ours = gc.get_threshold()
    try:
        return action()
    finally:
        if gc.get_threshold() == ours:
            gc.set_threshold(*usual)
