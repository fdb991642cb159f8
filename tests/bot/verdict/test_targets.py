"""A report that names no device: the failure may be one of another target than the usual one."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from bot.verdict.evidence import Evidence, Gaps
from bot.verdict.grounds import Ground
from bot.verdict.judge import judge
from bot.verdict.verdict import VerdictKind
from runners.core.protocol import Answer, Claim, ClaimKind, Observation, Outcome, Signature, Variant
from tests.support.observed import ORDER, PLAN, observe

BUFFERIZE = Signature(type="mlir-error", message="failed to bufferize op")
ASKED = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.ERROR, signature=BUFFERIZE))
CLEAN = tuple(observe(version, Outcome.PASS) for version in ORDER)


def compile_for(device: str, *outcomes: Outcome) -> tuple[Observation, ...]:
    return tuple(
        observe(version, outcome, device=device, variant=Variant.RETARGETED)
        for version, outcome in zip(ORDER, outcomes, strict=True)
    )


def make_evidence(*seen: Observation) -> Evidence:
    return Evidence(plan=ASKED, observations=(*CLEAN, *seen), findings=(), gaps=Gaps(assumed_device="llvm-cpu"))


def test_a_program_that_compiles_for_the_other_targets_too_is_not_reproduced() -> None:
    compiled = [*compile_for("hip", *[Outcome.COMPILED] * 4), *compile_for("cuda", *[Outcome.COMPILED] * 4)]
    verdict = judge(make_evidence(*compiled))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert verdict.confidence < 0.9
    assert Ground.DEVICE_NOT_NAMED in verdict.grounds
    assert "compiled for `hip` and `cuda`, it compiles as well" in verdict.headline


def test_a_compilation_is_no_clean_run() -> None:
    (compiled,) = compile_for("hip", *[Outcome.COMPILED] * 4)[:1]
    assert compiled.answer is Answer.SKIP


@pytest.mark.parametrize("end", [Outcome.INCOMPATIBLE, Outcome.UNAVAILABLE])
def test_a_build_without_the_other_target_or_its_flag_leaves_nothing_open(end: Outcome) -> None:
    """An early build lacks a target. Later ones compile for it."""
    verdict = judge(make_evidence(*compile_for("hip", end, Outcome.COMPILED, Outcome.COMPILED, Outcome.COMPILED)))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert "compiled for `hip`, it compiles as well" in verdict.headline
    assert judge(make_evidence(*compile_for("hip", *[end] * 4))).kind is VerdictKind.INCONCLUSIVE


@pytest.mark.parametrize("end", [Outcome.OTHER_FAILURE, Outcome.TIMEOUT])
def test_another_failure_on_another_target_leaves_the_question_open(end: Outcome) -> None:
    """The reported failure may be hidden behind it."""
    verdict = judge(make_evidence(*compile_for("hip", Outcome.COMPILED, end, Outcome.COMPILED, Outcome.COMPILED)))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert f"compiled for `hip`, {ORDER[1]}" in verdict.headline


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ((Outcome.PASS, Outcome.MATCH, Outcome.MATCH, Outcome.PASS), VerdictKind.FIXED),
        ((Outcome.PASS, Outcome.MATCH, Outcome.MATCH, Outcome.MATCH), VerdictKind.REGRESSION),
        ((Outcome.MATCH,) * 4, VerdictKind.CONFIRMED),
    ],
)
def test_the_reported_failure_on_another_target_decides(outcomes: tuple[Outcome, ...], kind: VerdictKind) -> None:
    verdict = judge(make_evidence(*compile_for("hip", *outcomes)))
    assert verdict.kind is kind
    assert "This is for `hip`" in verdict.headline


def test_a_failure_that_is_not_quoted_is_not_recognized_on_another_target() -> None:
    """A crash of some other target may be a limit of that target."""
    crash = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.CRASH))
    crashing = replace(make_evidence(*compile_for("hip", *[Outcome.MATCH] * 4)), plan=crash)
    assert crashing.follow_target() is crashing
    assert judge(crashing).kind is VerdictKind.INCONCLUSIVE
