"""The table of finding kinds in docs/verdicts.md, from the code: ``python -m tests.bot.verdict.findings_table``."""

from __future__ import annotations

from runners.core.findings.kinds import KINDS, KindFacts
from runners.core.protocol import FindingKind
from tests.bot.verdict.verdict_table import DOCUMENT

BEGIN, END = "<!-- made by tests/bot/verdict/findings_table.py: begin -->", "<!-- end of findings -->"


def make_table() -> str:
    lines = ["| finding | says | claimed by | blames | would be refuted by |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_make_row(kind, facts) for kind, facts in KINDS.items())])


def _make_row(kind: FindingKind, facts: KindFacts) -> str:
    says = "; ".join([facts.title, *(f"`{level}`: {title}" for level, title in facts.titles.items())])
    claimed_by = "guest or host" if facts.from_guest else "host"
    return f"| `{kind}` | {says} | {claimed_by} | {facts.blames} | {facts.refuted_by or 'stated with the finding'} |"


def insert_table(text: str) -> str:
    """The document with the table between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{make_table()}\n\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(insert_table(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
