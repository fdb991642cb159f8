"""Write a report to the requested files."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """The comment, and one sentence for each file that could not be written."""

    comment: str
    problems: tuple[str, ...] = ()


def write_report(report: Report, outputs: Outputs) -> str:
    """Write the requested files and return the comment.

    Raises:
        UserError: a file cannot be written.
    """
    comment, texts = _render_report(report, outputs)
    for path, text in texts:
        write_file(path, text)
    return comment


def save_report(report: Report, outputs: Outputs) -> WrittenReport:
    """Write the requested files; one that cannot be written goes to the folder for temporary files instead.

    A verdict may have taken minutes, so a faulty output must not lose it.
    """
    comment, texts = _render_report(report, outputs)
    problems = [_write_or_rescue(path, text) for path, text in texts]
    return WrittenReport(comment=comment, problems=tuple(filter(None, problems)))


def _render_report(report: Report, outputs: Outputs) -> tuple[str, list[tuple[Path, str]]]:
    """Return the comment, and the text of each requested file."""
    comment = render_comment(report)
    texts: list[tuple[Path, str]] = []
    if outputs.comment is not None:
        texts.append((outputs.comment, comment))
    if outputs.json is not None:
        texts.append((outputs.json, format_json(make_document(report, comment))))
    if outputs.html is not None:
        texts.append((outputs.html, render_page(report)))
    return comment, texts


def _write_or_rescue(path: Path, text: str) -> str:
    """Write one file. Return why that failed and where the text is instead; empty if it did not fail."""
    try:
        write_file(path, text)
    except UserError as error:
        with suppress(OSError):
            with tempfile.NamedTemporaryFile(
                "w", prefix="reprobot-", suffix=path.suffix, encoding="utf-8", delete=False
            ) as rescued:
                rescued.write(text)
            return f"{error}; its text is in {rescued.name}"
        return str(error)
    return ""


def write_file(path: Path, text: str) -> None:
    """Write one file. A process that is killed leaves the old file or the complete new one.

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
