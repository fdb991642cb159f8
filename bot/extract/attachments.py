"""Fill the gaps of a testcase from the linked files that were fetched. Pure; text of the issue is never replaced."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import msgspec

from bot.extract.blocks.kinds import classify_text
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.python.parse import parse_python
from bot.extract.python.requirements import read_imports
from bot.extract.split.statements import is_python_program
from bot.extract.types import Extraction, Missing, Repair, Repro, Span
from bot.issue import Attachment, Issue

MAX_PYTHON_CHARACTERS = 200_000
"""Size limit of all linked programs together: about that of an issue's text."""
MAX_PIECES = 8
"""Largest number of linked programs and modules in the assembly, whose cost grows with the square of this number."""
_HEAD = 100_000
"""Number of characters that decide whether a text is MLIR."""


def _read_given_name(attachment: Attachment) -> str:
    """Return the author's name for a file. The tracker accepts ``speech.mlir`` only as ``speech.mlir.txt``."""
    return re.sub(r"(\.(?:mlir|py))\.txt$", r"\1", attachment.name)


def _describe_attachment(attachment: Attachment) -> str:
    """Return a displayed name, such as ``pool.mlir from pool.zip``; the address for a file without a name."""
    name = attachment.name or attachment.url
    return f"{name} from {attachment.archive}" if attachment.archive else name


def _classify_attachment(attachment: Attachment) -> Kind:
    """Return the kind by the content: a ``.txt`` file may be MLIR, Python, or output."""
    if classify_text(attachment.text[:_HEAD]) is Kind.MLIR:
        return Kind.MLIR
    labelled = _read_given_name(attachment).endswith(".py")
    return Kind.PYTHON if is_python_program(attachment.text, labelled) else Kind.OUTPUT


def read_attached_pieces(attachments: Sequence[Attachment]) -> tuple[Piece, ...]:
    """Return the programs and the MLIR among the linked files, to be assembled like pieces of the text."""
    pieces: list[Piece] = []
    left = MAX_PYTHON_CHARACTERS
    for attachment in attachments:
        kind = _classify_attachment(attachment)
        size = len(attachment.text) if kind is Kind.PYTHON else 0
        if kind is Kind.OUTPUT or size > left or len(pieces) == MAX_PIECES:
            continue
        left -= size
        pieces.append(
            Piece(
                kind=kind,
                text=attachment.text,
                lines=_measure_lines(attachment),
                block=0,
                name=_read_given_name(attachment),
                attachment=_describe_attachment(attachment),
            )
        )
    return tuple(pieces)


def _measure_lines(attachment: Attachment) -> tuple[int, int]:
    return 1, max(1, len(attachment.text.splitlines()))


def record_attachments(found: Extraction) -> Extraction:
    """Add a repair for each linked file that is a part of ``found``."""
    if not isinstance(found, Repro):
        return found
    used = dict.fromkeys(span.attachment for span in found.spans if span.attachment)
    return replace(found, repairs=(*(Repair(kind="attachment", detail=name) for name in used), *found.repairs))


@dataclass(slots=True)
class _Filling:
    """The additions to a testcase so far."""

    files: dict[str, str]
    missing: list[Missing] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    requirements: list[str] = field(default_factory=list)

    def add_file(self, name: str, attachment: Attachment) -> None:
        shown = _describe_attachment(attachment)
        self.files[name] = attachment.text
        self.spans.append(Span(file=name, block=0, lines=_measure_lines(attachment), attachment=shown))
        self.repairs.append(Repair(kind="attachment", detail=shown))


def fill_gaps(
    found: Extraction, attachments: Sequence[Attachment], allowed: Mapping[str, str] | None = None
) -> Extraction:
    """Fill the missing files and modules of ``found`` from the ``attachments`` that fit."""
    if not isinstance(found, Repro):
        return found
    filling = _Filling(files=dict(found.testcase.files))
    free = list(attachments)
    # Only its name identifies a module: a single linked script is more likely the program that imports the module.
    single = len(attachments) == 1 and [gap.kind for gap in found.missing] == ["file"]
    pending = deque(found.missing)
    while pending:
        gap = pending.popleft()
        name = _name_file(gap)
        attachment = _find_attachment(name, free, single) if name and name not in filling.files else None
        if attachment is None:
            filling.missing.append(gap)
            continue
        free.remove(attachment)
        filling.add_file(name, attachment)
        if gap.kind == "module":
            pending.extend(_find_further_gaps(attachment, found.testcase.toolchain, allowed, filling))
    testcase = found.testcase
    requirements = tuple(dict.fromkeys((*testcase.requirements, *filling.requirements)))
    return replace(
        found,
        testcase=msgspec.structs.replace(testcase, files=filling.files, requirements=requirements),
        spans=(*found.spans, *filling.spans),
        repairs=(*found.repairs, *filling.repairs),
        missing=tuple(dict.fromkeys(filling.missing)),
    )


def _name_file(gap: Missing) -> str:
    """Return the name of a file in the working directory that would fill the gap; empty if there is none."""
    match gap.kind:
        case "file":
            name = gap.name.removeprefix("./")
            return name if PurePosixPath(name).name == name and "\\" not in name else ""
        case "module":
            name = gap.name.strip(".")
            return f"{name}.py" if name.isidentifier() else ""
        case _:
            return ""


def _find_attachment(name: str, attachments: Sequence[Attachment], single: bool) -> Attachment | None:
    """Return the linked file called ``name``, else the first file of the same stem and language.

    A ``single`` attachment needs the language only.
    """
    for attachment in attachments:
        if name in (attachment.name, _read_given_name(attachment)):
            return attachment
    kind = {".mlir": Kind.MLIR, ".py": Kind.PYTHON}.get(PurePosixPath(name).suffix)
    stem = name.partition(".")[0]
    near = [one for one in attachments if single or one.name.partition(".")[0] == stem]
    return next((one for one in near if kind is not None and _classify_attachment(one) is kind), None)


def _find_further_gaps(
    attachment: Attachment, toolchain: str, allowed: Mapping[str, str] | None, filling: _Filling
) -> Iterator[Missing]:
    """Yield the modules that an added module needs. Add its requirements to ``filling``."""
    tree = parse_python(attachment.text)
    if tree is None:
        return
    imports = read_imports(tree, toolchain, allowed)
    filling.requirements += imports.requirements
    known = {*filling.files, *(f"{gap.name}.py" for gap in filling.missing)}
    yield from (Missing(kind="module", name=name) for name in imports.unknown if f"{name.strip('.')}.py" not in known)


def explain_gaps(found: Extraction, issue: Issue) -> Extraction:
    """Add to each missing part the reason why its link failed."""
    return replace(found, missing=tuple(replace(gap, why=_explain_gap(gap, issue)) for gap in found.missing))


def _explain_gap(gap: Missing, issue: Issue) -> str:
    name = PurePosixPath(gap.name).name
    named = [refused.why for refused in issue.refused if refused.name == name]
    linked = [refused.why for refused in issue.refused if gap.url and refused.url == gap.url]
    if named or linked:
        return (named or linked)[0]
    fetched = any(gap.url and attachment.url == gap.url for attachment in issue.attachments)
    return "is not what the link leads to" if fetched else ""
