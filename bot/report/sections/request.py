"""The request for missing parts of a testcase: the missing parts, and how to add each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.extract.types import OUT_OF_REACH, Extraction, Missing, NoRepro, Repro, is_binary_name
from bot.report.quote import escape_prose, quote_code
from bot.report.sections.shape import DETAILS, Detail, Section
from bot.verdict.verdict import Report, VerdictKind
from runners.core.protocol import ClaimKind

MAX_VISIBLE = 6


def render_request(report: Report, detail: Detail = DETAILS[0]) -> Section:
    """Return the missing parts, each with how to add it, and one request; empty if the testcase is complete."""
    if report.verdict.kind is VerdictKind.NO_CLAIM:
        return Section("", _OFFER if isinstance(report.extraction, Repro) else "")
    missing = report.extraction.missing
    if any(one.kind in OUT_OF_REACH for one in missing):
        return Section("", "")
    if isinstance(report.extraction, NoRepro) and all(one.kind == "code" for one in missing):
        missing = ()  # the reason states it, and the request asks for it
    shown = missing[: min(MAX_VISIBLE, detail.entries)]
    needs = [f"- {line}" for line in _list_needs(shown)]
    needs += [f"- and {len(missing) - len(shown)} more"] if len(missing) > len(shown) else []
    why = report.extraction.reason if isinstance(report.extraction, NoRepro) else ""
    if not needs and not why:
        return Section("", "")
    reason = "" if why == report.verdict.headline else escape_prose(why)
    listed = "\n".join(needs)
    return Section(
        "", "\n\n".join(filter(None, (reason, listed, _describe_steps(report.extraction, follows=report.follows))))
    )


_OFFER = "If this text does report a failure, a maintainer can start a run with `/repro run`."
"""For a text with a testcase alone: without one, there is nothing to run."""


def _describe_steps(extraction: Extraction, *, follows: bool) -> str:
    """Return the one request. The bot reads the issue again after an edit, and the author's replies."""
    if isinstance(extraction, NoRepro) and not any(one.kind != "code" for one in extraction.missing):
        asks = "Could you add the shortest code or command line that shows the failure?"
    else:
        them = "this part" if len(extraction.missing) == 1 else "these parts"
        fails = "crashes" if extraction.claim.kind is ClaimKind.CRASH else "fails"
        asks = f"Could you add {them}? Anything smaller that {fails} in the same way is fine."
    then = ": a run starts by itself (`/repro run` starts one too)" if follows else "; then `/repro run` starts a run"
    return f"**Next step:** {asks} Edit the issue, or reply with a code block{then}."


def _list_needs(missing: Sequence[Missing]) -> Iterator[str]:
    """Yield what to add for each missing part. The parts that are added in one way share a line."""
    groups: dict[str, list[Missing]] = {}
    for one in missing:
        groups.setdefault(_find_shared_way(one) or repr(one), []).append(one)
    for parts in groups.values():
        way = _find_shared_way(parts[0])
        if way and len(parts) > 1:
            names = [quote_code(one.name) for one in parts]
            noun, add = _TOGETHER[way]
            yield f"the {noun} {', '.join(names[:-1])} and {names[-1]}: {add}"
        else:
            yield from map(_describe_missing, parts)


def _find_shared_way(missing: Missing) -> str:
    """Return the key of `_TOGETHER` for a part; empty for a part with a reason or a request of its own."""
    if missing.kind == "name":
        return "name"
    is_link = missing.name.startswith(("https://", "http://"))
    if missing.kind != "file" or (missing.why and not is_binary_name(missing.name)):
        return ""
    return "link" if is_link and not missing.why else "binary" if is_binary_name(missing.name) else "file"


_TOGETHER = {
    "name": ("definitions of", "add the lines that define them"),
    "link": ("programs behind the links", "add the text of the one that fails in a code block"),
    "binary": ("files", "they are binary files, which no testcase can hold; let the testcase create them"),
    "file": ("files", "they are not attached; paste their text in code blocks, or attach them as a `.zip`"),
}


_PASTE = "paste its text in a code block, or attach it as a `.zip`"


def _describe_missing(missing: Missing) -> str:
    match missing.kind:
        case "file":
            name = quote_code(missing.name)
            if missing.name.startswith(("https://", "http://")) and not missing.why:
                return f"the program behind the link {name}: add its text in a code block"
            if is_binary_name(missing.name):
                return f"the file {name}: it is a binary file, which no testcase can hold; let the testcase create it"
            if missing.why:
                return f"the file {name}: it {escape_prose(missing.why)}; {_PASTE}"
            return f"the file {name}: it is not attached; {_PASTE}"
        case "name":
            return f"the definition of {quote_code(missing.name)}: add the lines that define it"
        case "module":
            return f"the module {quote_code(missing.name)}: paste its code, or take its use out of the testcase"
        case "call":
            return f"{escape_prose(missing.name)}: add it as text in a code block"
        case "rest":
            return f"the rest of {escape_prose(missing.name)}; attach a long program as a `.zip`"
        case _:
            code = f"the code itself: {quote_code(missing.name)}" if missing.name else "the code itself"
            return f"{code}; add it as text in a code block"
