"""Flags of the compiler in the sentences of a report that gives no command."""

from __future__ import annotations

import pytest

from runners.core.toolchain.reports import DeviceText
from runners.toolchains.iree.reports.tools import TOOLS


@pytest.mark.parametrize(
    ("title", "prose", "flags"),
    [
        ("Import fails with `--iree-execution-model=inline-dynamic`", "", ("--iree-execution-model=inline-dynamic",)),
        (
            "Crash",
            "It crashes with `--iree-opt-level=O3`. It works with `--iree-opt-level=O1`.",
            ("--iree-opt-level=O3",),
        ),
        ("Crash", "Without --iree-opt-data-tiling, it fails.", ()),
        ("Crash", "We compile everything with --iree-opt-data-tiling.", ()),
        ("Crash", "It fails with --iree-hal-target-device=hip and --iree-hal-dump-executable-sources-to=x.", ()),
        ("Add --iree-foo to fix it: should be on by default", "", ()),
        ("--iree-flow-export-benchmark-funcs doesnt work here", "", ("--iree-flow-export-benchmark-funcs",)),
        ("compiles and works with --iree-flow-export-benchmark-funcs", "", ()),
    ],
)
def test_flags_of_sentences_about_the_failure_are_told(title: str, prose: str, flags: tuple[str, ...]) -> None:
    """Not the flags with which it works, those of a target, and those that only show something."""
    assert TOOLS.list_told_flags(DeviceText(title=title, prose=prose)) == flags


@pytest.mark.parametrize(
    ("text", "device", "flags"),
    [
        (DeviceText(title="gfx1201 fails"), "hip", ("--iree-hip-target=gfx1201",)),
        (DeviceText(output='arch = "gfx90a"'), "rocm", ("--iree-hip-target=gfx90a",)),
        (DeviceText(), "hip", ("--iree-hip-target=gfx942",)),
        (DeviceText(title="gfx1201 is fine"), "llvm-cpu", ()),
    ],
)
def test_an_amd_gpu_needs_a_chip(text: DeviceText, device: str, flags: tuple[str, ...]) -> None:
    assert TOOLS.choose_chip(text, device) == flags
