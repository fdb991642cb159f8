"""The request for missing parts of a testcase."""

from __future__ import annotations

from bot.extract.types import Missing, NoRepro
from bot.report.quote import escape_prose, quote_code
from bot.report.sections.shape import DETAILS, Detail, Section
from bot.verdict.verdict import Report


def render_request(report: Report, detail: Detail = DETAILS[0]) -> Section:
    """Return the missing parts and one request for them; an empty body when the testcase is complete."""
    missing = report.extraction.missing
    needs = "\n".join(f"- {_describe_missing(one)}" for one in missing[: detail.entries])
    if isinstance(report.extraction, NoRepro):
        asks = "Could you add the shortest code or command line that shows it, as text in a code block?"
        return Section("", "\n\n".join(filter(None, (escape_prose(report.extraction.reason), needs, asks))))
    if not missing:
        return Section("", "")
    parts = "it" if len(missing) == 1 else "them"
    asks = f"Could you add {parts} to the issue? A small stand-in that fails the same way is just as good."
    return Section("", f"Thank you for the report. To run it, this is missing:\n\n{needs}\n\n{asks}")


def _describe_missing(missing: Missing) -> str:
    match missing.kind:
        case "file":
            return f"the file {quote_code(missing.name)}" + (
                f": it {escape_prose(missing.why)}" if missing.why else ""
            )
        case "name":
            return f"the definition of {quote_code(missing.name)}"
        case "module":
            return f"the module {quote_code(missing.name)}"
        case _:
            return f"the code itself: {quote_code(missing.name)}" if missing.name else "the code itself"
