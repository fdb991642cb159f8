"""What ended a step is read from its own record first: real scripts through the guest's runner, then the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.exception_chain import read_chain, read_exception
from runners.core.failure.oracle import Classification, OracleContext, classify_run
from runners.core.failure.parse import parse_signature
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Ended,
    Exited,
    Outcome,
    Raised,
    Record,
    Signalled,
    Signature,
    StepResult,
)
from runners.probe.guest_records import StepRecord, build_record
from runners.toolchains import ALL_FAILURES, tvm

LAUNCHER = Path("runners/guest/launch.py").resolve()
LOST = "the layout of the second operand is not what the first one asks for"
REPORTED = Claim(kind=ClaimKind.ERROR, signature=Signature(type="ValueError", message=LOST))
SHORT = Claim(kind=ClaimKind.ERROR, signature=Signature(type="KeyError", message="'a'"))
CATCHES_AND_PRINTS = """\
import traceback
try:
    {}["a"]
except KeyError:
    pass
class Late:
    def __del__(self):
        {}["a"]
late = Late()
raise RuntimeError("the tuner found nothing that runs")
"""
NESTED = f"""\
raise RuntimeError('''worker 3 failed:
Traceback (most recent call last):
  File "/site-packages/tvm/relax/a.py", line 3, in f
    g()
ValueError: {LOST}
''')
"""
CAUSE = f"try:\n    raise ValueError('{LOST}')\nexcept ValueError as e:\n    raise RuntimeError('no build') from e\n"
CONTEXT = CAUSE.replace(" from e", "")
HANDLED = f"try:\n    raise ValueError('{LOST}')\nexcept ValueError:\n    pass\nraise RuntimeError('no build')\n"


def run(folder: Path, text: str, *, keep: slice | None = None) -> StepResult:
    """The script as a probe runs it; ``keep``: the part of its output that is left when too much was printed."""
    (folder / "repro.py").write_text(text)
    claims, writes = os.pipe()
    stacks = os.open(os.devnull, os.O_WRONLY)
    words = [sys.executable, str(LAUNCHER), "script.run", f"{writes},{stacks},", "", "repro.py"]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, pass_fds=(writes, stacks), check=False, timeout=60
    )
    os.close(writes)
    os.close(stacks)
    with os.fdopen(claims) as stream:
        said = stream.read()
    whole = StepRecord(
        argv=("python", "repro.py"), status=0, timed_out=False, seconds=1.0, maxrss_bytes=0,
        stdout=done.stdout, stderr=done.stderr, truncated=False, claims=said,
    )  # fmt: skip
    return StepResult(
        argv=("python", "repro.py"),
        ended=Exited(code=done.returncode),
        stdout="" if keep else done.stdout,
        stderr=done.stderr[keep] if keep else done.stderr,
        truncated=keep is not None,
        record=build_record(whole, tvm.GUEST, script="repro.py"),
    )


def judge(step: StepResult, claim: Claim) -> Classification:
    return classify_run(step.ended, [step], OracleContext(claim=claim, vocabulary=ALL_FAILURES))


def without_record(step: StepResult) -> StepResult:
    return msgspec.structs.replace(step, record=None)


def test_output_of_the_shutdown_is_not_the_failure(tmp_path: Path) -> None:
    """An object's end, printed while the interpreter shuts down, is the last traceback and not the failure."""
    step = run(tmp_path, CATCHES_AND_PRINTS)
    assert step.stderr.index("the tuner found nothing") < step.stderr.index("KeyError")
    assert judge(without_record(step), SHORT).outcome is Outcome.MATCH  # what the output alone would say: wrong
    ruling = judge(step, SHORT)
    assert ruling.outcome is Outcome.OTHER_FAILURE
    assert ruling.signature is not None
    assert ruling.signature.type == "RuntimeError"


@pytest.mark.parametrize("told", ["invalid syntax (<unknown>, line 5)", "invalid syntax (line 5)", "invalid syntax"])
def test_a_syntax_error_has_the_message_that_its_traceback_prints(told: str) -> None:
    """The interpreter adds the place to ``str()`` of the exception, and prints it in a row of its own."""
    seen = read_exception(Raised(type="SyntaxError", message=told, frames=()), ALL_FAILURES)
    assert seen == Signature(type="SyntaxError", message="invalid syntax")


def test_a_traceback_inside_a_message_is_not_the_failure(tmp_path: Path) -> None:
    """The exception that quotes it ended the script; a report of the quoted one is still met."""
    step = run(tmp_path, NESTED)
    assert step.record is not None
    assert judge(step, Claim(kind=ClaimKind.ERROR)).signature == read_exception(step.record.chain[0], ALL_FAILURES)
    assert judge(step, REPORTED).outcome is Outcome.MATCH
    outer = Claim(kind=ClaimKind.ERROR, signature=Signature(type="RuntimeError", message="worker 3 failed:"))
    assert judge(step, outer).outcome is Outcome.MATCH
    assert judge(without_record(step), outer).outcome is Outcome.OTHER_FAILURE


@pytest.mark.parametrize(
    ("text", "outcome"), [(CAUSE, Outcome.MATCH), (CONTEXT, Outcome.MATCH), (HANDLED, Outcome.OTHER_FAILURE)]
)
def test_causes_count_and_handled_exceptions_do_not(tmp_path: Path, text: str, outcome: Outcome) -> None:
    """Only the last line of the output is left, so that the record decides."""
    step = run(tmp_path, text, keep=slice(-len("RuntimeError: no build\n"), None))
    assert LOST not in step.stderr
    ruling = judge(step, REPORTED)
    assert ruling.outcome is outcome
    if outcome is Outcome.MATCH:
        assert "led to RuntimeError" in ruling.why


