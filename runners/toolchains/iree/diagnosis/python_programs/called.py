"""Turn the calls of a Python program into commands, for the diagnosers that read inputs on a command line.

The guest (``guest/iree/record_calls.py``) records the arguments and the results of each call. The record is a claim:
the host runs the program's module with these arguments by ``iree-run-module``. A check of results continues only if
the command prints what the program got. If it prints another value, and the definitions agree with the command, then
the call from Python is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated

import msgspec

from runners.core.failure.oracle import is_about_values
from runners.core.failure.printed.lines.tokens import list_numbers, split_lines
from runners.core.findings.kinds import Reference, Vote
from runners.core.findings.questions import get_version, get_vote
from runners.core.findings.record import make_finding
from runners.core.findings.types import ReferenceEvidence
from runners.core.protocol import Exited, Finding, Observation, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.guest import make_launch_step
from runners.toolchains.iree.diagnosis.python_programs.embedded import (
    MAX_CHARS,
    EmbeddedModule,
    find_composer,
    list_embedded,
    list_read,
    make_composed,
)
from runners.toolchains.iree.reports.inputs import list_functions

Diagnose = Callable[[Failure, Means], Diagnosis]
_PROGRAM = "iree.record_calls"
MAX_LINES, MAX_LINE_CHARS, MAX_COMMANDS = 12, 512 * 1024, 8
MAX_WORD = 120_000
"""Maximum length of a value: Linux allows 128 KiB for one word of a command."""
MAX_SHOWN = 400
"""Most elements of a result that a run's excerpt surely contains. The command compares larger results."""
_Value = Annotated[
    str, msgspec.Meta(max_length=MAX_WORD, pattern=r"^(?:(?:\d{1,9}x){0,8}(?:f|u?i)\d{1,2}=)?[-+\w. ]*$")
]


class _Call(msgspec.Struct, frozen=True, tag_field="kind", tag="call"):
    """The guest's claim of a call. Other fields are ignored."""

    function: Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[\w$.-]+$")]
    inputs: Annotated[tuple[_Value, ...], msgspec.Meta(max_length=16)]
    results: Annotated[tuple[_Value, ...], msgspec.Meta(max_length=16)]


