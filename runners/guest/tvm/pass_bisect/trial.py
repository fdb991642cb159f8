"""One run of a TVM testcase in a forked child, without some of its passes, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from runners.guest.tvm.pass_bisect.skip_passes import OWN, PIPELINE, Choice, Course, difference, install

TRIAL_S = 30
MAX_INSIDE = 6
MAX_TOLD_BYTES = 2_000_000

Applied = dict[str, list[tuple[str, str]]]
"""Scope → the passes that could have been left out, each with the one around it, in the order in which they ran."""


@dataclass(frozen=True)
class Trial:
    """How one run ended: ``ok``, ``exception`` or ``signal``."""

    end: str
    what: str = ""
    difference: tuple[str, ...] = ()
    applied: Applied = field(default_factory=dict)
    outer: frozenset[str] = frozenset()
    """Passes that applied other passes."""
    inside: tuple[str, ...] = ()
    """The passes under way when it failed, outermost first."""

    def removable(self, choice: Choice) -> list[tuple[str, str]]:
        """Of the passes of ``choice.scope`` those that ``choice`` may leave out, in the order in which they ran."""
        kept = choice.outer | choice.always
        return [one for one in self.applied.get(choice.scope, []) if one[0] not in kept]

    def like(self, other: Trial) -> bool:
        return (self.end, self.what) == (other.end, other.what)


def attempt(tvm: Any, file: str, choice: Choice) -> Trial:
    """The testcase in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _in_child(tvm, file, choice, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read(MAX_TOLD_BYTES)
    _, status = os.waitpid(child, 0)
    lines = told.decode("utf-8", "replace").splitlines()
    applied, outer, inside = retold(lines)
    if os.WIFSIGNALED(status) or not lines or not lines[-1].startswith("{"):
        return Trial("signal", str(status & 0x7F), (), applied, outer, inside)
    said = json.loads(lines[-1])
    return Trial(said["end"], said["what"], tuple(said["difference"]), applied, outer, inside)


def retold(lines: Iterable[str]) -> tuple[Applied, frozenset[str], tuple[str, ...]]:
    """What the child told as it went (`Course.tell`): ``applied``, ``outer`` and ``inside`` of its trial."""
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


def _in_child(tvm: Any, file: str, choice: Choice, writer: int) -> None:
    """Never returns."""
    try:
        signal.alarm(TRIAL_S)  # by default it kills, wherever the compiler is
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)

        def tell(line: str) -> None:
            with contextlib.suppress(OSError):  # more than anybody reads
                os.write(writer, f"{line}\n".encode())

        course = Course(tell)
        install(tvm, choice, course)
        end, what = _run(file)
        told = {"end": end, "what": what, "difference": difference(course.texts)}
        os.write(writer, b"\n" + json.dumps(told).encode())
    finally:
        os._exit(0)


def _run(file: str) -> tuple[str, str]:
    module = ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    try:
        with open(file, "rb") as source:
            code = compile(source.read(), file, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  # the whole purpose; this runs inside the sandbox
    except SystemExit as end:
        return ("ok", "") if end.code in (None, 0) else ("exception", f"exit {str(end.code)[:80]}")
    except BaseException as error:
        return "exception", f"{type(error).__name__}: {_normal(str(error))}"
    return "ok", ""


def _normal(message: str) -> str:
    """The first words of a message without its numbers, which change from run to run."""
    return re.sub(r"[-+\d.e]+", "#", " ".join(message.split()))[:60]
