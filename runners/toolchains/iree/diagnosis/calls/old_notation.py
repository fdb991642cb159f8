"""Find an input in a notation of MLIR that the release no longer reads."""

from __future__ import annotations

import msgspec

from runners.core.failure.outcomes import refuses_text
from runners.core.findings.calls import OldNotation
from runners.core.toolchain.diagnosis import Failure
from runners.core.toolchain.wrong_call import WrongCall
from runners.toolchains.iree.failures import FAILURES
from runners.toolchains.iree.notations import port_notations

MAX_ROW = 120
"""Maximum length of a row that a finding quotes."""


def find_old_notation(failure: Failure) -> WrongCall | None:
    """Return the first notation that the release rejects, and the testcase in the later notations."""
    seen = failure.seen
    if seen.signature is None or not refuses_text(seen.signature, FAILURES):
        return None
    files = dict(failure.testcase.files)
    lines: list[tuple[str, int]] = []
    for name, text in failure.testcase.files.items():
        if name.endswith(".mlir"):
            files[name], changes = port_notations(text, seen.version)
            lines += sorted((name, one.line) for one in changes)
    if not lines:
        return None
    name, line = lines[0]
    newer = files[name].split("\n")[line - 1].strip()[:MAX_ROW]
    mended = msgspec.structs.replace(failure.testcase, files=files)
    return WrongCall(call=OldNotation(file=name, line=line, successor=newer), mended=(mended,))
