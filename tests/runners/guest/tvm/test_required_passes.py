"""Which names cannot be spared, found with few runs."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given, strategies as st

from runners.guest.tvm.pass_bisect.required_passes import must_run

NAMES = tuple(f"pass{number}" for number in range(62))


class Program:
    """Breaks without any of ``needed``; counts its runs."""

    def __init__(self, needed: Collection[str]) -> None:
        self.needed = frozenset(needed)
        self.runs = 0

    def breaks(self, left_out: frozenset[str]) -> bool:
        self.runs += 1
        return bool(self.needed & left_out)


some = st.sets(st.sampled_from(NAMES), max_size=20)


@given(some, some)
def test_what_is_needed_is_found_whatever_was_guessed(needed: set[str], likely: set[str]) -> None:
    """A wrong guess costs runs and changes nothing."""
    assert must_run(NAMES, likely, Program(needed).breaks) == needed


def test_a_good_guess_takes_a_run_for_each_and_one() -> None:
    """Of 62 passes, 12 of them needed, as in a network of TVM 0.27.0."""
    program = Program(NAMES[::6][:12])
    must_run(NAMES, program.needed, program.breaks)
    assert program.runs == len(program.needed) + 1


def test_a_guess_that_misses_one_takes_a_bisection_more() -> None:
    """Six runs halve 62 names, and one shows that nothing else is missing."""
    program = Program(NAMES[::6])
    must_run(NAMES, program.needed - {NAMES[30]}, program.breaks)
    assert program.runs <= len(program.needed) + 2 + 6


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12), some)
def test_of_two_that_stand_in_for_each_other_one_is_kept(pairs: list[tuple[str, str]], likely: set[str]) -> None:
    """What is found suffices, and nothing of it can be spared, also where each alone could be."""

    def breaks(left_out: frozenset[str]) -> bool:
        return any(one in left_out and other in left_out for one, other in pairs)

    found = must_run(NAMES, likely, breaks)
    everything = frozenset(NAMES)
    assert not breaks(everything - found)
    assert all(breaks((everything - found) | {name}) for name in found)
