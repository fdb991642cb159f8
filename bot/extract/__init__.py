"""Issue → the repro in it, with its provenance, or the reason there is none. Pure; nothing of it is ever run."""

from __future__ import annotations

from bot.extract.extract import extract
from bot.extract.types import Extraction, Missing, NoRepro, Repair, Repro, Span

__all__ = ["Extraction", "Missing", "NoRepro", "Repair", "Repro", "Span", "extract"]
