"""An issue as pieces of known kinds, and the parts of a result that every kind of testcase needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.extract.blocks.markdown import Document, parse_markdown
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.claim.failure import find_signature
from bot.extract.claim.read import read_claim
from bot.extract.claim.source import ClaimSource
from bot.extract.split.document import split_document
from bot.extract.types import Span
from bot.extract.vocabulary import recognize_toolchain, vocabulary_of
from bot.issue import Issue
from runners.core.protocol import Claim, Signature
from runners.core.toolchain.reports import NamedDevices, ReportVocabulary
from runners.toolchains import find_toolchain

MAX_BODY_BYTES = 1_000_000
MAX_COMMENTS = 5
"""Number of the author's comments that are read if the description contains no code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedIssue:
    """An issue cut into pieces. No piece is chosen yet."""

    issue: Issue
    document: Document
    pieces: tuple[Piece, ...]
    prose: str
    toolchain: str | None

    @property
    def vocabulary(self) -> ReportVocabulary:
        return vocabulary_of(self.toolchain)

    @property
    def signature(self) -> Signature | None:
        """The failure that the issue quotes."""
        return find_signature(self.issue.title, self.document, self.pieces)


def read_pieces(issue: Issue, toolchain: str | None) -> ParsedIssue:
    """Parse the description. If it contains no runnable code, parse the author's first comments too.

    ``toolchain`` overrides the toolchain that the text is about.
    """
    document = parse_markdown(issue.body)
    pieces = split_document(document)
    if not _has_code(pieces):
        document, pieces = _add_comments(issue, document, pieces)
    return ParsedIssue(
        issue=issue,
        document=document,
        pieces=pieces,
        prose="\n".join(paragraph.text for paragraph in document.prose),
        toolchain=toolchain or recognize_toolchain(issue.repository, f"{issue.title}\n{issue.body}"),
    )


def _has_code(pieces: Sequence[Piece]) -> bool:
    """True if a piece is a program. Definitions without a driver and single MLIR operations do not count.

    The author may have added the rest in a comment.
    """
    return any(piece.kind in (Kind.PYTHON, Kind.MLIR) for piece in pieces)


def _add_comments(issue: Issue, document: Document, pieces: tuple[Piece, ...]) -> tuple[Document, tuple[Piece, ...]]:
    """Add the author's first comments, up to the comment with the code."""
    read = document, pieces
    for read in _iterate_comments(issue, document, pieces):
        if _has_code(read[1]):
            break
    return read


def _iterate_comments(
    issue: Issue, document: Document, pieces: tuple[Piece, ...]
) -> Iterator[tuple[Document, tuple[Piece, ...]]]:
    """Yield the document and its pieces with the author's first comment, then with the first two, and so on."""
    own = [comment for comment in issue.comments if issue.is_by(comment.author)][:MAX_COMMENTS]
    for number, comment in enumerate(own, start=1):
        if len(comment.body) > MAX_BODY_BYTES:
            continue
        more = parse_markdown(comment.body, comment=number, first_index=len(document.blocks) + 1)
        pieces = (*pieces, *split_document(more))
        document = replace(document, blocks=(*document.blocks, *more.blocks), prose=(*document.prose, *more.prose))
        yield document, pieces


def add_replies(parsed: ParsedIssue) -> Iterator[ParsedIssue]:
    """Yield the issue with its author's first reply, then with the first two, and so on.

    Yield none if the replies were read already, because the description contains no code.
    """
    if any(piece.comment for piece in parsed.pieces):
        return
    for document, pieces in _iterate_comments(parsed.issue, parsed.document, parsed.pieces):
        yield replace(parsed, document=document, pieces=pieces)


def make_claim(parsed: ParsedIssue, code: str = "", devices: Sequence[str] = ()) -> Claim:
    """Read the reporter's claim. ``code`` is the text of the testcase; empty if there is none."""
    return read_claim(
        ClaimSource(
            title=parsed.issue.title,
            document=parsed.document,
            pieces=parsed.pieces,
            code=code,
            devices=tuple(devices),
            toolchain=parsed.toolchain,
        )
    )


def make_span(name: str, piece: Piece) -> Span:
    return Span(file=name, block=piece.block, lines=piece.lines, comment=piece.comment, attachment=piece.attachment)


def choose_device(toolchain: str, devices: NamedDevices) -> str:
    """Return the device that the testcase asks for; the toolchain's first device if the text names none."""
    return devices.chosen or find_toolchain(toolchain).DEVICES[0].name
