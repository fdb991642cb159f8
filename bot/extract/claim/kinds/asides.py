"""Recognize failures that a report only mentions."""

from __future__ import annotations

import re

from bot.extract.claim.failure import list_failure_pieces
from bot.extract.claim.kinds import phrases
from bot.extract.claim.kinds.classify import calls_it_an_error
from bot.extract.claim.source import CODE, ClaimSource, join_prose
from runners.core.failure.oracle import OUTPUT
from runners.core.failure.parse import NATIVE, is_bare_crash, parse_signature
from runners.core.protocol import Signature
from runners.toolchains import ALL_FAILURES


def is_beside_the_point(source: ClaimSource, signature: Signature, printed: str) -> bool:
    """True for a failure that only a remark names, in a report that quotes printed output (``printed``)."""
    return _is_in_parentheses(source, signature) or _is_aside(source, signature, printed)


def _is_aside(source: ClaimSource, signature: Signature, printed: str) -> bool:
    """True for a failure that only one sentence of the prose names, while a block shows printed output.

    ``Wrapping the argument is not a way out, that dies with …``: the report is about the printed values. A signal may
    have any of its names: ``the bigger program also had segfaults``.
    """
    if calls_it_an_error(source.title) or signature.type == OUTPUT:
        return False
    blocks = [piece.text for piece in source.pieces if piece.kind not in CODE]
    named = re.compile(re.escape(signature.message[:60] or signature.type.rpartition(":")[2]))
    if signature.type in NATIVE and not signature.message:
        named = phrases.CRASH
        if _shows_crash(source):
            return False
    told = any(named.search(prose.text) for prose in source.document.prose)
    shown = printed.strip().split("\n")[0].strip()
    return told and not any(map(named.search, blocks)) and any(shown in block for block in blocks)


def _is_in_parentheses(source: ClaimSource, signature: Signature) -> bool:
    """True for a signal that the text names in parentheses alone: ``(one process also died with SIGSEGV)``."""
    bare = is_bare_crash(signature)
    outside = f"{source.title}\n{phrases.ASIDE.sub(' ', join_prose(source))}"
    return bare and phrases.CRASH.search(outside) is None and not _shows_crash(source)


def _shows_crash(source: ClaimSource) -> bool:
    """True if a block of the text shows that a program died by a signal."""
    quoted = (parse_signature(piece.text, ALL_FAILURES) for piece in list_failure_pieces(source.pieces))
    return any(found is not None and found.type in NATIVE for found in quoted)
