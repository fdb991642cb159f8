"""The part of an exception's message that a record keeps."""

from __future__ import annotations

from runners.core.failure.exception_chain import read_exception
from runners.core.protocol import Raised
from runners.guest.script.record import MAX_MESSAGE, NATIVE_HEADER, shorten_message
from runners.toolchains import tvm

SENTENCE = "InternalError: Check failed: (n > 0) is false: no axis"
STACK = [f"  {at}: tvm::tir::Visitor::Visit{at}(tvm::tir::Stmt const&)" for at in range(90, -1, -1)]


def test_a_native_stack_keeps_its_first_frames_and_its_sentence() -> None:
    """The sentence is at the end of such a message, after any number of frames."""
    long = "\n".join([NATIVE_HEADER, *STACK, '  File "/w/src/tir/visitor.cc", line 61', SENTENCE])
    kept = shorten_message(long)
    assert len(long) > MAX_MESSAGE >= len(kept)
    assert kept.splitlines()[0] == NATIVE_HEADER
    assert set(kept.splitlines()) <= set(long.splitlines())
    read = [read_exception(Raised(type="InternalError", message=text), tvm.FAILURES) for text in (kept, long)]
    assert read[0] == read[1]
    assert read[0] is not None
    assert read[0].message == SENTENCE.removeprefix("InternalError: ")


def test_other_messages_keep_their_beginning() -> None:
    assert shorten_message("no axis") == "no axis"
    assert shorten_message("no axis " * 1_000) == ("no axis " * 1_000)[:MAX_MESSAGE]
    short = f"{NATIVE_HEADER}\n{SENTENCE}"
    assert shorten_message(short) == short
    assert len(shorten_message(NATIVE_HEADER + "x" * 9_000)) <= MAX_MESSAGE
