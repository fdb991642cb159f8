"""Find the parts of the compiler that a report's runs showed: a failing pass, a dispatch, frames of a failure. Pure.

A part has a name, and the files that define it. The files are found in the compiler's own tree: a pass and its file
have the same name in another spelling (``iree-codegen-convolution-to-igemm``, ``ConvolutionToIGEMM.cpp``;
``FuseOps``, ``fuse_ops.cc``). So no table of passes is kept, and a new pass needs no change here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.verdict.evidence import Evidence
from runners.core.failure.oracle import OUTPUT
from runners.core.findings.kinds import PassLevel
from runners.core.findings.questions import get_pass
from runners.core.findings.record import read_evidence
from runners.core.findings.types import DispatchEvidence, PassEvidence
from runners.core.protocol import Answer
from runners.toolchains import find_toolchain

MAX_PARTS = 12
MAX_FILES = 40
"""Largest number of files of one part. A name of more files is no evidence for any of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the compiler that a run named."""

    name: str
    role: str
    """``the guilty pass``, ``a frame of the failure``: the relation of the part to the failure, for the reader."""
    module: str = ""
    """For a Python function: the path of its module."""
    path: str = ""
    """For a file of the failure's stack: its path in the compiler's repository. The words of a path do not count."""
    is_dispatch: bool = False
    """True for the operation of a dispatch (``reduction``): a word that many parts of the compiler share."""
    files: frozenset[str] = frozenset()
    """Files of the compiler's repository that define or test the part."""


def read_parts(evidence: Evidence) -> tuple[Part, ...]:
    """Return the parts that the findings and the failing runs name, the most certain first."""
    found = (*_read_passes(evidence), *_read_files(evidence), *_read_frames(evidence))
    return tuple({part.name: part for part in reversed(found) if part.name}.values())[::-1][:MAX_PARTS]


def read_messages(evidence: Evidence) -> str:
    """Return the messages of the failing runs, without printed values. A report may quote none of them."""
    failures = (one.signature for one in evidence.list_originals() if one.answer is Answer.BAD)
    return "\n".join(dict.fromkeys(one.message for one in failures if one is not None and one.type != OUTPUT))


