"""The same testcase for another device, its inputs untouched. Pure."""

from __future__ import annotations

from runners.core.protocol import Testcase
from runners.core.toolchain.guest import is_launch_step
from runners.toolchains import find_toolchain


def retarget(testcase: Testcase, device: str) -> Testcase | None:
    """The testcase for ``device`` as its toolchain retargets it; None where the toolchain cannot, or need not."""
    return find_toolchain(testcase.toolchain).REWRITING.retarget(testcase, device)


def in_words(testcase: Testcase) -> tuple[str, ...]:
    """How a retargeted testcase differs, for people: its new command lines, or what the hook does."""
    if any(map(is_launch_step, testcase.steps)):
        target = testcase.steps[0][3]
        return (f"while it runs, every target is {target} and every device the one that goes with it",)
    return tuple(" ".join(step)[:500] for step in testcase.steps)
