"""The texts that ran: as posted, ported, and cut down."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from bot.extract.types import Repro, Span
from bot.report.matrix import by_version
from bot.report.quote import clean, code, cut, cut_middle, fence, hides_characters, unmention
from bot.report.sections.shape import DETAILS, Detail, Section
from bot.verdict.verdict import Report
from runners.core.protocol import Observation, Smaller, Variant


def derived(observations: Sequence[Observation], detail: Detail = DETAILS[0]) -> str:
    """How the texts that were not run as posted differ from it: those rows are evidence of their own."""
    texts: dict[tuple[Variant, str, tuple[str, ...]], list[str]] = {}
    for seen in observations:
        if seen.changes:
            texts.setdefault((seen.variant, seen.device, seen.changes), []).append(seen.version)
    shown = list(texts.items())[: detail.entries]
    return "\n\n".join(
        _DERIVED[variant].format(
            device=code(device), versions=", ".join(map(code, by_version(dict.fromkeys(versions))))
        )
        + fence(cut("\n".join(changes), 2_000))
        for (variant, device, changes), versions in shown
    )


_DERIVED = {
    Variant.ORIGINAL: "As posted, on {versions} with {device}:\n\n",
    Variant.PORTED: "Ported to the API of {versions}, for {device}:\n\n",
    Variant.RETARGETED: "For {device} instead, on {versions}:\n\n",
    Variant.CONTROL: "As a control, on {versions} with {device}:\n\n",
}


def smaller_testcase(smaller: Smaller | None, detail: Detail = DETAILS[0]) -> Section:
    """The testcase that was cut down, and what shows that it is the same failure."""
    if smaller is None:
        return Section("", "")
    return Section(f"Smaller testcase: {smaller.after} lines instead of {smaller.before}", cut_down(smaller, detail))


def cut_down(smaller: Smaller, detail: Detail = DETAILS[0]) -> str:
    """Steps and files, then how sure it is that they fail as the whole testcase does."""
    parts = [fence("\n".join(map(shlex.join, smaller.testcase.steps)), "sh")]
    for name, text in list(smaller.testcase.files.items())[: detail.entries]:
        parts += [f"{code(name)}:", fence(cut_middle(text, detail.source), language(name))]
    failing = f"Each step down failed the same way on {code(smaller.version)}"
    passing = f" and passed on {code(smaller.control)}" if smaller.control else ""
    ran_out = {"minimal": "", "probes": "; more runs might shorten it", "time": "; more time might shorten it"}
    again = f"what is left did so {smaller.confirmed} times more ({smaller.probes} runs{ran_out[smaller.stopped]})"
    return "\n\n".join([*parts, f"{failing}{passing}, and {again}."])


def what_ran(report: Report, detail: Detail) -> Section:
    repro = report.extraction
    if not isinstance(repro, Repro):
        return Section("", "")
    files, repairs = len(repro.testcase.files), len(repro.repairs)
    title = f"What {'ran' if report.observations else 'was read'}: {_count(files, 'file')}, " + (
        _count(repairs, "repair") if repairs else "as posted"
    )
    return Section(title, "\n\n".join(_code_that_ran(repro, detail)), folded=True, quotes=True)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _code_that_ran(repro: Repro, detail: Detail) -> Iterator[str]:
    for name, text in list(repro.testcase.files.items())[: detail.entries]:
        yield f"{code(name)}{_provenance(name, repro.spans)}:"
        yield fence(cut_middle(text, detail.source), language(name))
        yield from _changed(text, language(name))
    if repro.testcase.steps:
        yield "Steps:"
        yield fence(cut("\n".join(map(shlex.join, repro.testcase.steps)), 4_000), "sh")
    if repro.testcase.requirements:
        yield "Packages beside the compiler: " + ", ".join(map(code, repro.testcase.requirements[: detail.entries]))
    if repro.repairs:
        repairs = (f"- {code(one.kind)}: {code(one.detail)}" for one in repro.repairs[: detail.entries])
        yield "Changed so that it runs:\n\n" + "\n".join(repairs)


def _changed(text: str, written: str) -> Iterator[str]:
    """What our quoting did to the code, so that nobody takes it for the reporter's."""
    if hides_characters(text):
        yield "Characters that print as nothing are left out above."
    if unmention(clean(text), written) != clean(text):
        yield "Each `@` is set apart from the name after it, so that nobody is mentioned by accident."


def _provenance(file: str, spans: Sequence[Span]) -> str:
    places = [provenance(span) for span in spans if span.file == file]
    return ", from " + " and ".join(places[:10]) if places else ""


def provenance(span: Span, quote: Callable[[str], str] = code) -> str:
    """``block 2 (lines 12-48)``: where in the issue a part of the testcase stands; ``quote`` as for ``ended``."""
    first, last = span.lines
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    if span.attachment:
        return f"the linked {quote(span.attachment)}"
    return f"block {span.block} ({lines})" if span.block else lines


_LANGUAGES = {".py": "python", ".mlir": "mlir", ".sh": "sh"}


def language(file: str) -> str:
    """The fence's language by the file's ending; ``text`` for all we don't name."""
    return _LANGUAGES.get(PurePosixPath(file).suffix.lower(), "text")
