"""A stranger's text costs little to read, yields little, and is never the reason for a failure of ours.

What it costs is measured in `bench.robustness.hostile_text`: no test here looks at a clock.
"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.normalize import MAX_MESSAGE_CHARS
from runners.core.failure.parse import clean_lines, parse_signature
from runners.core.failure.stack_frames import MAX_FRAMES
from runners.core.protocol import Ended, Exited, OutOfMemory, Signalled, Signature, TimedOut
from runners.toolchains import ALL_FAILURES

PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):\n", '  File "/x/site-packages/tvm/relax/op.py", line 3, in f\n',
        '  File "/project/src/relax/op/a.cc", line 7, in tvm::relax::F(int)::<lambda(', "    f()\n",
        "ValueError: ", "tvm.error.InternalError: Check failed: (a == b) is false: ", "AssertionError:\n",
        "Not equal to tolerance rtol=1e-05, atol=0\n", "Mismatched elements: 3 / 16 (18.8%)\n",
        "nan location mismatch:\n", "(shapes (2,), (3, 4) mismatch)\n", "Max relative difference: 1e999\n",
        "a.mlir:3:4: error: 'a.b' op expected ", "<unknown>:0: error: ", "error: ", "INTERNAL; ", "Error message: ",
        "Unknown command line argument '", "Stack dump:\n",
        " #4 0x00007f a::(anonymous namespace)::B<C>::run(D) E.cpp:0:0\n",
        "Segmentation fault (core dumped)\n", "Fatal Python error: Aborted\n", "LLVM ERROR: ", "Assertion `x' failed",
        "CompilerToolError: Error invoking IREE compiler tool iree-compile\nError code: -11\nDiagnostics:\n",
        "\x1b[31m", "\x1b]0;", "\r", "\x00", "\u2028", "`", "'" * 40, "(" * 90, "<" * 90, ": " * 60, "9" * 400,
        " " * 300,
        "ir.Op(span=None, name=\"relax.f\", support_level=1)", "0x", "/tmp/a/b.py:3", "%0", "…", "ß", "\ud83d",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=20), max_size=25).map("".join)
ENDS = st.sampled_from(
    [None, Exited(code=1), Exited(code=139), Signalled(code=11), OutOfMemory(), TimedOut(where="")]
)


@given(text=TEXTS, ended=ENDS)
def test_a_signature_is_small(text: str, ended: Ended | None) -> None:
    """However long the text: one line of message, a handful of frames, a name for a type."""
    seen = parse_signature(text, ALL_FAILURES, ended)
    if seen is None:
        return
    assert len(seen.type) <= 2_000
    assert len(seen.message) <= 2 * MAX_MESSAGE_CHARS
    assert "\n" not in seen.message
    assert len(seen.frames) <= MAX_FRAMES
    assert all(len(frame) <= 300 for frame in seen.frames)


@given(text=TEXTS, ended=ENDS)
def test_a_failure_is_the_same_as_itself(text: str, ended: Ended | None) -> None:
    """For any text, a second run with the same output has the same failure."""
    seen = parse_signature(text, ALL_FAILURES, ended)
    assert seen is None or compare_signatures(seen, seen, ALL_FAILURES).score >= SAME


@given(one=TEXTS, other=TEXTS)
def test_any_two_failures_can_be_compared(one: str, other: str) -> None:
    """A figure between 0 and 1 and a reason, with and without renamed names."""
    first, second = (
        parse_signature(text, ALL_FAILURES) or Signature(type="ValueError", message=text) for text in (one, other)
    )
    for renames in (None, {"a.b": r"\1", "relax.f": "relax.g"}):
        found = compare_signatures(first, second, ALL_FAILURES, renames)
        assert 0.0 <= found.score <= 1.0
        assert found.why


@pytest.mark.parametrize(
    "piece",
    ["A", "a.Error", "-", "-/", "Assertion `", "loc(", "\x1b[", "for the --", " 1: a<", "AssertionError:\n", "(1, "],
)
@pytest.mark.parametrize("lines", [1, 5_000])
def test_ten_mebibytes_of_anything_are_read(piece: str, lines: int) -> None:
    """One endless line, or thousands: only the head and the tail are looked at, a line's beginning alone."""
    per_line = 10 * 2**20 // lines // len(piece)
    text = "\n".join([piece * per_line] * lines)
    parse_signature(text, ALL_FAILURES, Exited(code=1))
    assert sum(map(len, clean_lines(text))) <= 200_001


def test_the_failure_behind_a_hundred_thousand_tracebacks_is_found() -> None:
    """Those of a retry loop, say, before the one that ended it."""
    one = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyError: {}\n'
    text = "".join(one.format(number) for number in range(100_000)) + "ValueError: out of patience\n"
    seen = parse_signature(text, ALL_FAILURES, Exited(code=1))
    assert seen is not None
    assert (seen.type, seen.message) == ("ValueError", "out of patience")
