"""The decision table of docs/verdicts.md, made by asking the judge: ``python -m tests.bot.verdict.verdict_table``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bot.verdict.evidence import Evidence
from bot.verdict.judge import judge
from runners.core.protocol import (
    SAID_TO_WORK,
    Claim,
    ClaimKind,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
)
from tests.support.observed import observe

DOCUMENT = Path(__file__).parents[3] / "docs" / "verdicts.md"
BEGIN, END = "<!-- made by tests/bot/verdict/verdict_table.py: begin -->", "<!-- end -->"

ORDER = ("old", "reported", "newest")
M, P = Outcome.MATCH, Outcome.PASS
F, I, U, T = Outcome.OTHER_FAILURE, Outcome.INCOMPATIBLE, Outcome.UNAVAILABLE, Outcome.TIMEOUT  # noqa: E741 -- a row reads by letters
ROWS: tuple[tuple[tuple[Outcome, Outcome, Outcome], Outcome | None], ...] = (
    ((M, M, M), None),
    ((P, M, M), None),
    ((M, M, P), None),
    ((P, M, P), None),
    ((M, P, P), None),
    ((I, M, M), None),
    ((M, M, F), None),
    ((M, M, I), None),
    ((M, M, I), M),
    ((M, M, I), P),
    ((I, I, I), None),
    ((I, I, I), M),
    ((P, P, P), None),
    ((P, P, I), None),
    ((P, P, I), P),
    ((P, F, P), None),
    ((F, F, F), None),
    ((F, I, I), None),
    ((U, U, U), None),
    ((T, T, T), None),
)
"""What the oldest, the reported and the newest release showed, and the newest when the testcase was ported to it."""

PLAN = Plan(
    testcase=Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": ""}, steps=(("python", "a.py"),)),
    claim=Claim(
        kind=ClaimKind.ERROR, signature=Signature(type="InternalError", message="no slot"), versions=("1.0",)
    ),
    device="llvm",
    order=ORDER,
    first=ORDER,
    reported="reported",
)


def table() -> str:
    lines = [
        "| oldest | reported | newest | newest, ported | verdict | confidence |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for outcomes, ported in ROWS:
        cells = [*map(str, outcomes), str(ported or "")]
        lines.append(_row(cells, PLAN, _observations(outcomes, ported)))
    lines += [_row(cells, plan, seen) for cells, plan, seen in _more()]
    lines += ["", "Verdicts for a failure of every release, with a finding:", "", *_found()]
    return "\n".join(lines)


def _row(cells: list[str], plan: Plan, seen: list[Observation]) -> str:
    verdict = judge(Evidence(plan=plan, observations=tuple(seen), findings=()))
    return f"| {' | '.join(cells)} | `{verdict.kind}` | {verdict.confidence:.2f} |"


def _more() -> list[tuple[list[str], Plan, list[Observation]]]:
    """What outcomes alone do not tell: a newest release that refuses cleanly, and the reporter's own control."""
    wrong = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT, actual="1 2", versions=("1.0",)))
    said = Signature(type="ValueError", message="axis 3 is out of range")
    refused = [
        msgspec.structs.replace(seen, signature=said) if seen.outcome is F else seen
        for seen in _observations((M, M, F), None)
    ]
    rows = [(["match (wrong result)", "match", "refuses cleanly", ""], wrong, refused)]
    for outcome, words in ((P, "the reporter's control: pass"), (M, "the reporter's control: match")):
        control = observe("newest", outcome, variant=Variant.CONTROL, changes=(SAID_TO_WORK,))
        rows.append((["pass", "match", f"match; {words}", ""], PLAN, [*_observations((P, M, M), None), control]))
    unread = [*_observations((I, I, I), None), observe("newest", P, variant=Variant.PORTED, notation_only=True)]
    return [*rows, (["incompatible"] * 3 + ["pass, the same program"], PLAN, unread), *_repeated()]


def _repeated() -> list[tuple[list[str], Plan, list[Observation]]]:
    """The newest release run a third time, and clean then."""
    clean = observe("newest", P, attempt=3)
    return [(["match", "match", "match, and pass", ""], PLAN, [*_observations((M, M, M), None), clean])]


def _found() -> list[str]:
    """What a finding of the newest release adds, where its runs agree and where they do not."""
    lines = ["| finding | all runs fail as reported | one of three is clean |", "| --- | --- | --- |"]
    agree = _observations((M, M, M), None)
    for words, finding in FINDINGS:
        cells = []
        for seen in (agree, [*agree, observe("newest", P, attempt=3)]):
            verdict = judge(Evidence(plan=PLAN, observations=tuple(seen), findings=(finding,)))
            cells.append(f"`{verdict.kind}` {verdict.confidence:.2f}")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return lines


def _finding(kind: FindingKind, **evidence: str) -> Finding:
    return Finding(kind=kind, summary="seen", evidence={"version": "newest", **evidence})


FINDINGS = (
    ("the result depends on the content of new memory", _finding(FindingKind.NONDETERMINISTIC, cause="memory")),
    ("the result depends on the number of threads", _finding(FindingKind.NONDETERMINISTIC, cause="threads")),
    ("the result depends on the hash seed", _finding(FindingKind.NONDETERMINISTIC, cause="hashes")),
    (
        "runs with two threads differ, runs with one thread agree",
        _finding(FindingKind.NONDETERMINISTIC, cause="race"),
    ),
    ("runs under the same conditions end differently", _finding(FindingKind.NONDETERMINISTIC, cause="unknown")),
    ("the testcase draws random numbers without a seed", _finding(FindingKind.NONDETERMINISTIC, cause="randomness")),
    ("the testcase reads outside its own tensor", _finding(FindingKind.OUT_OF_BOUNDS_ACCESS, origin="testcase")),
    (
        "the testcase reads memory that it never wrote, and the value decides",
        _finding(FindingKind.UNINITIALIZED_READ, origin="testcase"),
    ),
    (
        "the testcase reads memory that it never wrote, and fails anyway",
        _finding(FindingKind.UNINITIALIZED_READ, origin="unknown"),
    ),
    ("the testcase runs cleanly with a forgotten import added", _finding(FindingKind.MISSING)),
)


def _observations(outcomes: tuple[Outcome, ...], ported: Outcome | None) -> list[Observation]:
    """Every release that answers is run twice, as the executor does with those that the answer rests on."""
    seen = [
        observe(version, outcome, attempt=attempt)
        for version, outcome in zip(ORDER, outcomes, strict=True)
        for attempt in (1, 2)
    ]
    return [*seen, observe(ORDER[-1], ported, variant=Variant.PORTED)] if ported else seen


def with_table(text: str) -> str:
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
