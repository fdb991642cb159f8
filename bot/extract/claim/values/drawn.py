"""Leave out the values that a program draws at random in each run, if the program itself judges them. Pure."""

from __future__ import annotations

import re

_DRAWS = re.compile(
    r"\b(?:np|numpy)\.random\.(?!seed|default_rng|RandomState|Generator)\w+\(|\bdefault_rng\(\s*\)"
    r"|\btorch\.(?:randn?|randint|normal)\w*\(|(?<![\w.])random\.(?:random|uniform|gauss|randint|choice)\("
)
_SEEDS = re.compile(r"\bseed\(|\bmanual_seed\(|\bRandomState\(\s*\w|\bdefault_rng\(\s*\w")
_JUDGED = re.compile(r"^[^\d\n]*\b(?:True|False|(?i:fail(?:ed)?|pass(?:ed)?|ok))\b[^\d\n]*$", re.M)
"""A row in which the program prints whether a result is right: ``after False``."""
_DRAWN = re.compile(r"(?<![\w.])[-+]?\d{0,30}\.\d|\bnan\b", re.I)


def drop_drawn_values(output: str, code: str) -> str:
    """Return an output without the rows of values that follow from random inputs.

    These rows cannot be printed again. They stay if no row judges the result: their form may still be evidence, such
    as a difference that becomes zero.
    """
    if not _DRAWS.search(code) or _SEEDS.search(code) or not _JUDGED.search(output):
        return output
    return "\n".join(row for row in output.split("\n") if not _DRAWN.search(row))
