"""Read the exceptions from the record of a Python step → signatures. Pure.

The record (`runners.core.protocol.Record.chain`) is written inside the testcase's process, so it is a claim of the
testcase, like the output. The record is less ambiguous than the output, which may contain tracebacks of other
exceptions (quoted, caught, or raised at shutdown) and gaps.

The record gives a testcase no power beyond printing. The host reads the record only if the Python step ended with
status 1, as after an uncaught exception. A testcase that writes ``X: words`` into the record could also print ``X:
words`` and end with status 1. Type names must be names that the output's parser accepts, and `runners.core.protocol`
limits the sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from runners.core.failure.array_mismatch import extract_figures
from runners.core.failure.normalize import make_readable
from runners.core.failure.parse import clean_lines, find_detail, is_relay, parse_signature
from runners.core.failure.stack_frames import find_python_frames
from runners.core.protocol import Ended, Exited, Raised, Signature, StepResult
from runners.core.toolchain.failures import FailureVocabulary

_TYPE = re.compile(r"(?:[A-Za-z_]\w{0,99}\.){0,8}(?P<name>[A-Za-z_]\w{0,99})", re.ASCII)
_SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError", "TabError"})
_PLACE = re.compile(r" \((?:[^()]{1,300}, )?line \d{1,9}\)$")
"""The location that ``str()`` appends to a syntax error. A traceback prints the message without it."""
UNCAUGHT = 1
"""Exit status of Python after an uncaught exception."""


def read_chain(ended: Ended, steps: Sequence[StepResult], vocabulary: FailureVocabulary) -> tuple[Signature, ...]:
    """Return the exception that ended the last step, then its causes. Empty if the record must not be read.

    A record with an invalid type name is dropped, because the interpreter did not write it.
    """
    if not steps or ended != Exited(code=UNCAUGHT):
        return ()
    last = steps[-1]
    if last.record is None or last.ended != ended or last.argv[:1] != ("python",):
        return ()
    found = [read_exception(one, vocabulary) for one in last.record.chain]
    return tuple(one for one in found if one is not None) if all(found) else ()


def read_exception(one: Raised, vocabulary: FailureVocabulary) -> Signature | None:
    """Return the signature of one exception. None if its type is not a dotted name.

    A traceback inside the message is never treated as the failure.
    """
    named = _TYPE.fullmatch(one.type.rpartition("<locals>.")[2])
    if named is None:
        return None
    if (inner := read_native_header(one, vocabulary)) is not None:
        return Signature(type=named["name"], message=inner.message, frames=inner.frames)
    if is_relay(named["name"], vocabulary) and (relayed := parse_signature(one.message, vocabulary)) is not None:
        return relayed
    lines = [line.strip() for line in clean_lines(one.message) if line.strip()]
    first = [line.removeprefix(f"{named['name']}: ") for line in lines[:1]]  # as the parser of output does
    if named["name"] in _SYNTAX_ERRORS:
        first = [_PLACE.sub("", line) for line in first]
    figures = extract_figures(lines[1:]) if named["name"] == "AssertionError" else ""
    detail = figures or find_detail(lines[1:], vocabulary)
    return Signature(
        type=named["name"],
        message=make_readable(" | ".join([*first, *([detail] if detail else [])]), vocabulary),
        frames=find_python_frames(
            (f'File "{frame.file}", line {frame.line}, in {frame.function}' for frame in one.frames[::-1]), vocabulary
        ),
    )


def read_native_header(one: Raised, vocabulary: FailureVocabulary) -> Signature | None:
    """Return the failure from a message that begins with a C++ traceback. None for other messages.

    Such a message ends with the sentence.
    """
    if not one.message.lstrip().startswith("Traceback (most recent call last)"):
        return None
    return parse_signature(one.message, vocabulary)


MIN_LABEL = 3
"""Minimum length of a text that identifies a printed row by its beginning."""


def iterate_caught(printed: str, labels: Sequence[str]) -> Iterator[str]:
    """Yield the messages of exceptions that a testcase caught and printed after one of ``labels``."""
    known = [label for label in labels if len(label) >= MIN_LABEL]
    for row in map(str.strip, printed.splitlines()):
        label = next((label for label in known if row.startswith(label)), None)
        if label is not None and row != label:
            yield row.removeprefix(label).strip()


def read_quoted_failure(steps: Sequence[StepResult], vocabulary: FailureVocabulary) -> Signature | None:
    """Return the failure that the exception's message quotes. A relay of a worker's exception quotes one."""
    record = steps[-1].record if steps else None
    return parse_signature(record.chain[0].message, vocabulary) if record is not None and record.chain else None
