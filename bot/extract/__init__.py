"""Read the testcase and the reporter's claim from an issue's text. Pure: code of an issue is never run.

Start with `extract.extract`. The folders in the order of the flow: `blocks` (Markdown → code blocks and prose),
`split` (blocks → pieces of one kind each), `python` and `command_line` (pieces → testcase), `files` (links and
attachments), `claim` (the failure that the reporter describes).
"""

from __future__ import annotations

from bot.extract.extract import extract
from bot.extract.types import Extraction, Missing, NoRepro, Repair, Repro, Span

__all__ = ["Extraction", "Missing", "NoRepro", "Repair", "Repro", "Span", "extract"]
