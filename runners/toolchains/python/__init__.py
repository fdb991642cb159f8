"""Describe plain CPython with any packages, for testcases without a compiler. A version is a minor of Python."""

from __future__ import annotations

from runners.core.protocol import TestcaseKind
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.facts import Canary


class PlainPython(Toolchain):
    """The smallest toolchain: every optional fact has its default."""

    NAME = "python"
    TITLE = "CPython"
    CANARY = Canary(
        kind=TestcaseKind.PYTHON,
        files={"canary.py": "print('canary ok', sum(range(4)))\n"},
        steps=(("python", "canary.py"),),
        prints="canary ok 6",
    )

    def list_distributions(self, version: str) -> tuple[str, ...]:
        """Return no distribution: the machine provides the interpreter, and the testcase names its packages."""
        return ()
