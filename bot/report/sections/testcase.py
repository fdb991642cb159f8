"""The testcases that ran: as posted, ported, changed for another device, and minimized."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from bot.extract.types import Repro, Span
from bot.report.matrix import sort_versions
from bot.report.quote import cut_end, cut_middle, has_hidden_characters, quote_block, quote_code
from bot.report.sections.run_again import PATCH, find_patch, render_commands
from bot.report.sections.shape import DETAILS, STRANGERS, Detail, Section
from bot.verdict.verdict import Report
from runners.core.protocol import Observation, Smaller, Variant


def render_derived(observations: Sequence[Observation], detail: Detail = DETAILS[0]) -> str:
    """Return the changes of each variant of the testcase. The rows of a variant are evidence of their own."""
    texts: dict[tuple[Variant, str, tuple[str, ...]], list[str]] = {}
    for seen in observations:
        if seen.changes:
            texts.setdefault((seen.variant, seen.device, seen.changes), []).append(seen.version)
    shown = list(texts.items())[: detail.entries]
    return "\n\n".join(
        _DERIVED[variant].format(
            device=quote_code(device), versions=", ".join(map(quote_code, sort_versions(dict.fromkeys(versions))))
        )
        + quote_block(cut_end("\n".join(changes), 2_000))
        for (variant, device, changes), versions in shown
    )


_DERIVED = {
    Variant.ORIGINAL: "As posted, on {versions} with {device}:\n\n",
    Variant.PORTED: "Ported to the API of {versions}, for {device}:\n\n",
    Variant.RETARGETED: "For {device} instead, on {versions}:\n\n",
    Variant.CONTROL: "As a control, on {versions} with {device}:\n\n",
}


def render_smaller(smaller: Smaller | None, detail: Detail = DETAILS[0]) -> Section:
    """Return the minimized testcase, and the runs that show the same failure."""
    if smaller is None:
        return Section("", "")
    title = f"Smaller testcase: {smaller.after} lines instead of {smaller.before}"
    return Section(title, render_cut_down(smaller, detail), folded=True, quotes=True)


def render_cut_down(smaller: Smaller, detail: Detail = DETAILS[0]) -> str:
    """Return steps and files of the minimized testcase, then the runs that confirm its failure."""
    parts = [quote_block("\n".join(map(shlex.join, smaller.testcase.steps)), "sh")]
    for name, text in list(smaller.testcase.files.items())[: detail.entries]:
        parts += [f"{quote_code(name)}:", quote_block(cut_middle(text, detail.source), find_language(name))]
    failing = f"Each reduction step failed in the same way on {quote_code(smaller.version)}"
    passing = f" and passed on {quote_code(smaller.control)}" if smaller.control else ""
    ran_out = {
        "minimal": "",
        "probes": "; more runs might reduce it further",
        "time": "; more time might reduce it further",
    }
    again = f"the result did so {smaller.confirmed} more times ({smaller.probes} runs{ran_out[smaller.stopped]})"
    return "\n\n".join([*parts, f"{failing}{passing}, and {again}."])


def render_reproduction(report: Report, detail: Detail) -> Section:
    """Return the commands, files, packages and repairs of the testcase, and its variants, as a folded section."""
    repro = report.extraction
    if not isinstance(repro, Repro):
        return Section("", "")
    files, repairs = len(repro.testcase.files), len(repro.repairs)
    if not report.observations and not files and not repro.testcase.steps:
        return Section("", "")
    held = _format_count(files, "file") if files else "the commands"
    does = "Reproduce it by hand: commands and" if report.observations and files else ""
    does = does or ("Reproduce it by hand:" if report.observations else "What was read:")
    title = f"{does} {held}, " + (_format_count(repairs, "repair") if repairs else "as posted")
    version, patch = find_patch(report)
    shown = [seen for seen in report.observations if (seen.variant, seen.version) != (Variant.PORTED, version)]
    derived = render_derived(shown, detail)
    variants = f"**Changed to run elsewhere**\n\n{derived}" if derived else ""
    commands = render_commands(report)
    ported = f"{quote_code(PATCH)}, which ports the testcase to {quote_code(version)}:\n\n" if patch else ""
    ported += quote_block(patch, "diff") if patch else ""
    body = (commands, *_render_files(repro, detail, has_steps=bool(commands)), ported, variants)
    return Section(title, "\n\n".join(filter(None, body)), folded=True, quotes=True)


def render_unapproved(repro: Repro, limit: int) -> str:
    """Return the testcase for the approving person, folded, in at most ``limit`` bytes.

    The issue's text is not a substitute: a reader may overlook a part of it that becomes the testcase.
    """
    for detail in DETAILS[:-1]:
        files = repro.testcase.files
        is_whole = len(files) <= detail.entries and all(len(text) <= detail.source for text in files.values())
        cut = [] if is_whole else ["**Only a part is shown.** `reprobot extract` prints the whole testcase."]
        body = "\n\n".join([STRANGERS, *cut, *_render_files(repro, detail)])
        text = f"<details><summary>The testcase that waits for approval</summary>\n\n{body}\n\n</details>"
        if len(text.encode()) <= limit:
            return text
    return "The testcase that waits for approval is too long to be shown here: `reprobot extract` prints it."


def _format_count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _render_files(repro: Repro, detail: Detail, *, has_steps: bool = False) -> Iterator[str]:
    """Yield files, steps, packages and repairs. ``has_steps``: the steps are in the commands above."""
    for name, text in list(repro.testcase.files.items())[: detail.entries]:
        yield f"{quote_code(name)}{_format_provenance(name, repro.spans)}:"
        yield quote_block(cut_middle(text, detail.source), find_language(name))
        yield from _mention_quoting(text)
    if repro.testcase.steps and not has_steps:
        yield "Steps:"
        yield quote_block(cut_end("\n".join(map(shlex.join, repro.testcase.steps)), 4_000), "sh")
    if repro.testcase.requirements:
        yield "Packages beside the compiler: " + ", ".join(
            map(quote_code, repro.testcase.requirements[: detail.entries])
        )
    if repro.repairs:
        repairs = (f"- {quote_code(one.kind)}: {quote_code(one.detail)}" for one in repro.repairs[: detail.entries])
        yield "Changed so that it runs:\n\n" + "\n".join(repairs)


def _mention_quoting(text: str) -> Iterator[str]:
    """Yield a sentence if quoting changed the code, so that readers do not blame the reporter."""
    if has_hidden_characters(text):
        yield "Invisible characters are removed above."


def _format_provenance(file: str, spans: Sequence[Span]) -> str:
    places = [describe_provenance(span) for span in spans if span.file == file]
    return ", from " + " and ".join(places[:10]) if places else ""


def describe_provenance(span: Span, quote: Callable[[str], str] = quote_code) -> str:
    """Return the place of a part of the testcase in the issue: ``block 2 (lines 12-48)``.

    ``quote`` escapes a stranger's words, as in `describe_ending`.
    """
    first, last = span.lines
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    if span.attachment:
        return f"the linked {quote(span.attachment)}"
    return f"block {span.block} ({lines})" if span.block else lines


_LANGUAGES = {".py": "python", ".mlir": "mlir", ".sh": "sh"}


def find_language(file: str) -> str:
    """Return the language of a code block by the file's suffix; ``text`` for an unknown suffix."""
    return _LANGUAGES.get(PurePosixPath(file).suffix.lower(), "text")
