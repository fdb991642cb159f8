"""Read crash reproducers: MLIR that a crashing compiler writes together with the passes that crash.

Since 2022, a resource of the file contains the passes, and ``iree-opt --run-reproducer`` reads it. Earlier files
contain the flags of a call in a comment. Today's ``--run-reproducer`` ignores that comment: it would run no pass and
succeed.
"""

from __future__ import annotations

import re
import shlex

from runners.core.toolchain.guest import Step
from runners.core.toolchain.reports import ReproducerFormat

_FLAG = "--run-reproducer"
_RESOURCE = re.compile(r"^\s{0,20}external_resources\s{0,8}:\s{0,8}\{\s{0,80}mlir_reproducer\s{0,8}:", re.M)
_COMMENT = re.compile(r"^//[ \t]{0,8}configuration:[ \t]{1,8}(?P<flags>--?\w[^\n]{1,16000})$", re.M)
_HEAD_CHARS = 20_000
"""Maximum position of the comment. It is the file's first line, but the reporter may put a notice above it."""


def _run_recorded_passes(text: str, name: str) -> Step | None:
    """Return the call that runs the passes recorded in a crash reproducer. None for other MLIR."""
    if _RESOURCE.search(text):
        return ("iree-opt", _FLAG, name)
    found = _COMMENT.search(text[:_HEAD_CHARS])
    flags = _split_flags(found["flags"]) if found is not None else ()
    return ("iree-opt", *flags, name) if flags else None


def _split_flags(line: str) -> tuple[str, ...]:
    """Split the recorded flags like a shell, without an output file. Empty if a quote is not closed."""
    try:
        words = shlex.split(line)
    except ValueError:
        return ()
    outputs = {at + step for at, word in enumerate(words) if word == "-o" for step in (0, 1)}
    return tuple(word for at, word in enumerate(words) if at not in outputs and not _IS_WRITER.match(word))


_IS_WRITER = re.compile(r"--?(?:o=|(?:mlir-)?pass-pipeline-(?:crash-reproducer|local-reproducer)\b)")

REPRODUCERS = ReproducerFormat(flag=_FLAG, run=_run_recorded_passes)
