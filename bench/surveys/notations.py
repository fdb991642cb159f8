"""How many MLIR texts of an earlier time the newest release of IREE reads, as posted and ported.

    python -m bench.surveys.notations FOLDER --old 3.10.0 [--new 3.13.0] [--files 100]

FOLDER holds MLIR files, such as IREE's own tests of the time of ``--old``: a checkout of its repository at a commit
of that time. Each part between ``// -----`` is a text. Counted are the texts that ``--old`` reads. Below the shares
stand the errors of the texts that are refused, with the operation or the attribute in each: these name what a port
lacks. The files are drawn at random with a fixed seed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path

from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Exited, Limits, Testcase, TestcaseKind
from runners.environments.store import Store, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import open_probe_session
from runners.rewrite.testcase import port_testcase
from runners.sandbox.contract import Engine
from runners.sandbox.owner import make_name
from runners.sandbox.select import select_engine
from runners.toolchains import find_toolchain

SEED = 7
MAX_TEXTS = 5
"""Texts of one file: some files have hundreds of a kind."""
MAX_ERRORS = 40
Read = Callable[[Testcase], str]
"""A text → the first error of the release that reads it; empty if it reads the text."""


class Reading(StrEnum):
    """How the newest release reads a text."""

    POSTED = "as posted"
    PORTED = "ported"
    REFUSED = "refused"


def list_texts(folder: Path, files: int) -> Iterator[Testcase]:
    """Yield the texts of files that are drawn at random."""
    found = sorted(folder.rglob("*.mlir"))
    random.Random(SEED).shuffle(found)
    for file in found[:files]:
        parts = file.read_text(encoding="utf-8", errors="replace").split("// -----")
        for part in filter(str.strip, parts[:MAX_TEXTS]):
            yield Testcase(
                kind=TestcaseKind.COMMAND_LINE,
                toolchain="iree",
                files={"m.mlir": part},
                steps=(("iree-opt", "m.mlir"),),
            )


def open_reader(store: Store, engine: Engine, version: str, stack: ExitStack) -> Read:
    """Return a reader of texts in a sandbox that stays open."""
    environment = store.get_environment(load_catalogue().find("iree", version))
    session = stack.enter_context(
        open_probe_session(engine, make_layout(environment), limits=Limits(), run_id=make_name())
    )

    def read(text: Testcase) -> str:
        seen = session.run(make_task(environment, text, Limits()))
        if seen.ended == Exited(code=0):
            return ""
        said = seen.steps[-1].stderr if seen.steps else ""
        return _describe_error(said) or f"{seen.ended}"

    return read


_ERROR = re.compile(r"error: (?P<said>[^\n]*)\n(?P<row>[^\n]*)")
_NAME = re.compile(r"[#!]?[a-z_]+\.[a-z_][\w.]*")


def _describe_error(said: str) -> str:
    """Return the first error without its numbers, and the operation or attribute in its row."""
    found = _ERROR.search(said)
    if found is None:
        return said.strip()[:100]
    name = _NAME.search(found["row"])
    return re.sub(r"\d+", "N", found["said"])[:100] + (f" ({name[0]})" if name else "")


def read_text(text: Testcase, read_new: Read, version: str) -> tuple[Reading, str]:
    """Return how the newest release reads a text, and its error if it refuses the text."""
    if not (said := read_new(text)):
        return Reading.POSTED, ""
    ported = port_testcase(text, version, find_toolchain("iree"), said)
    if ported is not None and not (said := read_new(ported.testcase)):
        return Reading.PORTED, ""
    return Reading.REFUSED, said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--old", required=True, help="the release of the texts' time")
    parser.add_argument("--new", default="3.13.0", help="the release that is to read them")
    parser.add_argument("--files", type=int, default=100, help="files that are drawn")
    chosen = parser.parse_args()
    store, engine = open_store(), select_engine("auto")
    readings, errors = Counter[Reading](), Counter[str]()
    with ExitStack() as stack:
        read_old, read_new = (open_reader(store, engine, one, stack) for one in (chosen.old, chosen.new))
        for text in list_texts(chosen.folder, chosen.files):
            if not read_old(text):
                reading, said = read_text(text, read_new, chosen.new)
                readings[reading] += 1
                errors.update([said] if said else [])
    total = readings.total()
    for reading in Reading:
        sys.stdout.write(f"{reading}: {readings[reading]} of {total} ({readings[reading] / max(1, total):.0%})\n")
    for said, count in errors.most_common(MAX_ERRORS):
        sys.stdout.write(f"{count} × {said}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
