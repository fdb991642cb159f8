"""A report that quotes no failure, or no right value: what its own build and the newest release do decides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import msgspec
import pytest

from bot.verdict.evidence import Evidence, Gaps
from bot.verdict.grounds import Ground
from bot.verdict.judge import judge
from bot.verdict.verdict import VerdictKind
from runners.core.failure.oracle import OUTPUT
from runners.core.protocol import Claim, ClaimKind, Exited, Observation, Outcome, Plan, Signature, Variant
from tests.support.observed import ORDER, PLAN, observe

TODAY, LONG_AGO = date(2026, 10, 1), date(2020, 1, 1)
REPORTED = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.ERROR), reported="1.2", day=TODAY)
SAME = Signature(type="InternalError", message="cannot bind axis 3 of the fused loop")
OTHER = Signature(type="InternalError", message="unknown memory scope in the lowered body")
CLEAN = None
Seen = Sequence[Signature | None]


def _judge(plan: Plan, signatures: Seen, code: int = 1) -> VerdictKind:
    return judge(Evidence(plan=plan, observations=tuple(_observe(signatures, code)), findings=())).kind


def _lean(plan: Plan, signatures: Seen) -> VerdictKind:
    """Return the verdict, also if its confidence is too low to be stated."""
    verdict = judge(Evidence(plan=plan, observations=tuple(_observe(signatures, 1)), findings=()))
    return verdict.leaning or verdict.kind


def _observe(signatures: Seen, code: int) -> list[Observation]:
    return [
        observe(version, Outcome.PASS)
        if one is CLEAN
        else observe(version, Outcome.OTHER_FAILURE, signature=one, ended=Exited(code=code))
        for version, one in zip(ORDER, signatures, strict=True)
    ]


@pytest.mark.parametrize(
    ("signatures", "kind"),
    [
        ((OTHER, OTHER, SAME, SAME), VerdictKind.CONFIRMED),
        ((SAME, SAME, SAME, SAME), VerdictKind.CONFIRMED),
        ((CLEAN, SAME, SAME, SAME), VerdictKind.REGRESSION),
        ((CLEAN, SAME, SAME, CLEAN), VerdictKind.FIXED),
        ((SAME, SAME, SAME, OTHER), VerdictKind.INCONCLUSIVE),
        ((SAME, SAME, CLEAN, SAME), VerdictKind.INCONCLUSIVE),
    ],
)
def test_the_error_of_the_reported_build_on_the_newest_release_is_the_reported_one(
    signatures: Seen, kind: VerdictKind
) -> None:
    assert _judge(REPORTED, signatures) is kind


def test_a_failure_in_a_picture_is_known_by_a_name_that_the_report_has_too() -> None:
    """What stands in a picture may be any failure. A fix needs no such name: the builds behave differently."""
    named = Signature(type="mlir-error", message="'tensor.unfold' op has no lowering for dynamic sizes")
    told = msgspec.structs.replace(REPORTED.claim, told="The lowering of tensor.unfold fails.\nSee the screenshot.")
    about = msgspec.structs.replace(REPORTED, claim=told)
    cases = [(about, named, True), (REPORTED, named, False), (about, SAME, False)]
    for plan, signature, identified in cases:
        seen = tuple(_observe([signature] * 4, 1))
        verdict = judge(Evidence(plan=plan, observations=seen, findings=(), gaps=Gaps(shows_elsewhere=True)))
        assert (verdict.kind is VerdictKind.CONFIRMED) is identified
    assert "only in a picture or behind a link" in verdict.headline
    fixed = tuple(_observe((SAME, SAME, SAME, CLEAN), 1))
    assert judge(Evidence(plan=REPORTED, observations=fixed, findings=(), gaps=Gaps(shows_elsewhere=True))).kind is (
        VerdictKind.FIXED
    )


def test_an_error_that_asks_for_another_pass_first_is_no_failure_of_the_compiler() -> None:
    asks = Signature(type="mlir-error", message="no layout found. The AssignLayoutsPass must be run before.")
    assert _judge(REPORTED, [asks] * 4) is VerdictKind.INCONCLUSIVE


@pytest.mark.parametrize(
    "plan",
    [
        msgspec.structs.replace(REPORTED, day=LONG_AGO),
        msgspec.structs.replace(REPORTED, reported=None),
        msgspec.structs.replace(REPORTED, claim=Claim(kind=ClaimKind.ERROR, versions=("0.3",))),
        msgspec.structs.replace(REPORTED, claim=Claim(kind=ClaimKind.CRASH)),
        msgspec.structs.replace(REPORTED, claim=Claim(kind=ClaimKind.UNKNOWN)),
        msgspec.structs.replace(REPORTED, claim=Claim(kind=ClaimKind.ERROR, told="It says Check failed: n < 3")),
    ],
    ids=["before-all-builds", "no-build", "another-build", "a-crash", "no-claim", "another-message"],
)
def test_without_the_reporters_build_an_error_is_not_taken_for_the_reported_one(plan: Plan) -> None:
    assert _judge(plan, (SAME,) * 4) is not VerdictKind.CONFIRMED


ABORT = Signature(type="SIGABRT", message="Failed to infer result types.")


@pytest.mark.parametrize(
    ("crash", "signatures", "kind"),
    [
        (Signature(type="SIGSEGV"), (ABORT, ABORT, ABORT, CLEAN), VerdictKind.FIXED),
        (Signature(type="SIGSEGV"), (ABORT, ABORT, SAME, CLEAN), VerdictKind.INCONCLUSIVE),
        (Signature(type="SIGSEGV"), (ABORT, ABORT, Signature(type="SIGILL"), CLEAN), VerdictKind.INCONCLUSIVE),
        (Signature(type="SIGSEGV"), (SAME, SAME, SAME, CLEAN), VerdictKind.INCONCLUSIVE),
        (Signature(type="SIGSEGV"), (ABORT, ABORT, ABORT, ABORT), VerdictKind.INCONCLUSIVE),
        (Signature(type="SIGSEGV"), (ABORT, ABORT, CLEAN, CLEAN), VerdictKind.NOT_REPRODUCED),
        (
            Signature(type="SIGSEGV", message="invalid operand number"),
            (ABORT, ABORT, ABORT, CLEAN),
            VerdictKind.INCONCLUSIVE,
        ),
        (Signature(type="SIGSEGV", frames=("fold::run",)), (ABORT, ABORT, ABORT, CLEAN), VerdictKind.INCONCLUSIVE),
    ],
    ids=[
        "another-signal",
        "an-error-at-home",
        "another-processor",
        "an-error",
        "on-every-build",
        "clean-at-home",
        "another-message",
        "with-a-stack",
    ],
)
def test_a_signal_alone_stands_for_any_crash_that_newer_builds_lack(
    crash: Signature, signatures: Seen, kind: VerdictKind
) -> None:
    """Builds with assertions abort where others segfault."""
    plan = msgspec.structs.replace(REPORTED, claim=Claim(kind=ClaimKind.CRASH, signature=crash))
    assert _judge(plan, signatures) is kind


def test_builds_after_the_crash_may_fail_in_another_way() -> None:
    claim = Claim(kind=ClaimKind.CRASH, signature=Signature(type="SIGSEGV"))
    plan = msgspec.structs.replace(REPORTED, claim=claim, reported="1.1")
    assert _judge(plan, (ABORT, ABORT, SAME, CLEAN)) is VerdictKind.FIXED


@pytest.mark.parametrize("name", ["NameError", "TypeError", "FileNotFoundError"])
def test_an_error_that_the_testcase_may_cause_is_not_taken_for_the_reported_one(name: str) -> None:
    assert _judge(REPORTED, (Signature(type=name, message="axis of the fused loop"),) * 4) is VerdictKind.INCONCLUSIVE


def test_a_run_that_ends_with_an_error_is_no_hang() -> None:
    """Such a report has no message to quote."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.HANG))
    assert _judge(plan, (SAME,) * 4) is VerdictKind.INCONCLUSIVE


