"""What the output says of hardware and runtimes that are not here."""

from __future__ import annotations

import pytest

from runners.devices import missing_device


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: Cannot find global function target.build.llvm",
        "Check failed: (bf != nullptr) is false: target.build.llvm is not enabled",
    ],
)
def test_a_build_without_llvm_says_nothing_about_a_bug(text: str) -> None:
    """One of the forks runs passes only: a program that compiles there is neither good nor bad."""
    why = missing_device(text)
    assert why is not None
    assert "no LLVM" in why


@pytest.mark.parametrize(
    "text", ["target='llvm'", 'f = tvm.get_global_func("target.build.llvm")', "LLVM ERROR: abort"]
)
def test_the_mere_word_is_no_sign(text: str) -> None:
    """Programs and backtraces name LLVM all the time."""
    assert missing_device(text) is None
