"""Compose the text of a bug report that extraction reads back exactly. Pure.

The headings are those of the issue form in ``examples/issue-form.yml``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from bot.issue import Issue
from bot.report.quote import clean_text
from runners.core.protocol import Observation, Outcome, Variant

MAX_OUTPUT = 4_000
_RESULTS = {
    Outcome.MATCH: "fails as above",
    Outcome.OTHER_FAILURE: "fails in another way",
    Outcome.PASS: "passes",
    Outcome.COMPILED: "compiles; not run",
    Outcome.TIMEOUT: "does not end in time",
    Outcome.OUT_OF_MEMORY: "runs out of memory",
    Outcome.INCOMPATIBLE: "cannot run the script: the API is another one",
    Outcome.UNAVAILABLE: "not available here",
    Outcome.INFRA: "not run: the machine failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BugReport:
    """A report before it is text."""

    title: str
    product: str
    """The compiler with its version, as ``apache-tvm 0.26.0``."""
    files: Mapping[str, str]
    """The main file first."""
    output: str = ""
    expected: str = ""
    record: tuple[str, ...] = ()
    """Sentences on the runs that were made."""

    def render(self) -> str:
        """Return the text: a title line, then the sections of the form."""
        sections = [
            ("Version", self.product),
            ("Steps to reproduce", "\n\n".join(_render_file(name, text) for name, text in self.files.items())),
            ("Actual behavior", fence_text(clean_text(self.output)[-MAX_OUTPUT:], "text") if self.output else ""),
            ("Expected behavior", self.expected or "It runs without this failure."),
            ("Runs", "\n".join(f"- {line}" for line in self.record)),
        ]
        parts = [f"# {self.title}", *(f"### {name}\n\n{text}" for name, text in sections if text)]
        return "\n\n".join(parts) + "\n"

    def to_issue(self, today: date) -> Issue:
        """Return the report as an issue, as it will be read once it is posted."""
        title, _, body = self.render().partition("\n")
        return Issue(
            source="the report",
            title=title.removeprefix("# "),
            body=body.lstrip("\n"),
            sha256=hashlib.sha256(self.render().encode(errors="replace")).hexdigest(),
            created=today,
        )


def _render_file(name: str, text: str) -> str:
    suffix = name.rpartition(".")[2]
    language = {"py": "python", "sh": "sh", "mlir": "mlir"}.get(suffix, "")
    title = "" if suffix in ("py", "sh") else f"`{name}`:\n\n"
    return title + fence_text(text, language)


def fence_text(text: str, language: str) -> str:
    """Return a fenced block whose fence is longer than every fence in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def describe_runs(observations: Sequence[Observation]) -> tuple[str, ...]:
    """Return one sentence for each version, in the order of the runs."""
    by_version: dict[str, list[Observation]] = {}
    for seen in observations:
        ported = ", ported to its API" if seen.variant is Variant.PORTED else ""
        if seen.variant in (Variant.ORIGINAL, Variant.PORTED):
            by_version.setdefault(f"`{seen.version}` on `{seen.device}`{ported}", []).append(seen)
    return tuple(
        f"{place}: {'; '.join(dict.fromkeys(_RESULTS[seen.outcome] for seen in runs))} ({len(runs)} runs)"
        if len(runs) > 1
        else f"{place}: {_RESULTS[runs[0].outcome]}"
        for place, runs in by_version.items()
    )