EXPECTS = f"print('expected: {LOST}')\nraise RuntimeError('the tuner found nothing')\n"
LOGS = f"print('ValueError: {LOST}')\nraise RuntimeError('1 of 3 programs failed')\n"


@pytest.mark.parametrize(("text", "outcome"), [(EXPECTS, Outcome.OTHER_FAILURE), (LOGS, Outcome.MATCH)])
def test_printed_words_are_no_failure_if_a_record_exists(tmp_path: Path, text: str, outcome: Outcome) -> None:
    """One script announces the reported words and fails otherwise; another prints the failure itself."""
    step = run(tmp_path, text)
    assert judge(step, REPORTED).outcome is outcome
    assert judge(without_record(step), REPORTED).outcome is Outcome.MATCH  # the output alone cannot tell them apart


def test_a_diagnostic_that_a_worker_printed_is_still_found(tmp_path: Path) -> None:
    """The driver's own exception is recorded, the compiler's error only printed, by another process."""
    said = "a.mlir:2:3: error: 'flow.slice' op expected 2 offsets but got 3 of them"
    worker = f"print({said!r}); exit(1)"
    text = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {worker!r}], check=True)\n"
    step = run(tmp_path, text)
    claim = Signature(type="mlir-error", message="'flow.slice' op expected 2 offsets but got 3 of them")
    assert judge(step, Claim(kind=ClaimKind.ERROR, signature=claim)).outcome is Outcome.MATCH


def test_a_short_cause_is_too_unspecific_to_match(tmp_path: Path) -> None:
    """A KeyError that caused another failure is not the KeyError of the report."""
    step = run(tmp_path, "try:\n    {}['a']\nexcept KeyError as e:\n    raise RuntimeError('no build') from e\n")
    assert judge(step, SHORT).outcome is Outcome.OTHER_FAILURE


@pytest.mark.parametrize("keep", [slice(0, 30), slice(-40, None), slice(0, 0)], ids=["head", "tail", "nothing"])
def test_the_record_survives_flooded_output(tmp_path: Path, keep: slice) -> None:
    """The end of the traceback is cut off, or its beginning, or all of it."""
    step = run(tmp_path, f"print('x' * 3000)\nraise ValueError('{LOST}')\n", keep=keep)
    assert judge(step, REPORTED).outcome is Outcome.MATCH
    assert judge(without_record(step), REPORTED).outcome is not Outcome.MATCH


def test_the_output_counts_if_it_agrees_and_has_more_details(tmp_path: Path) -> None:
    """Lines that were printed above an exception are part of what it says."""
    text = (
        "class DiagnosticError(Exception): pass\nimport sys\nprint('error: no such op', file=sys.stderr)\n"
        "raise DiagnosticError('see above')\n"
    )
    seen = judge(run(tmp_path, text), Claim(kind=ClaimKind.ERROR)).signature
    assert seen is not None
    assert "no such op" in seen.message


def forged(ended: Ended, **changes: Any) -> StepResult:
    """A record that says what the report says, of a step that printed nothing."""
    chain = (Raised(type="ValueError", message=LOST),)
    given: dict[str, Any] = {"argv": ("python", "repro.py"), "ended": ended, "record": Record(chain=chain)}
    return StepResult(**{**given, **changes})


@pytest.mark.parametrize(
    "step",
    [
        forged(Exited(code=0)),
        forged(Exited(code=3)),
        forged(Signalled(code=11)),
        forged(Exited(code=139)),
        forged(Exited(code=1), argv=("iree-compile", "a.mlir")),
    ],
)
def test_a_record_is_ignored_unless_an_exception_ended_the_step(step: StepResult) -> None:
    """How a step ended is the host's word: a forged record matches no clean run, crash or other program."""
    assert read_chain(step.ended, [step], ALL_FAILURES) == ()
    assert judge(step, REPORTED).outcome is not Outcome.MATCH


NAMES = st.sampled_from(["ValueError", "a.b.InternalError", "f.<locals>.Odd", "**x**", "", "@all", "A\nB", "é"])
# Without the backtick, which the parser of reports takes for the end of quoted code.
MESSAGES = st.text(st.characters(exclude_characters="`"), max_size=200) | st.sampled_from(
    ["Traceback (most recent call last):\n", "\n\n", "A: \x1b[31m" * 9]
)


@given(chain=st.lists(st.builds(Raised, type=NAMES, message=MESSAGES), max_size=4))
def test_a_hostile_record_forges_no_more_than_its_output_could(chain: list[Raised]) -> None:
    """A type is a name, nothing longer than what an output yields; and a print of the same words matches as well."""
    step = forged(Exited(code=1), record=Record(chain=tuple(chain)))
    for one in read_chain(step.ended, [step], ALL_FAILURES):
        assert one.type.isidentifier()
        assert one.type.isascii()
        assert len(one.message) <= 1_000
        assert len(one.frames) <= 8
        printed = parse_signature(
            f"Traceback (most recent call last):\n{one.type}: {one.message}\n", ALL_FAILURES, Exited(code=1)
        )
        if one.type in ("ValueError", "InternalError") and one.message and printed is not None:
            assert compare_signatures(one, printed, ALL_FAILURES).score >= SAME or "Traceback" in one.message
    assert (
        classify_run(step.ended, [step], OracleContext(claim=REPORTED, vocabulary=ALL_FAILURES)).outcome
        is Outcome.OTHER_FAILURE
    )
