"""Read the testcase and the reporter's claim from an issue's text. Pure: code of an issue is never run.

Start with `extract.extract`. The folders in the order of the flow: `blocks` (Markdown → code blocks and prose),
`split` (blocks → pieces of one kind each), `claim` (the failure that the reporter describes), `python` and
`command_line` (pieces → testcase). `links` and `attachments` fill gaps in the text from linked files.
"""

from __future__ import annotations

from bot.extract.extract import extract
from bot.extract.types import Extraction, Missing, NoRepro, Repair, Repro, Span

__all__ = ["Extraction", "Missing", "NoRepro", "Repair", "Repro", "Span", "extract"]
