"""Balance the braces of MLIR that was copied out of a file without the line that opens or closes its module. Pure."""

from __future__ import annotations

import re

from bot.extract.blocks.cut import MLIR_TOKEN

MAX_ADDED = 2
"""Largest number of added closing braces: of a function and of its module. More open braces mean a part of a file."""
_TERMINATOR = re.compile(r"[ \t]*(?:\}|(?:func\.|util\.)?return\b|linalg\.yield\b|\"func\.return\")")


def balance_braces(text: str) -> tuple[str, str]:
    """Return MLIR with balanced braces, and the change in words; the text itself and no words without a change.

    Unmatched closing braces are removed only after the program. Closing braces are added only after a line that ends
    a region. Other text does not change: its parser error is the reporter's own.
    """
    opened, surplus = [], []
    for found in MLIR_TOKEN.finditer(text):
        if found["open"]:
            opened.append(found.start())
        elif found["close"] and opened:
            opened.pop()
        elif found["close"]:
            surplus.append(found.start())
    if surplus and not opened:
        program, rest = text[: surplus[0]], text[surplus[0] :]
        if rest.replace("}", "").strip():
            return text, ""
        return f"{program.rstrip()}\n", f"left out {_count(len(surplus))} without a partner at the end"
    last = text.rstrip().rpartition("\n")[2]
    if surplus or not 0 < len(opened) <= MAX_ADDED or not _TERMINATOR.match(last):
        return text, ""
    if any(text[at] != "{" for at in opened):
        return text, ""
    return f"{text.rstrip()}\n{'}' * len(opened)}\n", f"added {_count(len(opened))} at the end"


def _count(braces: int) -> str:
    return "a closing brace" if braces == 1 else f"{braces} closing braces"
