"""``reprobot report SCRIPT``: make an issue of a script. Run the script, reduce it, check the newest release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from bot.extract import NoRepro, Repro, extract
from bot.extract.vocabulary import recognize_toolchain
from bot.plan import RunOptions, make_plan
from bot.report.issue_text import BugReport, describe_runs
from runners.cells.run import run_plan
from runners.core.bench import Bench
from runners.core.errors import UserError
from runners.core.packages.catalogue import Catalogue
from runners.core.packages.requirements import parse_allowance
from runners.core.protocol import Investigation, Observation, Outcome, Variant
from runners.toolchains import find_toolchain, list_compilers

MAX_FILE = 128 * 1024
MAX_TITLE = 100
FAILS = (Outcome.OTHER_FAILURE, Outcome.MATCH, Outcome.TIMEOUT, Outcome.OUT_OF_MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The reporter's options. An empty text means the default."""

    toolchain: str
    version: str = ""
    title: str = ""
    expected: str = ""
    minimize: bool = True
    run: RunOptions = field(default_factory=RunOptions)


def read_files(paths: Sequence[Path]) -> dict[str, str]:
    """Read the script and the files that it needs.

    Raises:
        UserError: no file is a script, or a file cannot be read, is too large, or is not text.
    """
    if not any(path.suffix in (".py", ".sh") for path in paths):
        raise UserError(f"{paths[0]} is no script: name a Python script (.py) or a shell script (.sh) that fails")
    files: dict[str, str] = {}
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        if len(data) > MAX_FILE:
            raise UserError(f"{path} has {len(data):,} bytes: a report holds files of at most {MAX_FILE:,}")
        try:
            files[path.name] = data.decode("utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{path} is no UTF-8 text: attach it to the issue by hand") from None
    return files


def find_compiler(name: str | None, files: Mapping[str, str]) -> str:
    """Return the compiler that the reporter names, else the one that the script is about.

    Raises:
        UserError: the compiler is unknown.
    """
    found = name or recognize_toolchain("", "\n".join(files.values()))
    if found is None:
        raise UserError(f"the script names no compiler: add --toolchain ({list_compilers()})")
    return find_toolchain(found).NAME


def compose_bug_report(
    files: dict[str, str],
    options: ReportOptions,
    *,
    catalogue: Catalogue,
    open_bench: Callable[[], Bench],
    today: date,
) -> BugReport:
    """Run the script on a release, reduce it, run the result on that and on the newest release, and compose the text.

    The last runs are made from the composed text, so that the record belongs to exactly this text.

    Raises:
        UserError: the script lacks a part, or ends without a failure.
        InfraError: no run was possible.
    """
    release = (
        catalogue.find(options.toolchain, options.version)
        if options.version
        else catalogue.list_releases(options.toolchain)[-1]
    )
    newest = catalogue.list_releases(options.toolchain)[-1]
    product = release.distributions[0].replace("==", " ")
    draft = BugReport(title=options.title or "It fails", product=product, files=files, expected=options.expected)
    writer = _Writer(options=options, catalogue=catalogue, bench=open_bench(), today=today)
    first = _find_failure(writer.run(draft, release.version), release.version, options.toolchain)
    draft = replace(draft, output=first.excerpt, title=options.title or _make_title(first))
    record: tuple[str, ...] = ()
    if options.minimize:
        smaller = writer.run(draft, release.version, minimize=True).smaller
        if smaller is not None and smaller.after < smaller.before:
            reduced = replace(draft, files=_pick_files(smaller.testcase.files, files))
            if writer.reads_back(reduced):
                draft = reduced
                record = (f"The testcase is reduced from {smaller.before} lines to {smaller.after}.",)
    versions = dict.fromkeys((release.version, newest.version))
    last = writer.run(draft, ",".join(versions))
    checked = describe_runs([seen for seen in last.observations if seen.version in versions])
    draft = replace(draft, output=_find_output(last, release.version) or draft.output)
    return replace(draft, record=(*record, f"The newest release is {newest.version}.", *checked))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Runs drafts of the report as the bot will run the issue."""

    options: ReportOptions
    catalogue: Catalogue
    bench: Bench
    today: date

    def run(self, draft: BugReport, versions: str, *, minimize: bool = False) -> Investigation:
        repro = self._extract(draft)
        wanted = replace(self.options.run, versions=versions, bisect=False, anyway=True)
        return run_plan(self.bench, make_plan(repro, self.catalogue, wanted).plan, smaller=minimize)

    def reads_back(self, draft: BugReport) -> bool:
        """True if extraction finds exactly the files of the draft in its text."""
        found = sorted(text.strip() for text in self._extract(draft).testcase.files.values())
        return found == sorted(text.strip() for name, text in draft.files.items() if not name.endswith(".sh"))

    def _extract(self, draft: BugReport) -> Repro:
        issue = draft.to_issue(self.today)
        found = extract(issue, toolchain=self.options.toolchain, allowed=parse_allowance(self.options.run.allowed))
        if isinstance(found, NoRepro):
            raise UserError(f"the script is no testcase: {found.reason[0].lower()}{found.reason[1:].rstrip('.')}")
        if found.missing:
            names = ", ".join(f"{item.kind} {item.name}" for item in found.missing)
            raise UserError(f"the script lacks a part ({names}): name the files that it needs behind it")
        return found


def _find_failure(seen: Investigation, version: str, toolchain: str) -> Observation:
    """Return the run of the script that failed.

    Raises:
        UserError: no run failed.
    """
    originals = [one for one in seen.observations if one.variant is Variant.ORIGINAL]
    if (found := next((one for one in originals if one.outcome in FAILS), None)) is not None:
        return found
    if any(one.outcome is Outcome.PASS for one in originals):
        raise UserError(
            f"the script ends without a failure on {toolchain} {version}: "
            "add an assertion that fails where a result is wrong, or name the version with --version"
        )
    why = originals[0].why if originals else "no run was made"
    raise UserError(f"the script does not run on {toolchain} {version} ({why}): name its version with --version")


def _find_output(seen: Investigation, version: str) -> str:
    """Return the output of the composed script, with the text's lines and names; empty if it passes."""
    failing = (
        one.excerpt
        for one in seen.observations
        if one.variant is Variant.ORIGINAL and one.version == version and one.outcome is Outcome.MATCH
    )
    return next(failing, "")


def _make_title(failure: Observation) -> str:
    signature = failure.signature
    if signature is None:
        return f"[Bug] the script ends with {failure.outcome}"
    text = " ".join(f"{signature.type}: {signature.message}".split()).rstrip(":, ")
    return f"[Bug] {text if len(text) <= MAX_TITLE else f'{text[:MAX_TITLE].rstrip()} …'}"


def _pick_files(reduced: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the reduced files under the names of the given files, without scripts of commands."""
    names = [name for name in given if not name.endswith(".sh")]
    if len(names) == len(reduced) == 1:
        reduced = {names[0]: next(iter(reduced.values()))}
    return {**{name: text for name, text in given.items() if name.endswith(".sh")}, **reduced}
