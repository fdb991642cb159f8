"""A report as the one comment a maintainer reads: the verdict first, the evidence under it, the rest folded.

GitHub refuses a comment over 65,536 characters; ``MAX_BYTES`` leaves room for what an adopter puts around it. Words
of the issue and of a testcase pass ``bot.quote`` and so appear only inside fences and code spans.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import assert_never

from bot.by_hand import by_hand
from bot.extract.types import Missing, NoRepro, Repro, Span
from bot.matrix import MARK, Row, Tally, by_version, matrix, said
from bot.quote import clean, code, cut, cut_middle, fence, hides_characters, one_line, prose, unmention
from bot.verdict import LikelyFix, Report, Verdict, VerdictKind
from runners.protocol import (
    Answer,
    Bisection,
    Claim,
    CommitRange,
    Ended,
    Exited,
    Finding,
    FindingKind,
    NotRun,
    Observation,
    OutOfMemory,
    Signalled,
    Signature,
    Smaller,
    Suspect,
    TimedOut,
    Variant,
)
from runners.varied import in_words

MAX_BYTES = 60_000

LABELS = {
    VerdictKind.REGRESSION: "Regression",
    VerdictKind.CONFIRMED: "Confirmed",
    VerdictKind.FIXED: "Already fixed",
    VerdictKind.NOT_REPRODUCED: "Not reproduced",
    VerdictKind.DIFFERENT_FAILURE: "Different failure",
    VerdictKind.INVALID_REPRO: "The testcase itself is at fault",
    VerdictKind.FLAKY: "Flaky",
    VerdictKind.INCOMPLETE: "Incomplete",
    VerdictKind.UNTESTABLE: "Not testable here",
    VerdictKind.INCONCLUSIVE: "Inconclusive",
    VerdictKind.NO_REPRO: "No repro found",
}

UNJUDGED = frozenset({VerdictKind.INCOMPLETE, VerdictKind.UNTESTABLE, VerdictKind.NO_REPRO})
"""Nothing was weighed, so a confidence would be noise."""

FINDINGS = {
    FindingKind.OUT_OF_BOUNDS_ACCESS: "The testcase reads or writes outside its own data",
    FindingKind.NAN_INEQUALITY: "Equal modules compare unequal because of NaN",
    FindingKind.VALUES_REPLACED: "A pass replaced live values by constants",
    FindingKind.DEVICE_SPECIFIC: "Devices differ on the same input",
    FindingKind.SIGNATURE_CHANGED: "A pass changed a function's parameters, and the testcase calls it the old way",
    FindingKind.UNDEFINED_OPERAND: "The testcase gives an operation a value for which it is undefined",
    FindingKind.INPUT_MUTATED: "A pass changed its input module in place",
    FindingKind.NOT_IDEMPOTENT: "Applying the pass a second time gives something else",
    FindingKind.GUILTY_PASS: "Passes left out one after another",
    FindingKind.NONDETERMINISTIC: "The same input gives different results",
    FindingKind.API_MOVED: "The testcase uses a name that this release no longer has",
    FindingKind.MISSING: "The testcase needs something that the issue does not give",
}

LEVELS = {
    "pass": "The pass in which compiling fails",
    "parsing": "Compiling fails before any pass",
    "phase": "The phase in which compiling fails",
    "llvm-pass": "LLVM's passes left out one after another",
    "dispatch": "The first dispatch that takes the same and gives something else",
}
"""Of a guilty pass by where it was found; without a level it is one of TVM's."""

VARIANTS = {
    Variant.ORIGINAL: "",
    Variant.PORTED: "ported to this release",
    Variant.RETARGETED: "retargeted to this device",
    Variant.CONTROL: "control: with one change",
}

_LANGUAGES = {".py": "python", ".mlir": "mlir", ".sh": "sh"}
_COMPARE = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/compare/[\w.+-]+\.\.\.[\w.+-]+", re.ASCII)
_MARKER = re.compile(r"<!-- reprobot:1 verdict=([a-z-]+) issue=([0-9a-f]{0,64}) -->", re.ASCII)


