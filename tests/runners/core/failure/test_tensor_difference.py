"""Which device computes other values than the others."""

from __future__ import annotations

import msgspec
import pytest

from bot.verdict.finding_text import describe_finding
from runners.core.failure.tensor_difference import find_device_differences, read_tensors
from runners.core.protocol import Answer, Exited, FindingKind, Observation, Outcome, Signalled, Variant

ORDER = ("3.3.0", "3.4.0", "3.5.0", "3.6.0")


def seen(
    device: str,
    values: str,
    *,
    version: str = "3.5.0",
    outcome: Outcome = Outcome.OTHER_FAILURE,
    variant: Variant = Variant.RETARGETED,
) -> Observation:
    return Observation(
        toolchain="iree",
        version=version,
        device=device,
        attempt=1,
        variant=variant,
        outcome=outcome,
        answer=Answer.SKIP,
        ended=Exited(code=0),
        excerpt=f"EXEC @f\nresult[0]: hal.buffer_view\n{values}\n",
    )


def told(*observations: Observation) -> str:
    return "".join(finding.summary for finding in find_device_differences(observations, ORDER))


def test_the_odd_one_of_three_is_named() -> None:
    """Two that agree outvote one, and the finding says by how much it is off."""
    found = find_device_differences(
        [seen("llvm-cpu", "3xi32=1 2 3"), seen("vulkan", "3xi32=1 2 7"), seen("vmvx", "3xi32=1 2 3")], ORDER
    )
    assert [finding.kind for finding in found] == [FindingKind.DEVICE_SPECIFIC]
    assert "vulkan differs from llvm-cpu and vmvx on 3.5.0" in found[0].summary
    assert "1 of 3 values" in found[0].summary
    assert found[0].evidence["refuted_by"]
    facts = {name: found[0].evidence[name] for name in ("differ", "count", "total", "worst")}
    assert facts == {"differ": "values", "count": 1, "total": 3, "worst": ["3", "7"]}
    assert "1 of 3 values differ, at worst `3` and `7`" in describe_finding(found[0])


def test_a_sentence_about_devices_does_not_read_its_own_words_again() -> None:
    """It is made of the fields. A record from before they existed is quoted."""
    (found,) = find_device_differences([seen("llvm-cpu", "2xi32=1 2"), seen("vulkan", "2xi32=1 7")], ORDER)
    evidence = {name: value for name, value in found.evidence.items() if name != "differ"}
    other = msgspec.structs.replace(found, evidence=found.evidence | {"how": "result 0: 9 of 9 values"})
    assert describe_finding(other) == describe_finding(found)
    old = msgspec.structs.replace(found, evidence={n: v for n, v in evidence.items() if n not in ("count", "worst")})
    assert describe_finding(old) != describe_finding(found)
    assert "vulkan differs from llvm-cpu" in describe_finding(old)


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("4xf32=1 2 3 4", "4xf32=1 2 3 4.0001", False),
        ("4xf32=1 2 3 4", "4xf32=1 2 3 4.1", True),
        ("2xf32=1e6 0.5", "2xf32=1e6 0.501", False),  # lost to cancellation beside a large value
        ("2xf16=1 2", "2xf16=1 2.02", False),
        ("2xf32=1 2", "2xf32=1 2.02", True),
        ("2xi64=1 2", "2xi64=1 3", True),
        ("2xf32=nan 2", "2xf32=nan 2", False),
        ("2xf32=nan 2", "2xf32=1 2", True),
        ("2xf32=inf 2", "2xf32=-inf 2", True),
        ("2xf32=9e-41 0", "2xf32=0 0", False),  # flushed to zero
        ("i1=1", "i1=0", True),
        ("2x2xf32=[1 2][3 4]", "2x2xf32=[1 2][3 5]", True),
        ("2xf32=1 2", "3xf32=1 2 3", False),  # not the same program
    ],
)
def test_tolerance_goes_by_element_type(one: str, other: str, differ: bool) -> None:
    """Rounding is no difference; an integer that is off by one is."""
    assert bool(told(seen("llvm-cpu", one), seen("vulkan", other))) is differ


def test_the_finding_names_releases_on_which_devices_agree() -> None:
    """Releases on which the devices agree bound those on which they don't."""
    runs = [
        seen(device, f"2xi32=1 {last}", version=version)
        for version, wrong in (("3.3.0", "2"), ("3.4.0", "9"), ("3.5.0", "9"), ("3.6.0", "2"))
        for device, last in (("llvm-cpu", "2"), ("vulkan", wrong))
    ]
    assert "on 3.4.0 and 3.5.0" in told(*runs)
    assert "they agree on 3.3.0 and 3.6.0" in told(*runs)


def test_a_device_that_contradicts_itself_is_not_compared() -> None:
    """A result that changes from run to run is no difference between devices."""
    assert not told(seen("vulkan", "i32=1"), seen("vulkan", "i32=2"), seen("llvm-cpu", "i32=1"))


def test_one_fails_and_the_other_does_not() -> None:
    """A crash on one device and a clean run on another differ without any value."""
    crash = Observation(
        toolchain="iree",
        version="3.5.0",
        device="vulkan",
        attempt=1,
        variant=Variant.ORIGINAL,
        outcome=Outcome.MATCH,
        answer=Answer.BAD,
        ended=Signalled(code=11),
    )
    assert "vulkan" in told(crash, seen("llvm-cpu", "i32=1", outcome=Outcome.PASS))
    assert not told(crash, seen("llvm-cpu", "i32=1", outcome=Outcome.UNAVAILABLE))


@pytest.mark.parametrize("text", ["[…]\n2xi32=1 2", "2xi32=1 2 ...", "no numbers here", ""])
def test_incomplete_output_is_not_compared(text: str) -> None:
    """Output that was cut, by us or by the printing program, could hide the difference or make one up."""
    assert read_tensors(text) is None


def test_numbers_of_any_program_are_compared_line_by_line() -> None:
    """``print(array)`` has no types, but the same words around its numbers."""
    one, other = read_tensors("sum: 3.00\n[1. 2.]\n"), read_tensors("sum: 3.5\n[1. 2.]\n")
    assert one is not None
    assert other is not None
    assert [tensor.values for tensor in one] == [(3.0,), (1.0, 2.0)]
    assert one[0].shape == other[0].shape
