"""Find what a killed run left on this machine: processes, control groups, mounts, containers, temporary files.

Everything that Reprobot makes has a name with the process, the boot and the PID namespace of its maker
(``runners/sandbox/owner.py``). So the leftovers of one maker are told from those of every other run on the machine.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.sandbox import owner
from runners.sandbox.containers import engine as containers
from runners.sandbox.containers.clients import query_client
from runners.sandbox.limits import cgroup

GONE_S = 1.0
"""Time that killed processes may take to be gone."""
_NAME = re.compile(rf"{owner.PREFIX}-\d+-\d+-[0-9a-f]+\.\d+-\d+-\d+")
SPACE = owner.make_name().split("-")[3]
"""Boot and PID namespace in the names that this process and its children make."""


@dataclass(frozen=True, slots=True)
class Process:
    """A living process. ``line`` is its command line, with NUL between the words."""

    pid: int
    parent: int
    line: str

    def describe(self) -> str:
        return f"process {self.pid} {self.line[:80]!r}"


def list_processes() -> Iterator[Process]:
    """Yield the living processes. A dead process that its parent has not collected is left out."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                line = (path / "cmdline").read_bytes().decode("utf-8", "replace")
                yield Process(int(path.name), int(parent), line)


def is_of_maker(pid: int) -> Callable[[str], bool]:
    """Return a test for names that the process ``pid`` of this PID namespace made."""
    return lambda name: name.split("-")[1] == str(pid) and is_of_space(name)


def is_of_space(name: str) -> bool:
    """True for names that a process of this PID namespace made."""
    return name.split("-")[3] == SPACE


def find_named(is_mine: Callable[[str], bool], *, with_containers: bool = True) -> list[str]:
    """Return the control groups, directories, mounts, processes and containers with a name that ``is_mine``."""

    def names_mine(text: str) -> bool:
        return any(is_mine(name) for name in _NAME.findall(text))

    pattern = f"{owner.PREFIX}-*"
    tops = (cgroup.ROOT.glob(pattern), cgroup.ROOT.glob(f"*/{pattern}"), Path(tempfile.gettempdir()).glob(pattern))
    places = [str(path) for top in tops for path in top if names_mine(path.name)]
    running = [process.describe() for process in list_processes() if names_mine(process.line)]
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if names_mine(line)]
    named = [name for name in _list_containers() if names_mine(name)] if with_containers else []
    return [*places, *running, *(f"mount {mount}" for mount in mounts), *named]


def _list_containers() -> list[str]:
    listed = (query_client(client, "ps", "--all", "--format", "{{.Names}}") for client in containers.list_stores())
    return [name for names in listed for name in names.split()]


def wait_for_none(find: Callable[[], list[str]]) -> tuple[str, ...]:
    """Return what is still found after `GONE_S`."""
    deadline = time.monotonic() + GONE_S
    while (left := find()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return tuple(left)
