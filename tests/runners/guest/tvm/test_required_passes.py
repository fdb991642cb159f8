"""The required passes are found in few runs."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given, strategies as st

from runners.guest.tvm.pass_bisect.required_passes import find_required_passes

NAMES = tuple(f"pass{number}" for number in range(62))


class Program:
    """A program that breaks if a pass of ``required`` is missing, and counts its runs."""

    def __init__(self, required: Collection[str]) -> None:
        self.required = frozenset(required)
        self.runs = 0

    def breaks(self, skipped: frozenset[str]) -> bool:
        self.runs += 1
        return bool(self.required & skipped)


some = st.sets(st.sampled_from(NAMES), max_size=20)


@given(some, some)
def test_find_required_passes_ignores_a_wrong_guess(required: set[str], likely: set[str]) -> None:
    """A wrong guess costs runs and does not change the result."""
    assert find_required_passes(NAMES, likely, Program(required).breaks) == required


def test_a_right_guess_takes_one_run_per_pass_and_one_more() -> None:
    """12 of 62 passes are required, as in a network of TVM 0.27.0."""
    program = Program(NAMES[::6][:12])
    find_required_passes(NAMES, program.required, program.breaks)
    assert program.runs == len(program.required) + 1


def test_a_guess_without_one_pass_takes_one_more_bisection() -> None:
    """Six runs bisect 62 names, and one run shows that the set is complete."""
    program = Program(NAMES[::6])
    find_required_passes(NAMES, program.required - {NAMES[30]}, program.breaks)
    assert program.runs <= len(program.required) + 2 + 6


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12), some)
def test_one_of_two_interchangeable_passes_is_kept(pairs: list[tuple[str, str]], likely: set[str]) -> None:
    """The result suffices and is minimal, even if each pass of a pair could be left out alone."""

    def breaks(skipped: frozenset[str]) -> bool:
        return any(one in skipped and other in skipped for one, other in pairs)

    found = find_required_passes(NAMES, likely, breaks)
    everything = frozenset(NAMES)
    assert not breaks(everything - found)
    assert all(breaks((everything - found) | {name}) for name in found)