@dataclass(frozen=True, slots=True)
class Section:
    """Markdown under a title of ours. Folded sections open with a click; an open one with no title stands bare."""

    title: str
    body: str
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """How much is shown: characters per excerpt and per file, rows of the table, entries of a list."""

    excerpt: int
    source: int
    rows: int
    entries: int


DETAILS = (
    Detail(excerpt=6_000, source=24_000, rows=80, entries=40),
    Detail(excerpt=2_500, source=12_000, rows=60, entries=24),
    Detail(excerpt=1_000, source=6_000, rows=40, entries=12),
    Detail(excerpt=300, source=2_000, rows=24, entries=6),
    Detail(excerpt=0, source=0, rows=16, entries=3),
)
"""From everything to the least: outputs go first, then code, then rows."""


def render_comment(report: Report, limit: int = MAX_BYTES) -> str:
    """The whole comment: Markdown of at most ``limit`` bytes in UTF-8, ending with our hidden marker."""
    for detail in DETAILS:
        parts = [headline(report.verdict), *map(_render, sections(report, detail)), marker(report)]
        text = "\n\n".join(parts) + "\n"
        if len(text.encode()) <= limit:
            return text
    return f"{headline(report.verdict)}\n\n{marker(report)}\n"


def _render(section: Section) -> str:
    if section.folded:
        return f"<details><summary>{section.title}</summary>\n\n{section.body}\n\n</details>"
    return f"**{section.title}**\n\n{section.body}" if section.title else section.body


def marker(report: Report) -> str:
    """The hidden last line by which we find our own comment again."""
    sha256 = report.issue.sha256.lower()
    return f"<!-- reprobot:1 verdict={report.verdict.kind} issue={sha256 if _is_hex(sha256) else ''} -->"


