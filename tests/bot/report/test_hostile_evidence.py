"""Records that contradict each other, come twice, late, cut off or from somebody hostile: the verdict holds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.requests.result_files import MAX_RESULT_BYTES, read_results
from bot.verdict.evidence import Evidence
from bot.verdict.judge import judge
from bot.verdict.verdict import Verdict, VerdictKind
from runners.core.protocol import (
    SAID_TO_WORK,
    Answer,
    CellResult,
    Investigation,
    JobCell,
    Observation,
    Outcome,
    Plan,
    Variant,
    digest_of,
)
from tests.support.observed import ORDER, PLAN, observe

pytestmark = pytest.mark.thorough

AT_HOME = msgspec.structs.replace(PLAN, reported="1.2", claim=msgspec.structs.replace(PLAN.claim, versions=("1.2",)))
DIRECTED = {VerdictKind.FIXED, VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.NOT_REPRODUCED}
SILENT = (Outcome.TIMEOUT, Outcome.INFRA, Outcome.UNAVAILABLE, Outcome.OUT_OF_MEMORY, Outcome.INCOMPATIBLE)


def runs_of(variants: Sequence[Variant]) -> st.SearchStrategy[list[Observation]]:
    one = st.builds(
        observe, st.sampled_from(ORDER), st.sampled_from(list(Outcome)), attempt=st.integers(1, 3),
        variant=st.sampled_from(variants), device=st.sampled_from(("llvm", "llvm", "cuda")),
        why=st.sampled_from(("seen", "heard")),
    )  # fmt: skip
    return st.lists(one.map(_a_control_of_the_reporters), max_size=12)


def _a_control_of_the_reporters(seen: Observation) -> Observation:
    control = seen.variant is Variant.CONTROL
    return msgspec.structs.replace(seen, changes=(SAID_TO_WORK,)) if control else seen


RUNS = runs_of((Variant.ORIGINAL, Variant.ORIGINAL, Variant.PORTED, Variant.CONTROL, Variant.RETARGETED))
PLANS = st.sampled_from((PLAN, AT_HOME))


def verdict_of(plan: Plan, seen: Sequence[Observation]) -> Verdict:
    return judge(Evidence(plan=plan, observations=tuple(seen), findings=()))


def told(verdict: Verdict) -> tuple[object, ...]:
    """All that a reader sees of a verdict but the numbering of its evidence."""
    return (verdict.kind, verdict.confidence, verdict.headline, verdict.reasons, verdict.labels)


@given(plan=PLANS, seen=RUNS, data=st.data())
def test_a_record_that_comes_twice_is_one_run(plan: Plan, seen: list[Observation], data: st.DataObject) -> None:
    """Neither kind, confidence, headline nor reasons change: a copy is no second witness."""
    copies = data.draw(st.lists(st.sampled_from(seen), max_size=6)) if seen else []
    assert told(verdict_of(plan, [*seen, *copies])) == told(verdict_of(plan, seen))


@given(plan=PLANS, seen=RUNS, data=st.data())
def test_the_order_of_records_does_not_matter(plan: Plan, seen: list[Observation], data: st.DataObject) -> None:
    """Down to the words: jobs end in any order."""
    assert told(verdict_of(plan, data.draw(st.permutations(seen)))) == told(verdict_of(plan, seen))


@given(plan=PLANS, seen=RUNS, skips=st.lists(st.tuples(st.sampled_from(ORDER), st.sampled_from(SILENT)), max_size=6))
def test_skipped_builds_never_reverse_a_verdict_or_raise_its_confidence(
    plan: Plan, seen: list[Observation], skips: list[tuple[str, Outcome]]
) -> None:
    """Builds that are neither good nor bad never add or reverse a direction, and never raise the confidence."""
    before = verdict_of(plan, seen)
    more = [observe(version, outcome, attempt=4 + i) for i, (version, outcome) in enumerate(skips)]
    after = verdict_of(plan, [*seen, *more])
    if after.kind in DIRECTED:
        assert after.kind is before.kind
        assert after.confidence <= before.confidence


@given(plan=PLANS, seen=RUNS, version=st.sampled_from(ORDER))
def test_contradicting_runs_are_never_ignored(plan: Plan, seen: list[Observation], version: str) -> None:
    """One release, once failing and once clean: that is the verdict, and no other verdict is possible."""
    both = [observe(version, Outcome.MATCH, attempt=8), observe(version, Outcome.PASS, attempt=9)]
    verdict = verdict_of(plan, [*seen, *both])
    assert verdict.kind is VerdictKind.FLAKY


def test_a_control_that_failed_is_named_with_its_own_release() -> None:
    """Not with that of another control, which ran cleanly."""
    seen = [observe(version, Outcome.MATCH) for version in ORDER]
    controls = [
        observe("1.2", Outcome.PASS, variant=Variant.CONTROL, changes=(SAID_TO_WORK,)),
        observe("1.3", Outcome.MATCH, variant=Variant.CONTROL, changes=(SAID_TO_WORK,)),
    ]
    reason = verdict_of(PLAN, [*seen, *controls]).reasons[-1]
    assert reason.startswith("the variant that the report calls working fails")


# ------------------------------------------------------------------------------------------------ through the door

SHA = "ab" * 32
HONEST = JobCell(id="honest", plan=PLAN, testcase_sha256=digest_of(PLAN.testcase))
OTHER = msgspec.structs.replace(HONEST, id="other")
OUTCOMES = (Outcome.PASS, Outcome.PASS, Outcome.MATCH, Outcome.MATCH)
SEEN = tuple(observe(version, outcome) for version, outcome in zip(ORDER, OUTCOMES, strict=True))
TURNED = tuple(
    observe(version, Outcome.PASS if seen.answer is Answer.BAD else Outcome.MATCH, attempt=2)
    for version, seen in zip(ORDER, SEEN, strict=True)
)
TEXT = msgspec.json.encode(CellResult(cell="other", plan_sha256=SHA, seen=Investigation(observations=TURNED)))
ALONE = told(verdict_of(PLAN, SEEN))


def beside(data: bytes, name: str = "other.json") -> tuple[tuple[object, ...], list[str]]:
    """Return the verdict and the reasons of refusals for ``data`` beside the result of an honest cell."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        honest = CellResult(cell="honest", plan_sha256=SHA, seen=Investigation(observations=SEEN))
        (folder / "honest.json").write_bytes(msgspec.json.encode(honest))
        (folder / name).write_bytes(data)
        results = read_results(folder, (HONEST, OTHER), SHA)
    assert all(one.cell == "other" for one in results.problems)
    return told(verdict_of(PLAN, results.seen.observations)), [one.why for one in results.problems]


