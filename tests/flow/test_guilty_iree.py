"""Where IREE goes wrong, named on real releases; bench/diagnosis/diagnosers.py has the whole sets."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import FindingKind
from runners.workbench import Workbench, open_workbench
from tests.runners.guest.iree import fresh, search, written as iree_written
from tests.runners.guest.iree.faults import Fault, list_faults, list_valid_programs

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]

FAULTS = {
    (fault.title, fault.version): fault
    for fault in (*list_faults(), *fresh.list_faults(), *iree_written.list_faults())
}


@pytest.fixture(scope="module")
def bench() -> Workbench:
    return open_workbench("auto", load_catalogue(), Silent())


@pytest.mark.parametrize(
    "fault",
    [
        FAULTS["planted, of another kind", "3.13.0"],
        FAULTS["planted behind util.func(canonicalize,cse),", "3.5.0"],
        FAULTS["patterns by a flag", "3.7.0"],
        FAULTS["iree-opt, an illegal operation", "3.4.0"],
        FAULTS["a type narrowed behind the interface", "3.13.0"],
        FAULTS["powers of negative numbers", "3.13.0"],
        FAULTS["crop behind a transpose", "3.9.0"],
        FAULTS["types that do not fit", "3.6.0"],
        FAULTS["column, and squares of it", "3.5.0"],
    ],
    ids=lambda fault: fault.title,
)
def test_the_fault_is_found_where_it_is(bench: Workbench, fault: Fault) -> None:
    """A pass, the input, a pass of LLVM, a dispatch: of the level and the name that were written down before."""
    sought = search.search_fault(bench, fault)
    assert sought.shown
    assert sought.is_right(fault), sought.findings


def test_an_operand_that_the_operation_excludes_settles_the_cause(bench: Workbench) -> None:
    """A shift of 32 bits by 33, which the program computes: no pass is searched."""
    seen = bench.run(search.make_plan(FAULTS["shli by 33", "3.13.0"]))
    (found,) = (one for one in seen.findings if one.kind is FindingKind.BROKEN_RULE)
    assert found.evidence["rule"] == Rule.SHIFT_TOO_FAR


def test_a_pass_shows_what_it_did(bench: Workbench) -> None:
    """The IR before and after it, bounded."""
    found = search.search_fault(bench, FAULTS["crop behind a transpose", "3.9.0"]).find_level("pass")
    assert found is not None
    difference = found.evidence["difference"]
    assert any(line.startswith("-") and "collapse_shape" in line for line in difference)
    assert any(line.startswith("+") and "extract_slice" in line for line in difference)


@pytest.mark.parametrize("title", ["matmul and sum", "squares of a table"])
def test_valid_programs_part_nowhere(bench: Workbench, title: str) -> None:
    """Two backends, two dispatches, the same values: no dispatch is named."""
    found = search.find_false_alarms(
        bench, dict(list_valid_programs())[title], ("3.13.0", "llvm-cpu"), ("3.13.0", "vmvx")
    )
    assert found == ()
