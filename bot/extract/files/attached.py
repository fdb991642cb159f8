"""Linked files that were fetched → what the issue's own text lacks. Pure; a gap is filled, nothing is replaced."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import msgspec

from bot.extract.blocks.kinds import text_kind
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.python.parse import parse_python
from bot.extract.python.requirements import read_imports
from bot.extract.python.statements import is_python_program
from bot.extract.types import Extraction, Missing, Repair, Repro, Span
from bot.issue import Attachment, Issue

MAX_PYTHON_CHARACTERS = 200_000
"""In all linked programs together: about what an issue's own text may hold."""
MAX_PIECES = 8
"""Programs and modules that take part in the joining, whose cost grows with the square of their number."""
_HEAD = 100_000
"""Characters that decide whether a text is MLIR."""


def given_name(attachment: Attachment) -> str:
    """The name its author gave it: the tracker takes ``speech.mlir`` only as ``speech.mlir.txt``."""
    return re.sub(r"(\.(?:mlir|py))\.txt$", r"\1", attachment.name)


def told(attachment: Attachment) -> str:
    """What to call it: ``pool.mlir from pool.zip``; by its address when it has no name."""
    name = attachment.name or attachment.url
    return f"{name} from {attachment.archive}" if attachment.archive else name


def kind_of(attachment: Attachment) -> Kind:
    """MLIR, Python, or output: by its content, since ``.txt`` may be any of them."""
    if text_kind(attachment.text[:_HEAD]) is Kind.MLIR:
        return Kind.MLIR
    labelled = given_name(attachment).endswith(".py")
    return Kind.PYTHON if is_python_program(attachment.text, labelled) else Kind.OUTPUT


def attached_pieces(attachments: Sequence[Attachment]) -> tuple[Piece, ...]:
    """Programs and MLIR among the linked files, to be put together like those in the text."""
    found: list[Piece] = []
    left = MAX_PYTHON_CHARACTERS
    for attachment in attachments:
        kind = kind_of(attachment)
        size = len(attachment.text) if kind is Kind.PYTHON else 0
        if kind is Kind.OUTPUT or size > left or len(found) == MAX_PIECES:
            continue
        left -= size
        found.append(
            Piece(
                kind=kind,
                text=attachment.text,
                lines=_lines(attachment),
                block=0,
                name=given_name(attachment),
                attachment=told(attachment),
            )
        )
    return tuple(found)


def _lines(attachment: Attachment) -> tuple[int, int]:
    return 1, max(1, len(attachment.text.splitlines()))


def say_attached(found: Extraction) -> Extraction:
    """``found`` with a repair for each linked file that went into it."""
    if not isinstance(found, Repro):
        return found
    used = dict.fromkeys(span.attachment for span in found.spans if span.attachment)
    return replace(found, repairs=(*(Repair(kind="attachment", detail=name) for name in used), *found.repairs))


@dataclass(slots=True)
class _Filling:
    """What is gathered while gaps are filled."""

    files: dict[str, str]
    missing: list[Missing] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)

    def take(self, name: str, attachment: Attachment) -> None:
        self.files[name] = attachment.text
        self.spans.append(Span(file=name, block=0, lines=_lines(attachment), attachment=told(attachment)))
        self.repairs.append(Repair(kind="attachment", detail=told(attachment)))


def fill_from(
    found: Extraction, attachments: Sequence[Attachment], allowed: Mapping[str, str] | None = None
) -> Extraction:
    """``found`` with its missing files and modules taken from ``attachments`` where one of them is meant."""
    if not isinstance(found, Repro):
        return found
    filling = _Filling(files=dict(found.testcase.files))
    free = list(attachments)
    # A module is known by its name alone: the only script linked is rather the program that imports it.
    alone = len(attachments) == 1 and [lack.kind for lack in found.missing] == ["file"]
    pending = deque(found.missing)
    while pending:
        lack = pending.popleft()
        name = _file_of(lack)
        attachment = _meant(name, free, alone) if name and name not in filling.files else None
        if attachment is None:
            filling.missing.append(lack)
            continue
        free.remove(attachment)
        filling.take(name, attachment)
        if lack.kind == "module":
            pending.extend(_needs(attachment, found.testcase.toolchain, allowed, filling))
    testcase = found.testcase
    requirements = tuple(dict.fromkeys((*testcase.requirements, *filling.requirements)))
    return replace(
        found,
        testcase=msgspec.structs.replace(testcase, files=filling.files, requirements=requirements),
        spans=(*found.spans, *filling.spans),
        repairs=(*found.repairs, *filling.repairs),
        missing=tuple(dict.fromkeys(filling.missing)),
    )


def _file_of(lack: Missing) -> str:
    """The file in the working directory that would fill the gap; empty when none can."""
    match lack.kind:
        case "file":
            name = lack.name.removeprefix("./")
            return name if PurePosixPath(name).name == name and "\\" not in name else ""
        case "module":
            name = lack.name.strip(".")
            return f"{name}.py" if name.isidentifier() else ""
        case _:
            return ""


def _meant(name: str, attachments: Sequence[Attachment], alone: bool) -> Attachment | None:
    """The linked file called ``name``; else the first of its stem, or the only one, if it holds that language."""
    for attachment in attachments:
        if name in (attachment.name, given_name(attachment)):
            return attachment
    wanted = {".mlir": Kind.MLIR, ".py": Kind.PYTHON}.get(PurePosixPath(name).suffix)
    stem = name.partition(".")[0]
    near = [one for one in attachments if alone or one.name.partition(".")[0] == stem]
    return next((one for one in near if wanted is not None and kind_of(one) is wanted), None)


def _needs(
    attachment: Attachment, toolchain: str, allowed: Mapping[str, str] | None, filling: _Filling
) -> Iterator[Missing]:
    """What a module that was filled in lacks itself; its requirements are added."""
    tree = parse_python(attachment.text)
    if tree is None:
        return
    imports = read_imports(tree, toolchain, allowed)
    filling.requirements += imports.requirements
    known = {*filling.files, *(f"{lack.name}.py" for lack in filling.missing)}
    yield from (Missing(kind="module", name=name) for name in imports.unknown if f"{name.strip('.')}.py" not in known)


def explain(found: Extraction, issue: Issue) -> Extraction:
    """``found`` with the reason, beside each missing thing, why its link did not give it."""
    return replace(found, missing=tuple(replace(lack, why=_why(lack, issue)) for lack in found.missing))


def _why(lack: Missing, issue: Issue) -> str:
    name = PurePosixPath(lack.name).name
    named = [one.why for one in issue.refused if one.name == name]
    linked = [one.why for one in issue.refused if lack.url and one.url == lack.url]
    if named or linked:
        return (named or linked)[0]
    fetched = any(lack.url and one.url == lack.url for one in issue.attachments)
    return "is not what the link leads to" if fetched else ""