def locate_parts(parts: Sequence[Part], paths: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts with their files among the ``paths`` of the compiler's tree."""
    stems = [(path, split_name(path.rpartition("/")[2].partition(".")[0])) for path in paths if parts]
    return tuple(replace(part, files=_find_files(part, stems)) for part in parts)


# ------------------------------------------------------------------------------------------------- passes


def _read_passes(evidence: Evidence) -> Iterator[Part]:
    for finding in evidence.findings:
        known = read_evidence(finding)
        match known:
            case PassEvidence():
                name = get_pass(known) or ("" if known.names_none else known.name or "")
                role = _ROLES.get(known.level, "the guilty pass")
            case DispatchEvidence():
                name, role = known.name or "", "the guilty dispatch"
            case _:
                name, role = get_pass(known), "the pass of a finding"
        if not name or _NUMBERED.match(name):
            continue
        operation = _strip_dispatch(name)
        yield Part(name=operation or name, role=role, is_dispatch=bool(operation))
        symbol = known.symbol if isinstance(known, PassEvidence) else None
        if symbol and (operation := _strip_dispatch(symbol)):
            yield Part(name=operation, role="the dispatch that fails", is_dispatch=True)


_ROLES: Mapping[PassLevel | None, str] = {
    PassLevel.PARSING: "the guilty parsing",
    PassLevel.PHASE: "the guilty phase",
}
"""The roles of a culprit that is no pass."""
_NUMBERED = re.compile(r"(?:LLVM )?pass(?:es)? \d")
_DISPATCH = re.compile(r"_dispatch_\d+_(?P<kind>[A-Za-z]\w*?)(?:_[\dDx]+)?(?:_[a-z]+\d+\w*)?$", re.ASCII)


def _strip_dispatch(symbol: str) -> str:
    """Return the operation of a dispatch: ``conv_3d`` of ``main$async_dispatch_1_conv_3d_1x32x32_f32``."""
    found = _DISPATCH.search(symbol)
    return found["kind"] if found else ""


# ------------------------------------------------------------------------------------------------- frames

_PASS_CLASS = re.compile(r"\b(?P<name>[A-Z]\w{3,100}Pass)::")
_TEMPLATE = re.compile(r"<.*>|\(anonymous namespace\)::|\[.*\]")
_MAX_FRAMES = 4
FRAME = "a frame of the failure"
_MAX_FILES = 2
STACK = "the stack"


def _read_frames(evidence: Evidence) -> Iterator[Part]:
    for seen in evidence.list_originals():
        if seen.answer is not Answer.BAD or seen.signature is None:
            continue
        for frame in seen.signature.frames:
            if found := _PASS_CLASS.search(frame):
                yield Part(name=found["name"], role="the pass that ran at the failure")
        for frame in (seen.signature.site, *seen.signature.frames[:_MAX_FRAMES]):
            if frame and not _PASS_CLASS.search(frame):
                yield _parse_frame(frame)


def _read_files(evidence: Evidence) -> Iterator[Part]:
    """Yield the innermost files of each failure's stack, where a build prints their paths."""
    sources = find_toolchain(evidence.plan.testcase.toolchain).REPORTS.commits.sources
    for seen in evidence.list_originals():
        if seen.answer is Answer.BAD:
            yield from (
                Part(name=path, role=STACK, path=path) for path in sources.list_files(seen.excerpt)[:_MAX_FILES]
            )


def _parse_frame(frame: str) -> Part:
    bare = _TEMPLATE.sub("", frame)
    module, _, function = bare.rpartition(".")
    path = "/".join(module.split(".")) if module and "::" not in bare else ""
    return Part(name=function.rpartition("::")[2], role=FRAME, module=path)


# ------------------------------------------------------------------------------------------------- files

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", re.ASCII)


def split_name(name: str) -> tuple[str, ...]:
    """Return the words of an identifier in any spelling, in lower case, without the word ``pass`` at the end."""
    words = tuple(word.lower() for word in _WORDS.findall(name))
    return words[:-1] if words[-1:] in (("pass",), ("passes",)) else words


def _find_files(part: Part, stems: Sequence[tuple[str, tuple[str, ...]]]) -> frozenset[str]:
    """Return the files whose names are most similar to a pass's name, or the file of a Python function."""
    if part.path:
        return frozenset(path for path, _ in stems if path == part.path)
    if part.module:
        return frozenset(
            path for path, _ in stems if path.endswith((f"{part.module}.py", f"{part.module}/__init__.py"))
        )
    if part.is_dispatch or part.role == FRAME:
        return frozenset()
    sought = split_name(part.name.rpartition(".")[2])
    scores = {path: score for path, stem in stems if (score := _compare_names(sought, stem)) > 0}
    best = max(scores.values(), default=0.0)
    found = frozenset(path for path, score in scores.items() if score == best)
    return found if len(found) <= MAX_FILES else frozenset()


def _compare_names(name: Sequence[str], stem: Sequence[str]) -> float:
    """Return 1 for the same letters, less the more words only one of them has, and 0 if neither contains the other.

    Spellings divide words differently (``LLVMCPU``, ``llvm_cpu``), so the same letters are the same name.
    """
    if not name or not stem:
        return 0.0
    if "".join(name) == "".join(stem):
        return 1.0
    shorter, longer = sorted((tuple(name), tuple(stem)), key=len)
    if len(shorter) < 2 or not _is_subsequence(shorter, longer):
        return 0.0
    share = len(shorter) / len(longer)
    return share if share > 0.5 else 0.0


def _is_subsequence(shorter: Sequence[str], longer: Sequence[str]) -> bool:
    rest = iter(longer)
    return all(word in rest for word in shorter)
