"""Write a report to the requested files."""

from __future__ import annotations

import shutil
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
    """Write one file. A process that is killed leaves the file as it was, or whole.

    A link, a pipe or a device, such as ``/dev/stdout``, is written in place.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, encoding="utf-8")
        else:
            _replace_file(path, text)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def _replace_file(path: Path, text: str) -> None:
    """Write a file beside ``path`` and give it that name. The next call removes the draft of a killed process."""
    draft = path.with_name(f".{path.name}.part")
    draft.unlink(missing_ok=True)
    try:
        with draft.open("x", encoding="utf-8") as file:  # follows no link that another user put there
            file.write(text)
        if path.exists():
            shutil.copymode(path, draft)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
