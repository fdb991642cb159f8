"""An issue as pieces of known kinds, and the parts of a result that every kind of testcase needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bot.extract.blocks.markdown import Document, parse_markdown
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.claim.failure import find_signature
from bot.extract.claim.read import read_claim
from bot.extract.claim.source import ClaimSource
from bot.extract.split.document import split_document
from bot.extract.types import Span
from bot.extract.vocabulary import recognize_toolchain, vocabulary_of
from bot.issue import Comment, Issue
from runners.core.protocol import Claim, Signature
from runners.core.toolchain.reports import NamedDevices, ReportVocabulary
from runners.toolchains import find_toolchain

MAX_BODY_BYTES = 1_000_000
MAX_COMMENTS = 5
"""Number of the author's comments that are read if the description holds no code."""
MAX_READ_CHARS = 200_000
"""Most characters that are read of the description and the author's comments together. The text counts once more each
time that it is read again, with one more comment. GitHub's limit for one text is 65,536."""


@dataclass(frozen=True, kw_only=True)
class ParsedIssue:  # without slots: they leave no place for the cached signature
    """An issue cut into pieces. No piece is chosen yet."""

    issue: Issue
    document: Document
    pieces: tuple[Piece, ...]
    prose: str
    toolchain: str | None

    @property
    def vocabulary(self) -> ReportVocabulary:
        return vocabulary_of(self.toolchain)

    @cached_property
    def signature(self) -> Signature | None:
        """The failure that the issue quotes. Its readers go through all text."""
        return find_signature(self.issue.title, self.document, self.pieces)


def read_pieces(issue: Issue, toolchain: str | None) -> ParsedIssue:
    """Parse the description. If it contains no runnable code, parse the author's first comments too.

    ``toolchain`` overrides the toolchain that the text is about.
    """
    document = parse_markdown(issue.body)
    pieces = split_document(document)
    if not has_code(pieces):
        document, pieces = _add_comments(issue, document, pieces)
    return ParsedIssue(
        issue=issue,
        document=document,
        pieces=pieces,
        prose="\n".join(paragraph.text for paragraph in document.prose),
        toolchain=toolchain or recognize_toolchain(issue.repository, f"{issue.title}\n{issue.body}"),
    )


def has_code(pieces: Sequence[Piece]) -> bool:
    """True if a piece is a program. Definitions without a driver and single MLIR operations do not count.

    The author may have added the rest in a comment.
    """
    return any(piece.kind in (Kind.PYTHON, Kind.MLIR) for piece in pieces)


def _add_comments(issue: Issue, document: Document, pieces: tuple[Piece, ...]) -> tuple[Document, tuple[Piece, ...]]:
    """Add the author's first comments, up to the comment with the code."""
    read = document, pieces
    for read in _iterate_comments(issue, document, pieces, again=False):
        if has_code(read[1]):
            break
    return read


def _iterate_comments(
    issue: Issue, document: Document, pieces: tuple[Piece, ...], *, again: bool
) -> Iterator[tuple[Document, tuple[Piece, ...]]]:
    """Yield the document and its pieces with the author's first comment, then with the first two, and so on."""
    for number, comment in enumerate(_list_own(issue)[: _count_readable(issue, again=again)], start=1):
        more = parse_markdown(comment.body, comment=number, first_index=len(document.blocks) + 1)
        pieces = (*pieces, *split_document(more))
        document = replace(document, blocks=(*document.blocks, *more.blocks), prose=(*document.prose, *more.prose))
        yield document, pieces


def _list_own(issue: Issue) -> list[Comment]:
    return [comment for comment in issue.comments if issue.is_by(comment.author)][:MAX_COMMENTS]


def _count_readable(issue: Issue, *, again: bool) -> int:
    """Return how many of the author's first comments fit in the budget. ``again``: all text is read with each."""
    size = len(issue.body)
    left = MAX_READ_CHARS - size
    for number, comment in enumerate(_list_own(issue)):
        size += len(comment.body)
        left -= size if again else len(comment.body)
        if left < 0:
            return number
    return min(MAX_COMMENTS, len(_list_own(issue)))


def describe_unread(parsed: ParsedIssue) -> str:
    """Return what was read of the author's comments; empty if all were, or if more of them would not help."""
    has_program = has_code(parsed.pieces)
    if has_program and any(piece.comment for piece in parsed.pieces):
        return ""  # the comments were read up to the code
    read, own = _count_readable(parsed.issue, again=has_program), _list_own(parsed.issue)
    if read == len(own):
        return ""
    which = f"its author's first {read} of {len(own)} replies" if read else "none of its author's replies"
    return f"the report: {which} were read, since the text is too long ({MAX_READ_CHARS:,} characters are read)"


def add_replies(parsed: ParsedIssue) -> Iterator[ParsedIssue]:
    """Yield the issue with its author's first reply, then with the first two, and so on.

    Yield none if the replies were read already, because the description contains no code.
    """
    if any(piece.comment for piece in parsed.pieces):
        return
    for document, pieces in _iterate_comments(parsed.issue, parsed.document, parsed.pieces, again=True):
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
            quoted=parsed.signature,
        )
    )


def make_span(name: str, piece: Piece) -> Span:
    return Span(file=name, block=piece.block, lines=piece.lines, comment=piece.comment, attachment=piece.attachment)


def choose_device(toolchain: str, devices: NamedDevices) -> str:
    """Return the device that the testcase asks for; the toolchain's first device if the text names none."""
    return devices.chosen or find_toolchain(toolchain).DEVICES[0].name
