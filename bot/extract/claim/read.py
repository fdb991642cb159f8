"""Read the reporter's claim: kind, signature, quoted output, versions, devices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.extract.blocks.markdown import Prose
from bot.extract.blocks.pieces import Kind
from bot.extract.blocks.sections import IssueSection, classify_heading
from bot.extract.claim.accused import list_accused
from bot.extract.claim.failure import find_caught, list_wished
from bot.extract.claim.kinds import phrases
from bot.extract.claim.kinds.settle import Draft, settle_claim
from bot.extract.claim.quoted_output import read_quoted_output
from bot.extract.claim.source import CODE, ClaimSource, find_other_system, join_prose
from bot.extract.claim.values.drawn import drop_drawn_values
from bot.extract.claim.values.shown import list_shown_values
from bot.extract.claim.versions import Passage, find_good_versions, find_replaced_versions, find_versions
from bot.extract.vocabulary import any_of, join_words
from runners.core.failure.compare import is_left_out_assertion
from runners.core.failure.oracle import COMPILER_DIAGNOSTIC, OUTPUT
from runners.core.protocol import Claim, ClaimKind, Signature
from runners.toolchains import find_toolchain

MAX_TOLD_CHARS = 8_000


def read_claim(source: ClaimSource) -> Claim:
    """Return the claim; its kind is `ClaimKind.UNKNOWN` if the text names no failure."""
    passages = list(_collect_passages(source))
    said = f"{source.title}\n{join_prose(source)}"
    replaced = find_replaced_versions([p.intro for p in source.pieces if p.kind not in CODE], said, source.toolchain)
    good = tuple(dict.fromkeys((*find_good_versions(passages, source.toolchain), *replaced)))
    intended = phrases.IS_MEANT.search(join_prose(source)) is not None
    shown = list_shown_values(source.document, source.pieces)
    settled = settle_claim(source, _read_quoted(source, good), intended=intended, shows_values=bool(shown))
    signature = settled.signature
    return Claim(
        kind=settled.kind,
        signature=signature,
        versions=tuple(v[:512] for v in find_versions(passages, source.toolchain)),
        good=tuple(v[:512] for v in good),
        devices=tuple(d[:512] for d in source.devices[:8]),
        actual=settled.actual,
        expected=settled.expected,
        told=_collect_told(source) if _may_quote_another(signature, source) else "",
        accused=list_accused(source.title),
        intended=intended and signature is not None and signature.type != OUTPUT,
        wished=list_wished(source.title, source.document),
        shown=shown if settled.kind is ClaimKind.WRONG_RESULT else (),
        system=find_other_system(source, signature.message if signature is not None else ""),
        sometimes=phrases.SOMETIMES.search(said) is not None,
    )


# ---------------------------------------------------------------------------------------------- what is quoted


def _read_quoted(source: ClaimSource, good: tuple[str, ...]) -> Draft:
    """Return the failure and the output that the report quotes, whatever its words say about them."""
    actual, expected = read_quoted_output(source.document, source.pieces, good, source.code)
    actual = drop_drawn_values(_keep_results(actual), source.code)
    if "__version__" in source.code:  # the version of the build is not a result
        actual, expected = (_VERSION_ROW.sub("", text).strip("\n") for text in (actual, expected))
    signature = source.quoted or find_caught(source.pieces)
    return Draft(signature=signature, actual=actual, expected=expected)


def _keep_results(output: str) -> str:
    """Return the rows of an output without typed remarks, the banner of a tool's version, and the title of a dump."""
    rows = output.split("\n")
    kept = [row for row in rows if not _NO_RESULT_ROW.search(row)]
    if not any(map(str.strip, kept)):
        kept = rows
    return "\n".join(row for row in kept if not _DUMP_ROW.match(row)).strip("\n")


