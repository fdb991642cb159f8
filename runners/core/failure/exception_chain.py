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

from runners.core.failure.array_mismatch import extract_figures
from runners.core.failure.normalize import make_readable
from runners.core.failure.parse import clean_lines, find_detail, is_relay, parse_signature
from runners.core.failure.stack_frames import find_python_frames
from runners.core.protocol import Ended, Exited, Raised, Signature, StepResult
from runners.core.toolchain.failures import FailureVocabulary

_TYPE = re.compile(r"(?:[A-Za-z_]\w{0,99}\.){0,8}(?P<name>[A-Za-z_]\w{0,99})", re.ASCII)
UNCAUGHT = 1
"""What Python exits with after an exception that nobody caught."""


def read_chain(ended: Ended, steps: Sequence[StepResult], vocabulary: FailureVocabulary) -> tuple[Signature, ...]:
    """The exception that ended the last step, then those that it came from; empty where no record may speak.

    A name that is no name drops the whole record: it was not written by the interpreter's exceptions.
    """
    if not steps or ended != Exited(code=UNCAUGHT):
        return ()
    last = steps[-1]
    if last.record is None or last.ended != ended or last.argv[:1] != ("python",):
        return ()
    found = [read_exception(one, vocabulary) for one in last.record.chain]
    return tuple(one for one in found if one is not None) if all(found) else ()


def read_exception(one: Raised, vocabulary: FailureVocabulary) -> Signature | None:
    """None where ``one.type`` is no dotted name. A traceback inside the message never ends up as the failure."""
    named = _TYPE.fullmatch(one.type.rpartition("<locals>.")[2])
    if named is None:
        return None
    if (inner := read_native_header(one, vocabulary)) is not None:
        return Signature(type=named["name"], message=inner.message, frames=inner.frames)
    if is_relay(named["name"], vocabulary) and (relayed := parse_signature(one.message, vocabulary)) is not None:
        return relayed
    lines = [line.strip() for line in clean_lines(one.message) if line.strip()]
    first = [line.removeprefix(f"{named['name']}: ") for line in lines[:1]]  # as it is read from output
    said = extract_figures(lines[1:]) if named["name"] == "AssertionError" else ""
    detail = said or find_detail(lines[1:], vocabulary)
    return Signature(
        type=named["name"],
        message=make_readable(" | ".join([*first, *([detail] if detail else [])]), vocabulary),
        frames=find_python_frames(
            (f'File "{frame.file}", line {frame.line}, in {frame.function}' for frame in one.frames[::-1]), vocabulary
        ),
    )


def read_native_header(one: Raised, vocabulary: FailureVocabulary) -> Signature | None:
    """A compiler may begin a message with the traceback of its C++ side: the sentence is at the message's end."""
    if not one.message.lstrip().startswith("Traceback (most recent call last)"):
        return None
    return parse_signature(one.message, vocabulary)


def read_quoted_failure(steps: Sequence[StepResult], vocabulary: FailureVocabulary) -> Signature | None:
    """The failure that the message of the exception itself quotes, as one that relays a worker's does."""
    record = steps[-1].record if steps else None
    return parse_signature(record.chain[0].message, vocabulary) if record is not None and record.chain else None
