"""What runs inside the sandbox, beside the testcase. Every word of this ring is a claim.

Standard library only; the hooks of a compiler may import that compiler. Python 3.10 or newer.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
LAUNCHER = FOLDER + "launch.py"


def is_ours(file: str) -> bool:
    """True if the file is part of this ring and not of the testcase."""
    return file.startswith(FOLDER)


def forget_modules() -> None:
    """Remove our modules from ``sys.modules``: a testcase with modules of the same names must find its own."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "runners":
            del sys.modules[name]
