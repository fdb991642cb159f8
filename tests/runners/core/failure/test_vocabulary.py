"""What a compiler's vocabulary adds to the reading of failures, and that vocabularies do not disturb each other."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from bench.pairs.score import Failure, ended, load
from runners.core.failure.compare import compare_signatures
from runners.core.failure.parse import parse_signature
from runners.core.protocol import Exited
from runners.core.toolchain.failures import FailureVocabulary, unite_vocabularies
from runners.toolchains import ALL_FAILURES, iree, tvm

FAILURES = load()
NONE = FailureVocabulary()


def own(failure: Failure) -> FailureVocabulary:
    return tvm.FAILURES if failure.version.startswith("0.") else iree.FAILURES


@pytest.mark.thorough
def test_a_failure_reads_the_same_whether_or_not_its_compiler_is_known() -> None:
    """A report is read with all vocabularies, a run with its compiler's: both must give one signature."""
    for failure in FAILURES:
        by_all = parse_signature(failure.output, ALL_FAILURES, ended(failure))
        assert parse_signature(failure.output, own(failure), ended(failure)) == by_all, failure


@pytest.mark.thorough
def test_two_failures_compare_the_same_whether_or_not_their_compiler_is_known() -> None:
    """Here on the neighbours of each room; `bench.pairs.score` has all pairs."""
    for a, b in pairwise(FAILURES):
        first, second = (parse_signature(one.output, ALL_FAILURES, ended(one)) for one in (a, b))
        if first is not None and second is not None and own(a) is own(b):
            assert compare_signatures(first, second, own(a)) == compare_signatures(first, second, ALL_FAILURES)


@pytest.mark.parametrize(
    ("text", "kind", "vocabulary"),
    [
        ("INTERNAL; the queue is gone\n", "status:INTERNAL", iree.FAILURES),
        ("unregistered device alias 'toaster'\n", "flag-error", iree.FAILURES),
        ("[FAILED] result[0]: element at index 1 differs\n", "unexpected-output", iree.FAILURES),
        ("Error message: the loop has two writers\n", "ScheduleError", tvm.FAILURES),
        ("OpNotImplemented: no such operator\n", "OpNotImplemented", tvm.FAILURES),
        ("!!!!!!! Segfault encountered !!!!!!!\n", "SIGSEGV", tvm.FAILURES),
    ],
)
def test_a_message_of_one_compiler_means_nothing_without_its_vocabulary(
    text: str, kind: str, vocabulary: FailureVocabulary
) -> None:
    """Another program may print the same words about something else."""
    seen = parse_signature(text, vocabulary, Exited(code=1))
    assert seen is not None
    assert seen.type == kind
    assert parse_signature(text, NONE, Exited(code=1)) is None


def test_the_union_has_each_entry_once_and_in_order() -> None:
    """The order decides which of two messages counts."""
    united = unite_vocabularies([tvm.FAILURES, iree.FAILURES, tvm.FAILURES])
    assert united.packages == ("tvm", "tvm_ffi", "iree")
    assert united.missing_devices == (*tvm.FAILURES.missing_devices, *iree.FAILURES.missing_devices)
    assert unite_vocabularies([]) == NONE
    for one, other in combinations((tvm.FAILURES, iree.FAILURES), 2):
        assert unite_vocabularies([one, other]) == unite_vocabularies([one, other, NONE])