class _Module(msgspec.Struct, frozen=True, tag_field="kind", tag="module"):
    """The guest's claim of a text that the program compiles."""

    text: Annotated[str, msgspec.Meta(max_length=MAX_CHARS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCheck:
    """A diagnoser of commands with inputs."""

    diagnose: Diagnose
    same_values: bool
    """True if it examines the printed results, so that they must equal the program's. Values that are read out of
    bounds differ between processes."""


def read_called(*checks: CommandCheck) -> Diagnose:
    """Return the diagnoser of Python programs that passes each of their calls to the checks as a command.

    A reference that agrees with one call proves nothing about the others. It must agree with all.
    """

    def diagnose_calls(failure: Failure, means: Means) -> Diagnosis:
        if len(failure.testcase.steps) != 1 or not is_about_values(failure.seen):
            return NOTHING_FOUND
        recorded = _record_calls(failure, means)
        if recorded is None:
            return NOTHING_FOUND
        commands = [_make_command(module, call) for module, call in recorded.calls]
        controls = [
            means.run(failure.seen.version, Variant.CONTROL, command, failure.seen.device) for command in commands
        ]
        for check in checks:
            agreeing: list[Finding] = []
            for (_, call), command, seen in zip(recorded.calls, commands, tuple(controls), strict=False):
                ended_well = seen.ended == Exited(code=0)
                if not (ended_well if check.same_values else isinstance(seen.ended, Exited)):
                    continue
                shown = _show_results(seen, call)
                found = check.diagnose(replace(failure, testcase=command, seen=shown), means)
                if check.same_values and not _prints_results(shown, call):
                    found = _compare_program(found, shown, call, failure.seen)
                controls += found.controls
                if any(get_vote(one) is not Vote.AGREES for one in found.findings):
                    return replace(found, controls=tuple(controls))
                agreeing += found.findings
            if agreeing and recorded.whole and len(agreeing) == len(recorded.calls):
                return Diagnosis(controls=tuple(controls), findings=(agreeing[0],))
        return Diagnosis(controls=tuple(controls)) if controls else NOTHING_FOUND

    return diagnose_calls


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    calls: tuple[tuple[EmbeddedModule, _Call], ...]
    """Each call with its module."""
    whole: bool
    """True if these are all calls of the program."""


def _record_calls(failure: Failure, means: Means) -> _Recorded | None:
    """Return different calls of the functions of a program's modules. None if their modules are uncertain."""
    given = list_embedded(failure.testcase) or list_read(failure.testcase)
    source = given[0].source if given else find_composer(failure.testcase)
    if len(given) > 1 or source is None:
        return None
    asking = msgspec.structs.replace(failure.testcase, steps=(make_launch_step(_PROGRAM, source),))
    lines = means.run_hook(failure.seen.version, asking).splitlines()
    read = [_read_line(line) for line in lines[: MAX_LINES + 1]]
    if given:
        told = [(given[0], one) for one in read if not isinstance(one, _Module)]
    else:
        texts = _match_modules(read)
        if texts is None:
            return None
        told = [(make_composed(failure.testcase, source, text), one) for text, one in texts]
    claimed = {(module.text, call): module for module, call in told}
    known = [
        (module, call)
        for (_, call), module in claimed.items()
        if call is not None and call.function in {one.name for one in list_functions(module.text) if not one.private}
    ]
    whole = len(lines) <= MAX_LINES and len(known) == len(claimed) <= MAX_COMMANDS
    return _Recorded(calls=tuple(known[:MAX_COMMANDS]), whole=whole)


def _match_modules(read: Sequence[_Call | _Module | None]) -> list[tuple[str, _Call | None]] | None:
    """Return each call with the last module that the program compiled before it.

    None if two modules are compiled before a call, because it may belong to either.
    """
    matched: list[tuple[str, _Call | None]] = []
    text, called = "", True
    for one in read:
        if isinstance(one, _Module):
            if not called and one.text != text:
                return None
            text, called = one.text, False
        elif not text:
            return None
        else:
            matched.append((text, one))
            called = True
    return matched


def _read_line(line: str) -> _Call | _Module | None:
    try:
        return msgspec.json.decode(line[:MAX_LINE_CHARS], type=_Call | _Module)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _make_command(module: EmbeddedModule, call: _Call) -> Testcase:
    """Return the command lines that compile the module and make the same call.

    If results are too large to be shown, the command compares them with the program's. It fails if they differ.
    """
    compiled = f"{module.source}.vmfb"
    compared = tuple(f"--expected_output={value}" for value in call.results) if _is_large(call) else ()
    running = ("iree-run-module", f"--module={compiled}", "--device=local-task", f"--function={call.function}")
    return msgspec.structs.replace(
        module.program,
        kind=TestcaseKind.COMMAND_LINE,
        files={module.file: module.text},
        steps=(
            ("iree-compile", *module.flags, module.file, "-o", compiled),
            (*running, *(f"--input={value}" for value in call.inputs), *compared),
        ),
    )


def _compare_program(found: Diagnosis, seen: Observation, call: _Call, program: Observation) -> Diagnosis:
    """Return the vote on a program whose value differs from the command's, if the definitions agree with the command.

    The same module gives the right value by the command, so the call from Python is wrong. The program itself must
    have printed its value.
    """
    agrees = [one for one in found.findings if get_vote(one) is Vote.AGREES]
    try:
        printed, got = (list(chain(*_list_rows(texts))) for texts in (_get_printed(seen), _get_claimed(call)))
    except ValueError:
        return Diagnosis(controls=found.controls)
    if not agrees or len(agrees) < len(found.findings) or len(printed) != len(got):
        return Diagnosis(controls=found.controls)
    pairs = list(zip(got, printed, strict=True))
    at = next((n for n, (own, right) in enumerate(pairs) if not math.isclose(own, right, rel_tol=_CLEARLY)), None)
    told = {number for line in split_lines(program.excerpt) for number in list_numbers(line)}
    if at is None or not math.isfinite(pairs[at][1]) or pairs[at][0] not in told:
        return Diagnosis(controls=found.controls)
    returned, expected = (f"{one:g}" for one in pairs[at])
    evidence = ReferenceEvidence(
        name=Reference.DEFINITION,
        vote=Vote.DIFFERS,
        version=get_version(agrees[0]),
        returned=returned,
        expected=expected,
        at=f"{call.function}(…)[{at}]" if len(pairs) > 1 else f"{call.function}(…)",
    )
    summary = "by the definitions, and by the command line with the same arguments, another value is right"
    return Diagnosis(
        controls=found.controls,
        findings=(make_finding(evidence, summary),),
    )


_CLEARLY = 1e-2
"""Minimum relative difference of different values. Smaller differences may come from rounding."""


def _is_large(call: _Call) -> bool:
    return any(value.count(" ") >= MAX_SHOWN for value in call.results) and all("=" in one for one in call.results)


def _show_results(seen: Observation, call: _Call) -> Observation:
    """Return a run with large results filled in. The command found them equal to the program's."""
    if not _is_large(call):
        return seen
    rows = (f"result[{at}]: hal.buffer_view\n{value}" for at, value in enumerate(call.results))
    return msgspec.structs.replace(seen, excerpt="\n".join((f"EXEC @{call.function}", *rows)))


def _get_printed(seen: Observation) -> list[str]:
    """Return the values of each result: ``2x2xf32=[1 2][3 4]``, and ``result[0]: f32=3`` for a scalar."""
    return [_drop_brackets(line.partition("=")[2]) for line in seen.excerpt.splitlines() if "=" in line]


def _drop_brackets(values: str) -> str:
    return values.replace("[", " ").replace("]", " ")


def _get_claimed(call: _Call) -> list[str]:
    return [value.rpartition("=")[2] for value in call.results]


def _list_rows(lines: Iterable[str]) -> list[list[float]]:
    """Return the numbers of each line of values. Raises `ValueError` for another word, such as a byte of ``i1``."""
    return [[float(word) for word in line.split()] for line in lines]


def _prints_results(seen: Observation, call: _Call) -> bool:
    """True if the command printed the values that the program got."""
    try:
        printed, claimed = _list_rows(_get_printed(seen)), _list_rows(_get_claimed(call))
    except ValueError:
        return False
    if list(map(len, printed)) != list(map(len, claimed)):
        return False
    return all(all(map(_is_same, own, other)) for own, other in zip(printed, claimed, strict=True))


def _is_same(printed: float, claimed: float) -> bool:
    return math.isclose(printed, claimed, rel_tol=_DIGITS, abs_tol=1e-12) or (
        math.isnan(printed) and math.isnan(claimed)
    )


_DIGITS = 1e-3
"""Relative difference between a value and its printed digits. Narrow floats are printed with few digits."""
