"""Compare an attribute or a piece of code that a report quotes with printed code. Pure."""

from __future__ import annotations

import re

_TEXT = r"\"[^\"\n]{0,4000}\"|\[[\d, ]{1,400}\]"
_ATTRIBUTE = re.compile(rf"(?P<name>[A-Za-z_][\w.]{{2,80}}) ?= ?(?P<text>{_TEXT})[,;]?")


def read_attribute(output: str, *, actual: str) -> tuple[bool, str] | None:
    """Compare the only attribute that a report quotes with the output's: ``cpu_features = ""``, ``sizes = [8, 64]``.

    Return whether the output has the quoted value, and the attribute in the output. None if the report quotes
    anything else. None as well if the output lacks the attribute or has several values of it.
    """
    quoted = _ATTRIBUTE.fullmatch(actual.strip())
    if quoted is None:
        return None
    name = re.escape(quoted["name"])
    found = set(re.findall(rf"(?<![\w.]){name} ?= ?({_TEXT})", output))
    if len(found) != 1:
        return None
    text = found.pop()
    return text == quoted["text"], f"{quoted['name']} = {text}"[:200]


MIN_CODE_WORDS = 4
"""Minimum number of words of a name or an expression that identifies a run, wherever a row contains it."""


def prints_code(output: str, *, expected: str, actual: str) -> bool:
    """True if a row of the output contains the code that the report expects, and the quoted output does not.

    The code is one row without spaces, such as the name of an instruction: ``mbarrier.arrive.shared::cluster.b64``.
    """
    code = expected.strip()
    if len(re.findall(r"\w+", code)) < MIN_CODE_WORDS or re.search(r"\s", code) or code in actual:
        return False
    return re.search(rf"(?<!\w){re.escape(code)}(?!\w)", output) is not None
