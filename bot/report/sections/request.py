"""What is missing, asked for once."""

from __future__ import annotations

from bot.extract.types import Missing, NoRepro
from bot.report.quote import code, prose
from bot.report.sections.shape import DETAILS, Detail, Section
from bot.verdict.verdict import Report


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
