"""Regenerate runners/toolchains/iree/passes.json: passes of IREE that were renamed before the first numbered release.

    python -m bench.surveys.passes CLONE

CLONE is a clone of IREE's repository with its history. A rename is a commit that gives the same definition of a pass
another name in a file ``Passes.td``. Chains of renames are followed. A pass is left out if the oldest release knows
the old name or does not know the new name, by the help of its ``iree-opt``, which runs in the sandbox.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bench.surveys.flags import flags
from runners.core.packages.catalogue import load_catalogue
from runners.environments.store import open_store
from runners.sandbox.select import select_engine
from runners.toolchains import iree

TABLE = Path(iree.__file__).parent / "passes.json"
BEGIN = "2021-01-01"
"""Passes of earlier programs have no names that lead to today's."""
_HUNK = re.compile(r"@@.*@@ def (?P<definition>\w+)")
_DEFINITION = re.compile(r"def (?P<definition>\w+)")
_NAME = re.compile(r'Pass<\s*"(?P<name>[\w-]+)"|^\s*"(?P<bare>iree-[\w-]+)"')


def read_history(clone: Path) -> str:
    """Return all changes of the files that define passes, oldest first."""
    words = ["git", "-C", str(clone), "log", "--reverse", "-p", "-U0", f"--since={BEGIN}", "--format=tformat:commit"]
    return subprocess.run(
        [*words, "--", "*Passes.td"], capture_output=True, text=True, errors="replace", check=True
    ).stdout


def list_renames(history: str) -> Iterator[tuple[str, str]]:
    """Yield old and new name of each pass whose definition stayed, in order."""
    for change in history.split("\ncommit\n"):
        before, after = dict(_read_names(change, "-")), dict(_read_names(change, "+"))
        for definition in sorted(before.keys() & after.keys()):
            if before[definition] != after[definition]:
                yield before[definition], after[definition]


def _read_names(change: str, sign: str) -> Iterator[tuple[str, str]]:
    """Yield definition → name of the passes in the removed or the added lines of a change."""
    definition = ""
    for line in change.split("\n"):
        if hunk := _HUNK.match(line):
            definition = hunk["definition"]
        elif line.startswith(sign) and not line.startswith(3 * sign):
            if found := _DEFINITION.search(line):
                definition = found["definition"]
            if named := _NAME.search(line[1:]):
                yield definition.removesuffix("Pass"), named["name"] or named["bare"]


def follow_renames(renames: Iterable[tuple[str, str]], known: frozenset[str]) -> Mapping[str, str]:
    """Return old name → name that the oldest release knows."""
    newest: dict[str, str] = {}
    for old, new in renames:
        newest = {name: new if last == old else last for name, last in newest.items()} | {old: new}
    return {
        old: new
        for old, new in sorted(newest.items())
        if f"--{new}" in known and f"--{old}" not in known and old != new
    }


def main() -> int:
    oldest = load_catalogue().list_releases("iree")[0]
    known = flags(oldest, "iree-opt", open_store(), select_engine("auto"))
    table = follow_renames(list_renames(read_history(Path(sys.argv[1]))), known)
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