def _print(text: str) -> Signature:
    return Signature(type=OUTPUT, message=text)


WRONG = "[2.00000047e+000 5.32571209e-315 0.0]"
VALUES = Claim(kind=ClaimKind.WRONG_RESULT, signature=_print(WRONG), actual=WRONG)
OLD = msgspec.structs.replace(PLAN, claim=VALUES, reported="1.0", day=LONG_AGO)


def test_an_old_wrong_output_that_no_build_prints_is_not_reproduced() -> None:
    """All builds agree on one output of the same form."""
    assert _judge(OLD, (_print("[ 1 2 3 ]"),) * 4, code=0) is VerdictKind.NOT_REPRODUCED


def test_a_wrong_output_that_its_named_release_does_not_print_is_not_reproduced() -> None:
    """A person would say the same: here it prints another output, on that release too."""
    named = msgspec.structs.replace(OLD, claim=msgspec.structs.replace(VALUES, versions=("1.2",)), reported="1.2")
    assert _judge(msgspec.structs.replace(named, day=TODAY), (_print("[1 2 3]"),) * 4, code=0) is (
        VerdictKind.NOT_REPRODUCED
    )


@pytest.mark.parametrize(
    ("plan", "printed"),
    [
        (OLD, ("[1 2 3]", "[1 2 3]", "[1 2 4]", "[1 2 3]")),
        (OLD, ("largest difference 3",) * 4),
        (OLD, ("[1 2]",) * 4),
        (msgspec.structs.replace(OLD, day=TODAY), ("[1 2 3]",) * 4),
        (
            msgspec.structs.replace(OLD, claim=msgspec.structs.replace(VALUES, expected="[0 0 0]")),
            ("[1 2 3]",) * 4,
        ),
    ],
    ids=["builds-differ", "another-form", "another-length", "the-build-is-here", "another-is-expected"],
)
def test_other_values_alone_show_nothing(plan: Plan, printed: Sequence[str]) -> None:
    """They may be wrong as well."""
    assert _judge(plan, [_print(text) for text in printed], code=0) is VerdictKind.INCONCLUSIVE


