"""Programs that run inside the sandbox, beside the testcase. All their output is a claim.

- ``probe/`` supervises the steps of a probe; start with ``supervisor.py``.
- ``script/`` runs a testcase's script and records how it ended; start with ``run.py``.
- ``tvm/`` and ``iree/`` hold the diagnosers of each compiler; start with ``session.py`` and ``pass_bisect.py``.

Standard library only; the modules of a compiler may import that compiler. Python 3.10 or newer.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
LAUNCHER = FOLDER + "launch.py"


def is_ours(file: str) -> bool:
    """True if the file is part of this ring and not of the testcase."""
    return file.startswith(FOLDER)


def forget_modules() -> None:
    """Remove this package from ``sys.modules``, so that a testcase finds its own module of the same name."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "runners":
            del sys.modules[name]
