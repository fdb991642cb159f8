"""Write a report to the requested files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.report.comment import render_comment
from bot.report.document import format_json, make_document
from bot.report.page import render_page
from bot.verdict.verdict import Report
from runners.core.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Files to write. None skips a file."""

    json: Path | None = None
    html: Path | None = None
    comment: Path | None = None


def write_report(report: Report, outputs: Outputs) -> str:
    """Write the requested files and return the comment.

    Raises:
        UserError: a file cannot be written.
    """
    comment = render_comment(report)
    if outputs.comment is not None:
        write_file(outputs.comment, comment)
    if outputs.json is not None:
        write_file(outputs.json, format_json(make_document(report, comment)))
    if outputs.html is not None:
        write_file(outputs.html, render_page(report))
    return comment


def write_file(path: Path, text: str) -> None:
    """Write one file.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