@pytest.mark.parametrize(("notation_only", "kind"), [(True, VerdictKind.FIXED), (False, VerdictKind.INCONCLUSIVE)])
def test_a_fix_shows_in_the_notation_of_a_release_that_no_longer_reads_the_text(
    *, notation_only: bool, kind: VerdictKind
) -> None:
    """A port to another API may do something else, so its clean run is no fix."""
    seen = (
        observe("1.0", Outcome.PASS),
        *(observe(version, Outcome.OTHER_FAILURE, signature=SAME) for version in ("1.1", "1.2")),
        observe("1.3", Outcome.INCOMPATIBLE),
        observe("1.3", Outcome.PASS, variant=Variant.PORTED, notation_only=notation_only, changes=("a → b",)),
    )
    assert judge(Evidence(plan=REPORTED, observations=seen, findings=())).kind is kind


def test_clean_runs_elsewhere_do_not_outweigh_a_failing_build_of_the_reports_time() -> None:
    """The report quotes a message; its own build fails with another message, and the other builds run cleanly."""
    plan = msgspec.structs.replace(PLAN, reported="1.2", day=TODAY)
    assert _judge(plan, (CLEAN, CLEAN, OTHER, CLEAN)) is VerdictKind.INCONCLUSIVE


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (Claim(kind=ClaimKind.ERROR, signature=Signature(type="status:UNAVAILABLE")), VerdictKind.UNTESTABLE),
        (Claim(kind=ClaimKind.WRONG_RESULT, actual="1 2", expected="3 4"), VerdictKind.UNTESTABLE),
        (
            Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message="x")),
            VerdictKind.NOT_REPRODUCED,
        ),
    ],
)
def test_a_driver_on_the_processor_answers_for_the_compiler_alone(claim: Claim, kind: VerdictKind) -> None:
    """The reported driver has other limits than the software that stands in for it."""
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain="iree")
    plan = msgspec.structs.replace(PLAN, claim=claim, testcase=testcase, device="vulkan", reported="1.2")
    seen = tuple(
        observe(version, Outcome.PASS, device="vulkan", toolchain="iree", driver="lavapipe") for version in ORDER
    )
    verdict = judge(Evidence(plan=plan, observations=seen, findings=()))
    assert verdict.kind is kind
    assert kind is not VerdictKind.UNTESTABLE or "lavapipe" in verdict.headline


def test_a_text_that_the_reported_build_refuses_did_not_fail_there_as_reported() -> None:
    """Ported, it runs cleanly: the refusal says nothing about the failure that the report does not quote."""
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain="iree")
    claim = Claim(kind=ClaimKind.CRASH)
    plan = msgspec.structs.replace(REPORTED, testcase=testcase, claim=claim, device="llvm-cpu")
    refusal = Signature(type="ValueError", message="For input_type= argument, expected one of: NONE, AUTO")
    refused = [
        observe(one, Outcome.OTHER_FAILURE, signature=refusal, toolchain="iree", device="llvm-cpu") for one in ORDER
    ]
    ported = [
        observe(
            one,
            Outcome.PASS,
            variant=Variant.PORTED,
            notation_only=True,
            changes=("a → b",),
            toolchain="iree",
            device="llvm-cpu",
        )
        for one in ("1.2", ORDER[-1])
    ]
    verdict = judge(Evidence(plan=plan, observations=(*refused, *ported), findings=()))
    assert verdict.kind is not VerdictKind.FIXED, verdict.headline


# ------------------------------------------------------------------------------------- builds around the report