def test_a_whole_result_does_count() -> None:
    """Else the tests below could not fail: believed, this one contradicts the honest cell on each release."""
    verdict, refused = beside(TEXT)
    assert verdict[0] is VerdictKind.FLAKY
    assert refused == []


@given(end=st.integers(0, len(TEXT) - 1))
def test_a_result_cut_off_anywhere_is_refused(end: int) -> None:
    """With the reason, and the verdict is the one without it."""
    assert beside(TEXT[:end]) == (ALONE, ["the result does not follow the schema"])


@given(at=st.integers(0, len(TEXT) - 1), byte=st.integers(0, 255))
def test_a_damaged_byte_raises_no_error_and_spares_the_honest_cell(at: int, byte: int) -> None:
    """Refused with a reason, or still a result of its own cell, which then contradicts: never a sure verdict."""
    verdict, refused = beside(TEXT[:at] + bytes([byte]) + TEXT[at + 1 :])
    assert verdict == ALONE if refused else verdict[0] is VerdictKind.FLAKY


DEEP = b'{"observations":' * 50_000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (TEXT.replace(SHA.encode(), b"cd" * 32), "another plan"),
        (TEXT.replace(b'"other"', b'"nobody"'), "another cell"),
        (TEXT.replace(b'"other"', b'"honest"'), "another cell"),
        (TEXT + TEXT, "schema"),
        (b"not JSON", "schema"),
        (TEXT + b" " * MAX_RESULT_BYTES, "KiB"),
        (DEEP, "schema"),
        (TEXT.replace(b'"attempt":2', b'"attempt":"2"'), "schema"),
        (TEXT.replace(b'"1.3"', b'["1.3"]'), "schema"),
    ],
)
def test_late_foreign_duplicate_or_hostile_results_are_refused_with_a_reason(data: bytes, why: str) -> None:
    """And the verdict is the one without it."""
    verdict, refused = beside(data)
    assert verdict == ALONE
    assert len(refused) == 1
    assert why in refused[0]


def test_a_result_of_an_unplanned_cell_is_ignored() -> None:
    """A late file of a cell that this plan does not have."""
    verdict, refused = beside(TEXT, name="unplanned.json")
    assert verdict == ALONE
    assert refused == ["the job failed, was cancelled or ran out of time"]
