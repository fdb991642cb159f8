"""A type in front of a file in NumPy's format makes the tools read its header as numbers."""

from __future__ import annotations

import pytest

from runners.core.findings.calls import RawFile
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.diagnosis.calls.raw_files import find_raw_array


def make_testcase(*inputs: str) -> Testcase:
    words = (f"--input={one}" for one in inputs)
    steps = (("iree-run-module", "--module=a.vmfb", *words),)
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={}, steps=steps)


def test_a_typed_array_is_mended_to_the_file_alone() -> None:
    found = find_raw_array(make_testcase("4xf32=1", "2x?xf16=@x.npy"))
    assert found is not None
    assert found.call == RawFile(flag="--input=2x?xf16=@x.npy", given="2x?xf16", name="x.npy")
    assert found.mended[0].steps[0][-2:] == ("--input=4xf32=1", "--input=@x.npy")


@pytest.mark.parametrize("given", ["@x.npy", "4xf32=@x.bin", "4xf32=1 2 3 4", "*=@x.npy"])
def test_other_inputs_are_no_fault(given: str) -> None:
    """Raw numbers have no header, and a file alone is read by its own."""
    assert find_raw_array(make_testcase(given)) is None