BETWEEN = msgspec.structs.replace(
    REPORTED, claim=Claim(kind=ClaimKind.ERROR, told="`vector.gather` of i4 does not compile"), reported="1.0"
)
NAMED = Signature(type="mlir-error", message="failed to legalize operation 'vector.gather'")
UNNAMED = Signature(type="mlir-error", message="failed to legalize operation 'tensor.pad'")


@pytest.mark.parametrize(
    ("signatures", "kind"),
    [
        ((CLEAN, NAMED, CLEAN, CLEAN), VerdictKind.FIXED),
        ((CLEAN, NAMED, NAMED, CLEAN), VerdictKind.FIXED),
        ((CLEAN, UNNAMED, CLEAN, CLEAN), VerdictKind.INCONCLUSIVE),
        ((CLEAN, NAMED, UNNAMED, CLEAN), VerdictKind.FIXED),
        ((CLEAN, CLEAN, NAMED, CLEAN), VerdictKind.NOT_REPRODUCED),
    ],
)
def test_a_report_between_two_builds_may_be_about_the_second(signatures: Seen, kind: VerdictKind) -> None:
    """It names no build. The error of the second build decides if it names what the report names."""
    assert _lean(BETWEEN, signatures) is kind


def test_a_report_that_names_its_build_is_about_no_later_one() -> None:
    claim = msgspec.structs.replace(BETWEEN.claim, versions=("1.0",))
    named = msgspec.structs.replace(BETWEEN, claim=claim)
    assert _lean(named, (CLEAN, NAMED, CLEAN, CLEAN)) is VerdictKind.NOT_REPRODUCED


def test_the_failure_of_the_reported_build_counts_in_its_own_notation() -> None:
    """The build reads the posted text only with a flag; the newest release reads it as posted."""
    refused = observe("1.0", Outcome.INCOMPATIBLE)
    ported = observe("1.0", Outcome.OTHER_FAILURE, signature=SAME, variant=Variant.PORTED, notation_only=True)
    clean = [observe(version, Outcome.PASS) for version in ORDER[1:]]
    plan = msgspec.structs.replace(REPORTED, reported="1.0")
    verdict = judge(Evidence(plan=plan, observations=(refused, ported, *clean), findings=()))
    assert verdict.kind is VerdictKind.FIXED
    other = msgspec.structs.replace(ported, notation_only=False)
    verdict = judge(Evidence(plan=plan, observations=(refused, other, *clean), findings=()))
    assert verdict.kind is not VerdictKind.FIXED


def test_the_quoted_failure_of_early_builds_in_their_notation_is_fixed_where_later_ones_run_the_text() -> None:
    refused = observe("1.0", Outcome.INCOMPATIBLE)
    ported = observe("1.0", Outcome.MATCH, signature=SAME, variant=Variant.PORTED, notation_only=True)
    clean = [observe(version, Outcome.PASS) for version in ORDER[1:]]
    evidence = Evidence(plan=PLAN, observations=(refused, ported, *clean), findings=())
    assert judge(evidence).kind is VerdictKind.FIXED
    unfixed = [*clean[:-1], observe(ORDER[-1], Outcome.OTHER_FAILURE, signature=OTHER)]
    evidence = Evidence(plan=PLAN, observations=(refused, ported, *unfixed), findings=())
    assert judge(evidence).kind is not VerdictKind.FIXED


# ------------------------------------------------------------------------------------- builds with a date

DATED = ("20230815.614", "20231113.707", "20240621.931", "3.13.0")
QUOTED = Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message="no lowering for this gather"))


@pytest.mark.parametrize(
    ("day", "claim", "seen", "kind"),
    [
        (date(2023, 9, 1), QUOTED, (SAME, CLEAN, CLEAN, CLEAN), VerdictKind.INCONCLUSIVE),
        (date(2023, 11, 1), QUOTED, (SAME, CLEAN, CLEAN, CLEAN), VerdictKind.NOT_REPRODUCED),
        (date(2023, 9, 1), REPORTED.claim, (SAME, SAME, SAME, SAME), VerdictKind.CONFIRMED),
        (date(2023, 11, 1), REPORTED.claim, (SAME, SAME, SAME, SAME), VerdictKind.INCONCLUSIVE),
    ],
    ids=["near, other message", "far, other message", "near, no message", "far, no message"],
)
def test_an_early_build_stands_for_the_reporters_own_for_some_weeks(
    day: date, claim: Claim, seen: Seen, kind: VerdictKind
) -> None:
    plan = msgspec.structs.replace(
        PLAN,
        testcase=msgspec.structs.replace(PLAN.testcase, toolchain="iree"),
        claim=claim, order=DATED, first=DATED, reported=DATED[0], day=day, device="llvm-cpu",
    )  # fmt: skip
    runs = tuple(
        msgspec.structs.replace(run, version=version, toolchain="iree", device="llvm-cpu")
        for run, version in zip(_observe(seen, 1), DATED, strict=True)
    )
    assert judge(Evidence(plan=plan, observations=runs, findings=())).kind is kind


