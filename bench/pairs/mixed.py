"""Run the mixed and the late rooms' programs on every release in the lists: ``python -m bench.pairs.mixed [ROOM …]``.

The programs are in `bench.pairs.mixed_rooms` and `bench.pairs.late_rooms`. What each printed and how it ended is kept
in ``bench/pairs/mixed.jsonl``, room by room; `bench.pairs` compares them. Nothing is compared here.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.pairs import late_rooms, mixed_rooms
from bench.pairs.mixed_rooms import Shown
from bench.pairs.score import MIXED, TVM, Failure, scrubbed
from runners.core.packages.catalogue import load_catalogue
from runners.environments.store import open_store
from runners.toolchains import find_toolchain

IREE = ("2.9.0", "3.3.0", "3.6.0", "3.10.0", "3.12.0", "3.13.0")
MAX_OUTPUT = 12_000
"""IREE's warning about an unnamed processor takes 3,000 characters, and the diagnostic comes after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a program runs: the words before a tool's arguments, by the tool's name, and the variables."""

    tools: Mapping[str, str]
    variables: Mapping[str, str]


def load() -> list[Failure]:
    if not MIXED.exists():
        return []
    return [Failure(**json.loads(line)) for line in MIXED.read_text().splitlines()]


def keep(room: str, found: Sequence[Failure]) -> None:
    """The room's outputs in place of those that it had, in one step."""
    whole = [*(one for one in load() if one.room != room), *found]
    part = MIXED.with_suffix(".part")
    part.write_text("".join(json.dumps({f: getattr(x, f) for f in Failure.__slots__}) + "\n" for x in whole))
    part.replace(MIXED)


def record(room: str) -> Iterator[Failure]:
    toolchain, versions = ("tvm", TVM) if room in mixed_rooms.TVM or room in late_rooms.TVM else ("iree", IREE)
    programs = {**mixed_rooms.TVM, **mixed_rooms.IREE, **late_rooms.TVM, **late_rooms.IREE}[room]
    for version in versions:
        place = _place(toolchain, version)
        for number, shown in enumerate(programs):
            yield from _ran(room, shown, str(number), version, place)


def _place(toolchain: str, version: str) -> Place:
    environment = open_store().get_environment(load_catalogue().find(toolchain, version))
    known = find_toolchain(toolchain)
    tools = {
        name: str(environment.site_packages / where[0])
        for name, where in known.list_tools(environment.site_packages).items()
        if where[0] != "python"
    }
    return Place(
        tools=tools | {"python": str(environment.interpreter.executable)},
        variables={**os.environ, **known.VARIABLES, "PYTHONPATH": str(environment.site_packages)},
    )


def _ran(room: str, shown: Shown, variant: str, version: str, place: Place) -> Iterator[Failure]:
    """The step that failed, if one did."""
    variables = dict(place.variables) | ({"PYTHONFAULTHANDLER": "1"} if shown.faulthandler else {})
    with tempfile.TemporaryDirectory() as folder:
        for name, text in shown.files.items():
            (Path(folder) / name).write_text(text)
        for number, (tool, *arguments) in enumerate(shown.steps):
            code, said = _step([place.tools[tool], *arguments], folder, variables, shown)
            if code == 0:
                continue
            words = " ".join([tool, *arguments])
            where = f"step {number + 1} ({words}), after {shown.seconds:g} s" if code is None else ""
            yield Failure(
                room=room,
                bug=f"{room}: {shown.reason}",
                version=version,
                code=0 if code is None else code,
                output=_cut(scrubbed(said.strip())),
                variant=variant,
                where=where,
            )
            return


def _cut(said: str) -> str:
    if len(said) <= MAX_OUTPUT:
        return said
    return f"{said[: MAX_OUTPUT // 2]}\n[…]\n{said[-MAX_OUTPUT // 2 :]}"


def _step(words: Sequence[str], folder: str, variables: Mapping[str, str], shown: Shown) -> tuple[int | None, str]:
    """The exit status, None when the time was up; and what was printed."""
    running = subprocess.Popen(
        words,
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if shown.quiet else subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with running:
        try:
            out, err = running.communicate(timeout=shown.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            out, err = running.communicate()
            return None, f"{out}\n{err or ''}"
    return running.returncode, f"{out}\n{err or ''}"


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for room in sys.argv[1:] or [*mixed_rooms.IREE, *mixed_rooms.TVM, *late_rooms.IREE, *late_rooms.TVM]:
        found = list(record(room))
        keep(room, found)
        sys.stdout.write(f"{room}: {len(found)} failures of {len({x.bug for x in found})} kinds\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
