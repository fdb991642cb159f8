"""Count the things that a compiler makes, if a report counts them: "two dispatches instead of one". Pure.

A compilation that ends well does not answer such a claim. The compiler prints the program at the phase that contains
these things, and they are counted in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A thing of which the compiler makes several."""

    noun: str
    plural: str
    named_pattern: str
    """Source of a regular expression for the thing in prose, in the singular or the plural."""
    made: re.Pattern[str]
    """A pattern for the thing in the printed program."""
    formed: re.Pattern[str]
    """The thing in a program of an earlier phase, which a testcase may print. Some are merged or dropped later."""
    flags: tuple[str, ...]
    """Flags of the compiler with which it prints a program that has all of these things."""

    def describe(self, count: int) -> str:
        """Return ``1 dispatch`` or ``2 dispatches``. `read` parses it."""
        return f"{count} {self.noun if count == 1 else self.plural}"

    def read(self, text: str) -> int | None:
        """Return the number in a text that `describe` made. None for any other text."""
        found = re.fullmatch(rf"(\d{{1,6}}) (?:{re.escape(self.noun)}|{re.escape(self.plural)})", text)
        return int(found[1]) if found else None