_NO_RESULT_ROW = re.compile(r"^[ \t]*#[ \t]+\w|\bversion[: ]+v?\d+\.\d+\.\d", re.I)
_DUMP_ROW = re.compile(r"^[ \t]*// ?-{3,}// ?IR Dump\b")
"""The row above a program that MLIR prints before or after a pass."""
_VERSION_ROW = re.compile(r"^['\"]?(?:[A-Za-z][\w-]{0,30}[ :=]{1,3}){0,2}v?\d+\.\d+\.\d[\w.+]*['\"]?$\n?", re.M)
"""A row with the version of the build, maybe behind the name of the compiler."""


_MAY_BE_ONE_OF_TWO = (OUTPUT, COMPILER_DIAGNOSTIC)
"""Types of signatures beside which the report may quote another failure: that of the run after a compilation."""


def _may_quote_another(signature: Signature | None, source: ClaimSource) -> bool:
    """True if a failure beside the quoted one may be a reported one, such as an error above an assertion."""
    if signature is None or signature.type in _MAY_BE_ONE_OF_TWO:
        return True
    vocabulary = None if source.toolchain is None else find_toolchain(source.toolchain).FAILURES
    return vocabulary is not None and is_left_out_assertion(signature, vocabulary)


def _collect_told(source: ClaimSource) -> str:
    """Return the words in which the report may describe its failure: all except code and the environment.

    Code without a fence is in the prose. A traceback quotes its lines for any failure.
    """
    prose = (p.text for p in source.document.prose if classify_heading(p.section) is not IssueSection.ENVIRONMENT)
    quoted = (p.text for p in source.pieces if p.kind not in CODE and p.text.strip() not in source.code)
    code = {row.strip() for row in source.code.split("\n")}
    rows = (row for text in (source.title, *prose, *quoted) for row in text.split("\n") if row.strip() not in code)
    return "\n".join(rows)[:MAX_TOLD_CHARS]


# ---------------------------------------------------------------------------------------------- passages


def _collect_passages(source: ClaimSource) -> Iterator[Passage]:
    """Yield the passages that may name versions: the form's fields, the prose, the title, printed output."""
    prose: list[Prose] = [p for p in source.document.prose if not p.heading]
    headed = [p for p in prose if classify_heading(p.section) is IssueSection.ENVIRONMENT]
    rest = [p for p in prose if classify_heading(p.section) is not IssueSection.ENVIRONMENT]
    yield from (Passage(text=p.text, heading=p.section) for p in headed)
    blocks = [p for p in source.pieces if p.kind in (Kind.OUTPUT, Kind.SHELL, Kind.CONFIG)]
    traces = [p for p in source.pieces if p.kind is Kind.TRACEBACK]
    yield from (Passage(text=b.text, heading=b.heading) for b in blocks if b.section is IssueSection.ENVIRONMENT)
    yield from (Passage(text=p.text) for p in rest)
    yield Passage(text=source.title)
    yield from (Passage(text=p.text) for p in source.document.prose if p.heading)
    codes = (source.code, *(piece.text for piece in source.pieces if piece.kind in CODE))
    if any("__version__" in code for code in codes):  # the program prints the version it runs on
        alone = [line for printed in (*blocks, *traces) for line in _VERSION_ALONE.findall(printed.text)[:3]]
        yield from (Passage(text=line, heading="version") for line in alone)
    for block in blocks:
        if block.section is not IssueSection.ENVIRONMENT:
            yield from (Passage(text=line) for line in block.text.split("\n")[:400] if _VERSION_LINE.search(line))
    for trace in traces:
        found = re.findall(r"(?:site|dist)-packages/\S{1,200}", trace.text[:100_000])
        yield Passage(text="\n".join(found[:50]))


_VERSION_ALONE = re.compile(r"^['\"]?(\d+\.\d+[\w.+]*)['\"]?$", re.M)
_VERSION_LINE = re.compile(any_of(("__version__", *join_words(lambda words: words.versions.line_patterns))), re.I)