@pytest.mark.parametrize(
    ("toolchain", "message", "weakened"),
    [
        ("iree", 'index < size() && "out of range"', True),
        ("iree", "!empty()", True),
        ("iree", "Cannot select the instruction of this node", False),
        ("tvm", 'index < size() && "out of range"', False),
    ],
)
def test_clean_releases_without_assertions_say_less_of_an_assertion(
    toolchain: str, message: str, *, weakened: bool
) -> None:
    """IREE's releases are built without. A fatal error shows in any build."""
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain=toolchain)
    claim = Claim(kind=ClaimKind.CRASH, signature=Signature(type="SIGABRT", message=message))
    plan = msgspec.structs.replace(PLAN, testcase=testcase, claim=claim)
    verdict = judge(Evidence(plan=plan, observations=tuple(_observe((CLEAN,) * 4, 0)), findings=()))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert any("without assertions" in reason for reason in verdict.reasons) is weakened
    assert (Ground.KIND_ONLY in verdict.grounds) is weakened


@pytest.mark.parametrize(
    ("signatures", "kind"),
    [
        ((CLEAN, NAMED, NAMED, CLEAN), VerdictKind.FIXED),
        ((NAMED, NAMED, NAMED, NAMED), VerdictKind.CONFIRMED),
        ((CLEAN, UNNAMED, UNNAMED, CLEAN), VerdictKind.INCOMPLETE),
        ((UNNAMED, UNNAMED, UNNAMED, UNNAMED), VerdictKind.INCOMPLETE),
        ((CLEAN, CLEAN, CLEAN, CLEAN), VerdictKind.INCOMPLETE),
    ],
)
def test_a_command_that_breaks_off_is_decided_by_an_error_that_names_what_the_report_names(
    signatures: Seen, kind: VerdictKind
) -> None:
    """The report quotes no failure. An error about something else may come from the flags that are missing."""
    plan = msgspec.structs.replace(BETWEEN, reported="1.2")
    seen = Evidence(
        plan=plan, observations=tuple(_observe(signatures, 1)), findings=(), gaps=Gaps(has_open_command=True)
    )
    verdict = judge(seen)
    assert verdict.kind is kind
    assert (Ground.UNQUOTED in verdict.grounds) is (kind is not VerdictKind.INCOMPLETE)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("%0 = stablehlo.convolution(%a, %b)", VerdictKind.FIXED),
        ("%0 = linalg.conv_2d_nhwc_hwcf ins(%a, %b)", VerdictKind.NOT_REPRODUCED),
        ("%0 = conv_2d_nhwc_hwcf %a, %b", VerdictKind.NOT_REPRODUCED),
    ],
    ids=["made-by-the-compiler", "in-the-text", "in-the-text-without-its-dialect"],
)
def test_a_verifier_that_refuses_what_the_compiler_made_is_a_failure(text: str, kind: VerdictKind) -> None:
    """A refused operation of the text itself may be one that this build writes in another way."""
    testcase = msgspec.structs.replace(PLAN.testcase, toolchain="iree", files={"a.mlir": text})
    plan = msgspec.structs.replace(REPORTED, testcase=testcase)
    refused = Signature(
        type="mlir-error", message="'linalg.conv_2d_nhwc_hwcf' op attribute 'strides' failed to satisfy"
    )
    assert (_judge(plan, (refused, refused, refused, CLEAN)) is VerdictKind.FIXED) is (kind is VerdictKind.FIXED)
    # Builds before and after it read the text: its notation is not what this build refuses.
    assert _judge(plan, (CLEAN, CLEAN, refused, CLEAN)) is VerdictKind.FIXED


def test_clean_runs_on_linux_do_not_clear_another_system() -> None:
    """A failure on Linux answers a report about another system like any other."""
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.ERROR, system="macOS"))
    clean = judge(Evidence(plan=plan, observations=tuple(_observe((CLEAN,) * 4, 0)), findings=()))
    assert (clean.kind, clean.leaning) == (VerdictKind.INCONCLUSIVE, VerdictKind.NOT_REPRODUCED)
    assert "about `macOS`, which no run here used" in clean.headline
