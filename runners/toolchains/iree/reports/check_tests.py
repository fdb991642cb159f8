"""Rewrite IREE's ``check.*`` tests into functions that return the checked values.

No wheel has ``iree-check-module``. ``iree-run-module`` can run a rewritten test and prints the returned values, which
are then compared with the values that the report quotes.
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
    """Return the MLIR with each checked value returned, and the names of the rewritten functions.

    Only functions without arguments and results are rewritten: all tests are such functions.
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
