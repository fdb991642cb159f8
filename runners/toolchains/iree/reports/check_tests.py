"""IREE's ``check.*`` tests → functions that return what they check.

``iree-check-module`` is in no wheel. A test function checks a value and returns nothing; the same function, made to
return the value, can be run by ``iree-run-module``, which prints it: that is compared with what the report quotes.
"""

from __future__ import annotations

import re

_CHECK = re.compile(
    r"^[ \t]*check\.expect_\w+\((?P<values>%[\w#.$-]+(?:, ?%[\w#.$-]+)?)[^\n]*:[ ]?(?P<type>[^\s:()]+)[ \t]*$"
)
_FUNCTION = re.compile(
    r"^(?P<head>[ \t]*(?:util\.)?func(?:\.func)?\b[^\n@]{0,60}@(?P<name>[\w.$-]+)\(\))(?P<tail>[^\n]*\{[ \t]*)$"
)
_RETURN = re.compile(r"^(?P<head>[ \t]*(?:util\.|func\.)?return)[ \t]*$")


def return_checked_values(text: str) -> tuple[str, tuple[str, ...]]:
    """The MLIR with each checked value returned, and the names of the functions that do so.

    Only functions without arguments and results are rewritten, which is what tests are; others stay as they are.
    """
    rows = text.split("\n")
    names: list[str] = []
    begin: int | None = None
    values: list[tuple[str, str]] = []
    gone: set[int] = set()
    for row, line in enumerate(rows):
        if _FUNCTION.match(line):
            begin, values = row, []
        elif begin is not None and (check := _CHECK.match(line)):
            values += [(value.strip(), check["type"]) for value in check["values"].split(",")]
            gone.add(row)
        elif begin is not None and values and (end := _RETURN.match(line)):
            head = _FUNCTION.match(rows[begin])
            assert head is not None
            types = ", ".join(kind for _, kind in values)
            rows[begin] = f"{head['head']} -> ({types}){head['tail']}"
            rows[row] = f"{end['head']} {', '.join(value for value, _ in values)} : {types}"
            names.append(head["name"])
            begin = None
    return "\n".join(line for row, line in enumerate(rows) if row not in gone), tuple(names)
