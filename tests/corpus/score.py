"""``python -m tests.corpus.score [--heldout]``: right of all per bullet, and what each miss misses."""

from __future__ import annotations

import sys
from collections import Counter

from bot.extract.extract import extract
from tests.corpus.cases import cases
from tests.corpus.compare import ASPECTS, differences


def main(argv: list[str]) -> int:
    total, right, aspects = Counter[str](), Counter[str](), Counter[str]()
    misses: list[str] = []
    for case in cases(heldout="--heldout" in argv):
        wrong = list(differences(extract(case.issue), case.expected))
        for key in ("all", *case.bullets):
            total[key] += 1
            right[key] += not wrong
        aspects.update(aspect for aspect, _ in wrong)
        misses += [f"{case.name}: {aspect}: {what}" for aspect, what in wrong]
    rows = [f"{key:40} {right[key]:3} of {total[key]:3}" for key in sorted(total)]
    faults = [f"{aspect:40} {aspects[aspect]:3} wrong" for aspect in ASPECTS if aspects[aspect]]
    sys.stdout.write("\n".join([*misses, "", *faults, "", *rows, ""]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
