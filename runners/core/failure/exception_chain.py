"""What a Python step's own record says it was ended by → Signatures. Pure.

The record (``runners.core.protocol.Record.chain``) is told from inside the testcase's process, so it is the
testcase's claim, as its output is. It is worth reading because it cannot be mistaken for something else: output has
tracebacks inside messages, those that were caught and printed, those that the interpreter prints while it shuts down,
and gaps where too much was printed.

It gives a testcase no power that printing does not give. How the step ended is the host's word, and only a step of
Python's that ended with status 1, as after an exception that nobody caught, has its record read. Whoever can write
``X: words`` into the record of such a step could as well raise or print ``X: words`` and end with status 1. The name
of a type is held to what the output's parser takes for one, and sizes to what `runners.core.protocol` lets through.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.core.failure.array_mismatch import figures
from runners.core.failure.normalize import readable
from runners.core.failure.parse import RELAYS, clean_lines, parse_signature
from runners.core.failure.stack_frames import python_frames
from runners.core.protocol import Ended, Exited, Raised, Signature, StepResult

_TYPE = re.compile(r"(?:[A-Za-z_]\w{0,99}\.){0,8}(?P<name>[A-Za-z_]\w{0,99})", re.ASCII)
UNCAUGHT = 1
"""What Python exits with after an exception that nobody caught."""


def told(ended: Ended, steps: Sequence[StepResult]) -> tuple[Signature, ...]:
    """The exception that ended the last step, then those that it came from; empty where no record may speak.

    A name that is no name drops the whole record: it was not written by the interpreter's exceptions.
    """
    if not steps or ended != Exited(code=UNCAUGHT):
        return ()
    last = steps[-1]
    if last.record is None or last.ended != ended or last.argv[:1] != ("python",):
        return ()
    found = [signature_of(one) for one in last.record.chain]
    return tuple(one for one in found if one is not None) if all(found) else ()


def signature_of(one: Raised) -> Signature | None:
    """None where ``one.type`` is no dotted name. A traceback inside the message never ends up as the failure."""
    named = _TYPE.fullmatch(one.type.rpartition("<locals>.")[2])
    if named is None:
        return None
    if (inner := native_header(one)) is not None:
        return Signature(type=named["name"], message=inner.message, frames=inner.frames)
    if named["name"].endswith(RELAYS) and (relayed := parse_signature(one.message)) is not None:
        return relayed
    lines = [line.strip() for line in clean_lines(one.message) if line.strip()]
    first = [line.removeprefix(f"{named['name']}: ") for line in lines[:1]]  # as it is read from output
    said = figures(lines[1:]) if named["name"] == "AssertionError" else ""
    detail = said or next((line for line in lines[1:] if line.startswith("Error message: ")), "")
    return Signature(
        type=named["name"],
        message=readable(" | ".join([*first, *([detail] if detail else [])])),
        frames=python_frames(
            f'File "{frame.file}", line {frame.line}, in {frame.function}' for frame in one.frames[::-1]
        ),
    )


def native_header(one: Raised) -> Signature | None:
    """TVM before 0.19 began its messages with the traceback of its C++ side: the sentence is at their end."""
    if not one.message.lstrip().startswith("Traceback (most recent call last)"):
        return None
    return parse_signature(one.message)


def quoted(steps: Sequence[StepResult]) -> Signature | None:
    """The failure that the message of the exception itself quotes, as one that relays a worker's does."""
    record = steps[-1].record if steps else None
    return parse_signature(record.chain[0].message) if record is not None and record.chain else None
