"""Run a TVM testcase in a forked child, without some of its passes, and return how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from runners.guest.tvm.pass_bisect.skip_passes import (
    OWN,
    PIPELINE,
    PassLog,
    PassSelection,
    diff_texts,
    install_selection,
)
from runners.guest.tvm.testcase import execute_file, run_in_child

TRIAL_S = 30
MAX_INSIDE = 6
MAX_LOG_BYTES = 2_000_000

Applied = dict[str, list[tuple[str, str]]]
"""Scope → the removable passes in execution order, each with its enclosing pass."""


@dataclass(frozen=True)
class PassTrial:
    """Result of one run. ``end`` is ``ok``, ``exception`` or ``signal``."""

    end: str
    what: str = ""
    difference: tuple[str, ...] = ()
    applied: Applied = field(default_factory=dict)
    outer: frozenset[str] = frozenset()
    """Passes that applied other passes."""
    inside: tuple[str, ...] = ()
    """The passes that were running at the failure, outermost first."""

    def list_removable(self, choice: PassSelection) -> list[tuple[str, str]]:
        """Return the passes of ``choice.scope`` that ``choice`` may leave out, in execution order."""
        kept = choice.outer | choice.always
        return [(name, around) for name, around in self.applied.get(choice.scope, []) if name not in kept]

    def is_same_failure(self, other: PassTrial) -> bool:
        return (self.end, self.what) == (other.end, other.what)


def run_trial(tvm: Any, file: str, choice: PassSelection) -> PassTrial:
    """Run the testcase in a forked child."""
    log, status = run_in_child(lambda writer: _write_trial(tvm, file, choice, writer), TRIAL_S, MAX_LOG_BYTES)
    lines = log.decode("utf-8", "replace").splitlines()
    applied, outer, inside = parse_log(lines)
    if os.WIFSIGNALED(status) or not lines or not lines[-1].startswith("{"):
        return PassTrial("signal", str(status & 0x7F), (), applied, outer, inside)
    result = json.loads(lines[-1])
    return PassTrial(result["end"], result["what"], tuple(result["difference"]), applied, outer, inside)


def parse_log(lines: Iterable[str]) -> tuple[Applied, frozenset[str], tuple[str, ...]]:
    """Return ``applied``, ``outer`` and ``inside`` of a trial from the lines of its `PassLog`."""
    applied: Applied = {OWN: [], PIPELINE: []}
    outer: set[str] = set()
    stack: list[str] = []
    for line in lines:
        scope, _, name = line.partition(" ")
        if line.startswith("+"):
            outer.update(stack[-1:])
            stack.append(line[1:])
        elif line == "-" and stack:
            stack.pop()
        elif scope in applied:
            applied[scope].append((name, stack[-1] if stack else ""))
    return applied, frozenset(outer), tuple(stack[-MAX_INSIDE:])


def _write_trial(tvm: Any, file: str, choice: PassSelection, writer: int) -> None:
    """Run the testcase, and write its log and result."""

    def write_line(line: str) -> None:
        with contextlib.suppress(OSError):  # the reader stops at its limit
            os.write(writer, f"{line}\n".encode())

    log = PassLog(write_line)
    install_selection(tvm, choice, log)
    end, what = _execute_testcase(file)
    result = {"end": end, "what": what, "difference": diff_texts(log.texts)}
    os.write(writer, b"\n" + json.dumps(result).encode())


def _execute_testcase(file: str) -> tuple[str, str]:
    try:
        execute_file(file)
    except SystemExit as end:
        return ("ok", "") if end.code in (None, 0) else ("exception", f"exit {str(end.code)[:80]}")
    except BaseException as error:
        return "exception", f"{type(error).__name__}: {_normalize_message(str(error))}"
    return "ok", ""


def _normalize_message(message: str) -> str:
    """Return the first words of a message without its numbers, which differ between runs."""
    return re.sub(r"[-+\d.e]+", "#", " ".join(message.split()))[:60]