def _is_hex(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{64}", text, re.ASCII) is not None


def read_marker(comment: str) -> tuple[str, str] | None:
    """Verdict and issue digest from the last line of one of our comments, None for any other text.

    Only the last line counts: what a testcase printed stands above it, and cannot spell the marker either.
    """
    found = _MARKER.fullmatch(comment.rstrip().rpartition("\n")[2])
    return (found[1], found[2]) if found else None


def headline(verdict: Verdict) -> str:
    """``**Regression.** It passes on … Confidence: high.``; a headline that repeats the label is not doubled."""
    label, text = LABELS[verdict.kind], prose(verdict.headline)
    if text.casefold().startswith(label.casefold()):
        line = f"**{text[: len(label)]}**{text[len(label) :]}"
    else:
        line = f"**{label}.** {text}".rstrip()
    return line + confidence(verdict)


def under_its_label(verdict: Verdict) -> str:
    """The headline for a place where the label stands already: it is not said twice."""
    label, text = LABELS[verdict.kind], prose(verdict.headline)
    if text.casefold().startswith(f"{label}: ".casefold()):
        text = text[len(label) + 2 :]
        text = text[:1].upper() + text[1:]
    return text + confidence(verdict)


def confidence(verdict: Verdict) -> str:
    """A last, short sentence with the confidence in a word; empty where nothing was weighed."""
    if verdict.kind in UNJUDGED:
        return ""
    word = "high" if verdict.confidence >= 0.9 else "moderate" if verdict.confidence >= 0.6 else "low"
    return f" Confidence: {word}."


def sections(report: Report, detail: Detail = DETAILS[0]) -> Iterator[Section]:
    """Everything under the first line, in the order of a reader's questions; nothing empty."""
    candidates = (
        request(report, detail),
        Section("", _table(report.observations, detail)),
        Section("", "\n\n".join(change(one, forks(report.observations)) for one in report.bisections)),
        Section("", likely_fix(report.likely)),
        Section("Findings", diagnoses(report.findings, detail)),
        Section("Reported and observed", compared(report, detail)),
        Section("Changed to run elsewhere", derived(report.observations, detail)),
        smaller_testcase(report.smaller, detail),
        Section("Run it again", run_again(report)),
        _what_ran(report, detail),
        Section("Output of the runs", _outputs(report.observations, detail), folded=True),
        Section("How this was decided", _conditions(report, detail), folded=True),
    )
    return (section for section in candidates if section.body)


# ------------------------------------------------------------------------------------------ what is missing


def request(report: Report, detail: Detail = DETAILS[0]) -> Section:
    """What is missing and one question for it; an empty body when nothing is."""
    missing = report.extraction.missing
    needs = "\n".join(f"- {_need(one)}" for one in missing[: detail.entries])
    if isinstance(report.extraction, NoRepro):
        asks = "Could you add the shortest code or command line that shows it, as text in a code block?"
        return Section("", "\n\n".join(filter(None, (prose(report.extraction.reason), needs, asks))))
    if not missing:
        return Section("", "")
    what = "it" if len(missing) == 1 else "them"
    asks = f"Could you add {what} to the issue? A small stand-in that fails the same way is just as good."
    return Section("", f"Thank you for the report. To run it, this is missing:\n\n{needs}\n\n{asks}")


def _need(missing: Missing) -> str:
    match missing.kind:
        case "file":
            return f"the file {code(missing.name)}" + (f": it {prose(missing.why)}" if missing.why else "")
        case "name":
            return f"the definition of {code(missing.name)}"
        case "module":
            return f"the module {code(missing.name)}"
        case _:
            return f"the code itself: {code(missing.name)}" if missing.name else "the code itself"


# ------------------------------------------------------------------------------------------ the table


def _table(observations: Sequence[Observation], detail: Detail) -> str:
    if not observations:
        return ""
    whole = matrix(observations)
    devices = whole.devices[: max(2, detail.rows // 8)]
    several = len({row.toolchain for row in whole.rows}) > 1
    lines = [_cells(["version", *map(code, devices)]), _cells(["---"] * (1 + len(devices)))]
    lines += [_row(row, len(devices), several) for row in _shown(whole.rows, detail.rows)]
    left_out = len(whole.rows) - detail.rows, len(whole.devices) - len(devices)
    notes = [f"{n} more {what}" for n, what in zip(left_out, ("rows", "devices"), strict=True) if n > 0]
    return "\n".join(lines) + (f"\n\nNot shown here: {' and '.join(notes)}." if notes else "")


def _shown(rows: Sequence[Row], limit: int) -> Sequence[Row]:
    """Both ends of a table that is too long: the newest releases and the oldest."""
    return rows if len(rows) <= limit else [*rows[: limit // 2], *rows[len(rows) - (limit - limit // 2) :]]


def _row(row: Row, width: int, several: bool) -> str:
    build = code(f"{row.toolchain} {row.version}" if several else row.version)
    variant = f" ({VARIANTS[row.variant]})" if VARIANTS[row.variant] else ""
    fork = f" (a fork, {code(row.fork)}; not a release)" if row.fork else ""
    return _cells([build + fork + variant, *map(_place, row.places[:width])])


def _place(tallies: Sequence[Tally]) -> str:
    return ", ".join(tally.words() for tally in tallies[:3])


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


# ------------------------------------------------------------------------------------------ the range


def forks(observations: Sequence[Observation]) -> Mapping[str, str]:
    """Version → what it really is, of the builds that are no releases."""
    return {seen.version: seen.fork for seen in observations if seen.fork}


def change(bisection: Bisection, forks: Mapping[str, str]) -> str:
    """``Last good A → first bad B`` with what lies between; of a change whose other end nobody saw, what is known."""

    def named(version: str) -> str:
        fork = forks.get(version, "").partition(",")[0]
        return f"{code(version)} (fork {code(fork)})" if fork else code(version)

    match bisection:
        case Bisection(direction="introduced", last_good=str(good), first_bad=str(bad)):
            ends = f"Last good {named(good)} → first bad {named(bad)}{_commits(bisection.commits)}"
        case Bisection(direction="fixed", last_bad=str(bad), first_good=str(good)):
            ends = f"Last bad {named(bad)} → first good {named(good)}{_commits(bisection.commits)}"
        case Bisection(direction="introduced", first_bad=str(bad)):
            ends = f"Bad since {named(bad)} or earlier"
        case Bisection(direction="fixed", first_good=str(good)):
            ends = f"Good since {named(good)} or earlier"
        case _:
            return ""
    skipped = ", ".join(code(version) for version in bisection.skipped[:8]) + (" …" if bisection.skipped[8:] else "")
    said = f"{ends}.{f' Neither good nor bad: {skipped}.' if skipped else ''}{_between_releases(bisection)}"
    return "\n\n".join(filter(None, (said, related(bisection.commits, bisection.suspects, "have changed it"))))


def _between_releases(bisection: Bisection) -> str:
    """Of a change found along nightlies or commits: how sure it is, and on what runs that rests."""
    if not bisection.deep:
        return ""
    sure = f"{min(99.9, int(1000 * bisection.confidence) / 10):g} %"
    first = "First commit with it" if bisection.direction == "introduced" else "First commit without it"
    named = f" {first}: {code(bisection.culprit)}." if bisection.culprit else ""
    notes = "".join(f" {prose(note[:1].upper() + note[1:])}." for note in bisection.notes)
    return f" Found in {bisection.probes} runs, certain to {sure}.{named}{notes}"


def likely_fix(likely: LikelyFix | None) -> str:
    """Commits that may have fixed what no build at hand shows; empty when none is known."""
    if likely is None:
        return ""
    said = f"No build at hand shows the failure; {code(likely.first_good)} is the oldest newer one that passes."
    return f"{said}\n\n{related(likely.commits, likely.suspects, 'have fixed it')}"


def related(commits: CommitRange | None, suspects: Sequence[Suspect], did: str) -> str:
    """``One of 187 commits …; most related to the report:`` and at most five of them, accusing none."""
    if commits is None or not suspects:
        return ""
    count = f"{commits.count} commits" if commits.count else "the commits"
    span = f"{code(commits.start[:12])}..{code(commits.end[:12])}"
    lines = (
        f"- {_commit(one.commit, commits.compare_url)} {code(one.subject, 120)}: {prose(', '.join(one.why))}"
        for one in suspects[:5]
    )
    ranked = "Ranked by words, dates and files alone, which is no evidence against any of them."
    return f"One of {count} in {span} may {did}; most related to the report:\n\n" + "\n".join(lines) + f"\n\n{ranked}"


def _commit(sha: str, compare_url: str) -> str:
    if not _COMPARE.fullmatch(compare_url):
        return code(sha[:10])
    return f"[{code(sha[:10])}](<{compare_url.partition('/compare/')[0]}/commit/{sha}>)"


def _commits(commits: CommitRange | None) -> str:
    if commits is None:
        return ""
    words = (
        f"{commits.count} commits" if commits.count not in (None, 1) else "1 commit" if commits.count else "commits"
    )
    if _COMPARE.fullmatch(commits.compare_url):
        return f", [{words}](<{commits.compare_url}>)"
    return f", {words}: {code(commits.start)} to {code(commits.end)}"


# ------------------------------------------------------------------------------------------ report against runs


def compared(report: Report, detail: Detail = DETAILS[0]) -> str:
    """The reported failure beside each distinct one that was seen, as one fence."""
    ran = [seen for seen in report.observations if not isinstance(seen.ended, NotRun)]
    if not ran:
        return ""
    reported = _said(report.extraction.claim)
    lines = [f"reported: {reported}" if reported else "reported: no message that runs could be compared with"]
    lines += _failures(ran, detail.entries)
    return fence("\n".join(lines))


def _said(claim: Claim) -> str:
    if claim.signature:
        return described(claim.signature)
    pairs = (("prints", claim.actual), ("instead of", claim.expected))
    return ", ".join(f"{word} {_line(text)}" for word, text in pairs if text.strip())


def described(signature: Signature, limit: int = 300) -> str:
    """``Type: message, in frame ← frame`` on one line; strangers' words, unquoted."""
    frames = " ← ".join(signature.frames[:3])
    parts = (_line(signature.type, 120), _line(signature.message, limit))
    return ": ".join(filter(None, parts)) + (f", in {_line(frames, limit)}" if frames else "")


def _line(text: str, limit: int = 300) -> str:
    return one_line(clean(text[: 4 * limit]), limit)


def _failures(ran: Sequence[Observation], limit: int) -> list[str]:
    """One line per distinct failure: the reported one first, passes left out. What may be long, and then scrolls out
    of sight, comes last."""
    groups: dict[tuple[Answer, str], list[str]] = {}
    for seen in sorted((one for one in ran if one.answer is not Answer.GOOD), key=lambda one: one.answer):
        what = described(seen.signature) if seen.signature else said(seen)
        why = f" ({_line(seen.why)})" if seen.why and seen.answer is Answer.SKIP else ""
        groups.setdefault((seen.answer, f"{what}{why}"), []).append(seen.version)
    names = {Answer.BAD: "matches on", Answer.SKIP: "differs on", Answer.GOOD: ""}
    return [f"{names[answer]} {', '.join(by_version(on))}: {what}" for (answer, what), on in groups.items()][:limit]


def diagnoses(findings: Sequence[Finding], detail: Detail = DETAILS[0]) -> str:
    """Each finding in our words, with the guest's summary and evidence quoted."""
    return "\n\n".join(_finding(one, detail) for one in _telling(findings)[: detail.entries])


def _telling(findings: Sequence[Finding]) -> Sequence[Finding]:
    """That no pass of LLVM's is to blame is worth a reader's time only where nothing else is known of the cause.

    The document keeps it, as all evidence.
    """
    telling = [one for one in findings if not _names_no_pass(one)]
    known = [one for one in telling if one.kind is not FindingKind.API_MOVED]
    return telling if known else findings


def _names_no_pass(finding: Finding) -> bool:
    evidence = finding.evidence
    of_llvm = finding.kind is FindingKind.GUILTY_PASS and evidence.get("level") == "llvm-pass"
    return of_llvm and evidence.get("name") == "none"


def _finding(finding: Finding, detail: Detail) -> str:
    about = FINDINGS[finding.kind]
    if finding.kind is FindingKind.GUILTY_PASS:
        about = LEVELS.get(str(finding.evidence.get("level")), about)
    said = f"{about}: {code(finding.summary, 400)}" if finding.summary else about
    named = finding.kind is not FindingKind.GUILTY_PASS or finding.evidence.get("name") != "none"
    shown = {name: value for name, value in finding.evidence.items() if named and name != DIFFERENCE}
    evidence = "\n".join(f"{name}: {_plainly(value)}" for name, value in shown.items())
    parts = [
        said,
        fence(cut(evidence, min(1_500, 200 + detail.excerpt))) if shown else "",
        _difference(finding, detail),
    ]
    return "\n\n".join(part for part in parts if part)


DIFFERENCE = "difference"
"""Evidence that is a diff, line by line."""


def _difference(finding: Finding, detail: Detail) -> str:
    lines = finding.evidence.get(DIFFERENCE)
    if not isinstance(lines, list | tuple) or not lines:
        return ""
    text = cut("\n".join(str(line) for line in lines[:80]), 200 + detail.excerpt)
    changed = any(str(line).startswith(("+", "-")) for line in lines)
    what = "The module before and after" if changed else "The module that it was given"
    return f"<details><summary>{what}</summary>\n\n{fence(text, 'diff')}\n\n</details>"


def _plainly(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def derived(observations: Sequence[Observation], detail: Detail = DETAILS[0]) -> str:
    """How the texts that were not run as posted differ from it: those rows are evidence of their own."""
    texts: dict[tuple[Variant, str, tuple[str, ...]], list[str]] = {}
    for seen in observations:
        if seen.changes:
            texts.setdefault((seen.variant, seen.device, seen.changes), []).append(seen.version)
    shown = list(texts.items())[: detail.entries]
    return "\n\n".join(
        f"{_DERIVED[variant]} {', '.join(map(code, by_version(dict.fromkeys(versions))))} on {code(device)}:\n\n"
        + fence(cut("\n".join(changes), 2_000))
        for (variant, device, changes), versions in shown
    )


_DERIVED = {
    Variant.ORIGINAL: "As posted, on",
    Variant.PORTED: "Ported to the API of",
    Variant.RETARGETED: "For another device, on",
    Variant.CONTROL: "As a control, on",
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


def run_again(report: Report) -> str:
    """The command that repeats all of it; where runs disagree, also one that failed and one that was clean."""
    if not report.observations:
        return ""
    lines = by_hand(report)
    own = f"By hand, in the folder of the testcase:\n\n{fence(cut(lines, 4_000), 'sh')}" if lines else ""
    return "\n\n".join(filter(None, (fence(cut(report.command, 2_000), "sh"), own)))


# ------------------------------------------------------------------------------------------ folded: what ran


def _what_ran(report: Report, detail: Detail) -> Section:
    repro = report.extraction
    if not isinstance(repro, Repro):
        return Section("", "")
    files, repairs = len(repro.testcase.files), len(repro.repairs)
    title = f"What {'ran' if report.observations else 'was read'}: {_count(files, 'file')}, " + (
        _count(repairs, "repair") if repairs else "as posted"
    )
    return Section(title, "\n\n".join(_code_that_ran(repro, detail)), folded=True)


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


def language(file: str) -> str:
    """The fence's language by the file's ending; ``text`` for all we don't name."""
    return _LANGUAGES.get(PurePosixPath(file).suffix.lower(), "text")


# ------------------------------------------------------------------------------------------ folded: the rest


def _outputs(observations: Sequence[Observation], detail: Detail) -> str:
    """The end of each distinct output, the reported failure first; what repeats is named once."""
    groups: dict[str, list[Observation]] = {}
    for seen in sorted(observations, key=lambda one: one.answer):
        if seen.excerpt.strip():
            groups.setdefault(seen.excerpt, []).append(seen)
    if not detail.excerpt:
        return ""
    shown = list(groups.items())[: detail.entries]
    return "\n\n".join(f"{_runs(seen)}\n\n{fence(cut_middle(text, detail.excerpt))}" for text, seen in shown)


def _runs(seen: Sequence[Observation]) -> str:
    first = seen[0]
    also = by_version(one.version for one in seen[1:] if one.version != first.version)
    under = in_words(first.varied)
    where = f"{code(first.version)} on {code(first.device)}, run {first.attempt}" + (
        f" with {under}" if under else ""
    )
    more = f" (the same on {', '.join(map(code, also[:8]))})" if also else ""
    return f"{MARK[first.answer]} {where}: {ended(first.ended)}, {first.seconds:.1f} s{more}"


def ended(how: Ended, quote: Callable[[str], str] = code) -> str:
    """How a run ended, in words; ``quote`` takes the words that are not ours."""
    match how:
        case Exited(code=number):
            return f"exit code {number}"
        case Signalled(code=number):
            return f"signal {number} ({signal_name(number)})"
        case TimedOut(where=where, clock=clock):
            limit = "time limit" if clock == "wall" else "limit of processor time"
            return f"stopped at the {limit}" + (f" in {quote(where)}" if where else "")
        case OutOfMemory(limit_bytes=size):
            return f"out of memory at {size / 1024**3:.1f} GiB" if size else "out of memory"
        case NotRun(why=why):
            return f"not run: {quote(why)}" if why else "not run"
        case _:
            assert_never(how)


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; the number's own word for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"


def _conditions(report: Report, detail: Detail) -> str:
    lines = [prose(text) for text in said_of_the_decision(report)[: detail.entries]]
    built = {f"{seen.toolchain} {seen.version}": seen.environment for seen in report.observations if seen.environment}
    digests = [f"{code(build)} {code(built[build][:19])}" for build in by_version(built)[: detail.entries]]
    lines += [f"Environments: {', '.join(digests)}"] if digests else []
    return "\n".join(f"- {line}" for line in lines)


def said_of_the_decision(report: Report) -> tuple[str, ...]:
    """The verdict's reasons and the conditions of the run, each once; empty where nothing ran. Not yet escaped."""
    if not report.observations:
        return ()
    engines = dict.fromkeys(f"sandbox: {seen.engine}" for seen in report.observations if seen.engine)
    said = dict.fromkeys((*report.verdict.reasons, *report.notes, *engines))
    return tuple(text[:1].upper() + text[1:] for text in said)
