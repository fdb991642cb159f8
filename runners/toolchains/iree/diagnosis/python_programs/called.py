"""The calls of a Python program as commands, for the diagnosers that read inputs on a command line.

The guest (``guest/iree/record_calls.py``) records the arguments and the results of each call. Its words are a claim:
the host runs the module of the program with these arguments by ``iree-run-module``, and goes on only if the command
prints what the program got.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec

from runners.core.failure.oracle import is_about_values
from runners.core.failure.printed.output import are_equal_lines, split_lines
from runners.core.findings import Vote, get_vote
from runners.core.protocol import Exited, Finding, Observation, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.guest import make_launch_step
from runners.toolchains.iree.diagnosis.python_programs.embedded import EmbeddedModule, list_embedded, list_read
from runners.toolchains.iree.reports.inputs import list_functions

Diagnose = Callable[[Failure, Means], Diagnosis]
_PROGRAM = "iree.record_calls"
MAX_LINES, MAX_LINE_CHARS, MAX_COMMANDS = 8, 64 * 1024, 3
_Value = Annotated[str, msgspec.Meta(max_length=20_000, pattern=r"^(?:(?:\d{1,9}x){0,8}[fi]\d{1,2}=)?[-+\w. ]*$")]


class _Call(msgspec.Struct, frozen=True):
    """The guest's claim; other fields are ignored."""

    kind: Literal["call"]
    function: Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[\w$.-]+$")]
    inputs: Annotated[tuple[_Value, ...], msgspec.Meta(max_length=16)]
    results: Annotated[tuple[_Value, ...], msgspec.Meta(max_length=16)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCheck:
    """A diagnoser of commands with inputs."""

    diagnose: Diagnose
    same_values: bool
    """True if it examines the printed results: then the command must print what the program got. What is read out of
    bounds differs from process to process."""


def read_called(*checks: CommandCheck) -> Diagnose:
    """Return the diagnoser of Python programs that puts each of their calls to the checks as a command.

    A reference that agrees with one call says nothing about the others: it must agree with all.
    """

    def diagnose_calls(failure: Failure, means: Means) -> Diagnosis:
        modules = list_embedded(failure.testcase) or list_read(failure.testcase)
        if len(modules) != 1 or len(failure.testcase.steps) != 1 or not is_about_values(failure.seen):
            return NOTHING_FOUND
        calls, whole = _record_calls(modules[0], failure, means)
        commands = [_make_command(modules[0], call) for call in calls]
        controls = [
            means.run(failure.seen.version, Variant.CONTROL, command, failure.seen.device) for command in commands
        ]
        for check in checks:
            agreeing: list[Finding] = []
            for call, command, seen in zip(calls, commands, tuple(controls), strict=False):
                if seen.ended != Exited(code=0) or (check.same_values and not _prints_results(seen, call)):
                    continue
                found = check.diagnose(replace(failure, testcase=command, seen=seen), means)
                controls += found.controls
                if any(get_vote(one) is not Vote.AGREES for one in found.findings):
                    return replace(found, controls=tuple(controls))
                agreeing += found.findings
            if agreeing and whole and len(agreeing) == len(calls):
                return Diagnosis(controls=tuple(controls), findings=(agreeing[0],))
        return Diagnosis(controls=tuple(controls)) if controls else NOTHING_FOUND

    return diagnose_calls


def _record_calls(module: EmbeddedModule, failure: Failure, means: Means) -> tuple[tuple[_Call, ...], bool]:
    """Return different calls of the module's own functions, and whether these are all calls of the program."""
    names = {one.name for one in list_functions(module.text) if not one.private}
    asking = msgspec.structs.replace(failure.testcase, steps=(make_launch_step(_PROGRAM, module.source),))
    lines = means.run_hook(failure.seen.version, asking).splitlines()
    read = dict.fromkeys(_read_call(line) for line in lines[: MAX_LINES + 1])
    calls = tuple(call for call in read if call is not None and call.function in names)
    whole = len(lines) <= MAX_LINES and len(calls) == len(read) <= MAX_COMMANDS
    return calls[:MAX_COMMANDS], whole


def _read_call(line: str) -> _Call | None:
    try:
        return msgspec.json.decode(line[:MAX_LINE_CHARS], type=_Call)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _make_command(module: EmbeddedModule, call: _Call) -> Testcase:
    """Return the command lines that compile the module and make the same call."""
    compiled = f"{module.source}.vmfb"
    running = ("iree-run-module", f"--module={compiled}", "--device=local-task", f"--function={call.function}")
    return msgspec.structs.replace(
        module.program,
        kind=TestcaseKind.COMMAND_LINE,
        files={module.file: module.text},
        steps=(
            ("iree-compile", *module.flags, module.file, "-o", compiled),
            (*running, *(f"--input={value}" for value in call.inputs)),
        ),
    )


def _prints_results(seen: Observation, call: _Call) -> bool:
    """True if the command printed the values that the program got."""
    printed = [line.replace("[", " ").replace("]", " ") for line in seen.excerpt.splitlines() if "=" in line]
    wanted = [value if "=" in value else f"={value}" for value in call.results]
    numbers = [[token for token in line if isinstance(token, float)] for line in split_lines("\n".join(printed))]
    return are_equal_lines(
        [tuple(line) for line in numbers],
        [tuple(token for token in line if isinstance(token, float)) for line in split_lines("\n".join(wanted))],
    )
