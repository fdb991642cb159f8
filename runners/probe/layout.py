"""What a testcase sees of a toolchain environment: a virtual environment at ``/opt/env``, and our hooks."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from runners.core.protocol import Limits, Testcase
from runners.core.toolchain.guest import GUEST as GUEST_PROGRAMS
from runners.environments.store import Environment, default_root
from runners.probe.bytecode import compiled
from runners.probe.task import PLAIN, Conditions, Task
from runners.sandbox import owner
from runners.sandbox.contract import Mount
from runners.toolchains import find_toolchain

GUEST = Path(__file__).parents[1] / "guest"
GUEST_PYTHON = "/opt/python"
GUEST_ENV = "/opt/env"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What of a toolchain environment is shown inside, as a virtual environment at ``/opt/env``.

    ``prefix`` and ``executable`` are the base interpreter's (``sys.base_prefix``); ``version`` is like "3.11".
    """

    site_packages: Path
    prefix: Path
    executable: Path
    version: str
    extra: tuple[Mount, ...] = ()

    @property
    def guest_prefix(self) -> str:
        """The system's interpreter is where it always is; any other appears at one place, whatever its home."""
        return "/usr" if self.prefix == Path("/usr") else GUEST_PYTHON

    @property
    def guest_python(self) -> str:
        return f"{self.guest_prefix}/bin/{self.executable.name}"

    @property
    def library_path(self) -> str | None:
        """Where a shared libpython lies; builds name its absolute path, which isn't there inside."""
        shared = self.guest_prefix != "/usr" and any((self.prefix / "lib").glob("libpython*.so*"))
        return f"{self.guest_prefix}/lib" if shared else None


def layout_of(environment: Environment, *, extra: tuple[Mount, ...] = ()) -> Layout:
    """An environment of the store, with whatever a device needs beside it."""
    interpreter = environment.interpreter
    return Layout(
        site_packages=environment.site_packages,
        prefix=interpreter.prefix,
        executable=interpreter.executable,
        version=interpreter.version,
        extra=extra,
    )


def task_of(
    environment: Environment,
    testcase: Testcase,
    limits: Limits,
    *,
    conditions: Conditions = PLAIN,
    more_variables: Mapping[str, str] = MappingProxyType({}),
    probe_file: str | None = None,
) -> Task:
    """A testcase with the programs and the variables of the environment's toolchain."""
    toolchain = find_toolchain(environment.toolchain)
    site = f"{GUEST_ENV}/lib/python{environment.interpreter.version}/site-packages"
    inside = {"python": f"{GUEST_ENV}/bin/python"}
    tools = {
        name: tuple(inside.get(word, f"{site}/{word}" if "/" in word else word) for word in argv)
        for name, argv in toolchain.list_tools(environment.site_packages).items()
    }
    return Task(
        testcase=testcase,
        tools=tools,
        limits=limits,
        variables={**toolchain.VARIABLES, **more_variables},
        guest=toolchain.GUEST,
        probe_file=probe_file,
        conditions=conditions,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Mounts, or for an engine without mounts the host's paths that stand for those inside."""

    mounts: tuple[Mount, ...]
    substitutes: Mapping[str, str]

    def path(self, text: str) -> str:
        """``text`` with each path inside replaced, the longest that fits first."""
        if not self.substitutes:
            return text
        known = "|".join(re.escape(guest) for guest in sorted(self.substitutes, key=len, reverse=True))
        return re.sub(rf"({known})(?![\w.-])", lambda match: self.substitutes[match[1]], text)


@contextlib.contextmanager
def shown_inside(layout: Layout, *, remapped: bool, probe_file: str | None) -> Iterator[Place]:
    """A virtual environment whose home is the base interpreter as seen from where it will run."""
    with owner.open_private_directory() as directory:
        view = directory / "env"
        library = view / "lib" / f"python{layout.version}"
        home = layout.guest_python if remapped else str(layout.executable)
        (view / "bin").mkdir(parents=True)
        library.mkdir(parents=True)
        lines = (f"home = {os.path.dirname(home)}", "include-system-site-packages = false", "")
        (view / "pyvenv.cfg").write_text("\n".join(lines))
        for name in ("python", "python3", f"python{layout.version}"):
            (view / "bin" / name).symlink_to(home)
        _open_to_all(view)
        if remapped:
            (library / "site-packages").mkdir(mode=0o755)  # a place to mount on
            yield Place(_mounts(layout, view), {})
        else:
            (library / "site-packages").symlink_to(layout.site_packages)
            found = {} if probe_file is None else {probe_file: str(directory / "probe-file")}
            yield Place((), {mount.guest: str(mount.host) for mount in _mounts(layout, view)} | found)


def _open_to_all(view: Path) -> None:
    """Readable by "nobody", whatever our umask."""
    for path in (view, *view.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)


def _mounts(layout: Layout, view: Path) -> tuple[Mount, ...]:
    prefix = () if layout.guest_prefix == "/usr" else (Mount(host=layout.prefix, guest=layout.guest_prefix),)
    return (
        *prefix,
        Mount(host=compiled(GUEST, layout.executable, default_root() / "guest"), guest=GUEST_PROGRAMS),
        Mount(host=view, guest=GUEST_ENV),
        Mount(host=layout.site_packages, guest=f"{GUEST_ENV}/lib/python{layout.version}/site-packages"),
        *layout.extra,
    )
