"""Find the paths of the compiler's repository that a report's runs name, without the repository. Pure.

They shorten a list of commits for a reader: ``git log A..B -- PATHS``. The paths come from the runs alone: from the
guilty pass or dispatch, the files and functions of the failure's stack, and the operation that the message quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.verdict.evidence import Evidence
from runners.core.findings.kinds import PassLevel
from runners.core.findings.record import read_evidence
from runners.core.findings.types import DispatchEvidence, PassEvidence
from runners.core.protocol import Answer, Observation
from runners.core.toolchain.reports import SourceWords
from runners.toolchains import find_toolchain

MAX_SOURCES = 2
"""Paths shown. Each further one adds commits, and is less certain."""


def read_sources(evidence: Evidence) -> tuple[str, ...]:
    """Return at most ``MAX_SOURCES`` paths, the most certain first; no path inside another one."""
    words = find_toolchain(evidence.plan.testcase.toolchain).REPORTS.commits.sources
    failing = [one for one in evidence.list_originals() if one.answer is Answer.BAD]
    newest = {one.version: one for one in failing}
    found: list[str] = []
    for path in (*_list_passes(evidence, words), *_list_frames(list(newest.values())[::-1], words)):
        if not any(f"{path}/".startswith(f"{known}/") for known in found):
            found = [*(known for known in found if not f"{known}/".startswith(f"{path}/")), path]
    return tuple(found[:MAX_SOURCES])


def _list_passes(evidence: Evidence, words: SourceWords) -> Iterator[str]:
    for finding in evidence.findings:
        match read_evidence(finding):
            case DispatchEvidence(device=device):
                yield from words.find_generator(device or evidence.plan.device)
            case PassEvidence(name=str() as name, level=level) if level not in _ELSEWHERE:
                yield from words.find_pass(name)
            case _:
                pass


_ELSEWHERE = {PassLevel.PARSING, PassLevel.LLVM}
"""Levels whose names are not passes of the compiler's repository."""


def _list_frames(failing: list[Observation], words: SourceWords) -> Iterator[str]:
    """Yield the paths of the failing runs, the newest build first. Its names are those of the range's end."""
    for seen in failing[:1]:
        yield from words.list_files(seen.excerpt)
        if seen.signature is not None:
            for frame in seen.signature.frames:
                yield from words.find_function(frame)
            yield from words.find_operation(seen.signature.message)
