"""Show a toolchain environment to a testcase: a virtual environment at ``/opt/env``, and the guest programs."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from runners.core.protocol import Limits, Testcase
from runners.core.toolchain.guest import GUEST as GUEST_PROGRAMS
from runners.environments.store import Environment, default_root
from runners.probe.task import PLAIN, Conditions, Task
from runners.sandbox import owner
from runners.sandbox.contract import Mount
from runners.toolchains import find_toolchain

GUEST = Path(__file__).parents[1] / "guest"
GUEST_PYTHON = "/opt/python"
GUEST_ENV = "/opt/env"
COMPILE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The parts of a toolchain environment that are shown inside.

    ``prefix`` and ``executable`` belong to the base interpreter (``sys.base_prefix``). ``version`` is a minor version
    such as "3.11".
    """

    site_packages: Path
    prefix: Path
    executable: Path
    version: str
    extra: tuple[Mount, ...] = ()

    @property
    def guest_prefix(self) -> str:
        """The prefix inside: ``/usr`` for the system's interpreter, one fixed path for any other."""
        return "/usr" if self.prefix == Path("/usr") else GUEST_PYTHON

    @property
    def guest_python(self) -> str:
        return f"{self.guest_prefix}/bin/{self.executable.name}"

    @property
    def library_path(self) -> str | None:
        """The folder inside that contains a shared libpython. Builds contain its absolute path on the host."""
        shared = self.guest_prefix != "/usr" and any((self.prefix / "lib").glob("libpython*.so*"))
        return f"{self.guest_prefix}/lib" if shared else None


def make_layout(environment: Environment, *, extra: tuple[Mount, ...] = ()) -> Layout:
    """Return the layout of an environment of the store. ``extra`` are mounts that a device needs."""
    interpreter = environment.interpreter
    return Layout(
        site_packages=environment.site_packages,
        prefix=interpreter.prefix,
        executable=interpreter.executable,
        version=interpreter.version,
        extra=extra,
    )


def make_task(
    environment: Environment,
    testcase: Testcase,
    limits: Limits,
    *,
    conditions: Conditions = PLAIN,
    more_variables: Mapping[str, str] = MappingProxyType({}),
    probe_file: str | None = None,
) -> Task:
    """Return a task with the programs and the variables of the environment's toolchain."""
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
        variables={**toolchain.VARIABLES, **testcase.list_variables(), **more_variables},
        guest=toolchain.GUEST,
        probe_file=probe_file,
        conditions=conditions,
    )


@dataclass(frozen=True, slots=True)
class View:
    """A layout as an engine shows it: with mounts, or with host paths if the engine has no mounts."""

    mounts: tuple[Mount, ...]
    substitutes: Mapping[str, str]

    def translate(self, text: str) -> str:
        """Replace each guest path in ``text``, the longest match first."""
        if not self.substitutes:
            return text
        known = "|".join(re.escape(guest) for guest in sorted(self.substitutes, key=len, reverse=True))
        return re.sub(rf"({known})(?![\w.-])", lambda match: self.substitutes[match[1]], text)


@contextlib.contextmanager
def open_view(layout: Layout, *, remapped: bool, probe_file: str | None) -> Iterator[View]:
    """Make a virtual environment around the layout while the context is open.

    Its home is the base interpreter at the path where the engine runs the interpreter: a guest path if ``remapped``.
    """
    with owner.open_private_directory() as directory:
        folder = directory / "env"
        library = folder / "lib" / f"python{layout.version}"
        home = layout.guest_python if remapped else str(layout.executable)
        (folder / "bin").mkdir(parents=True)
        library.mkdir(parents=True)
        lines = (f"home = {os.path.dirname(home)}", "include-system-site-packages = false", "")
        (folder / "pyvenv.cfg").write_text("\n".join(lines))
        for name in ("python", "python3", f"python{layout.version}"):
            (folder / "bin" / name).symlink_to(home)
        _make_readable(folder)
        if remapped:
            (library / "site-packages").mkdir(mode=0o755)  # the mount point
            yield View(_list_mounts(layout, folder), {})
        else:
            (library / "site-packages").symlink_to(layout.site_packages)
            found = {} if probe_file is None else {probe_file: str(directory / "probe-file")}
            yield View((), {mount.guest: str(mount.host) for mount in _list_mounts(layout, folder)} | found)


def _make_readable(folder: Path) -> None:
    """Let unprivileged users read a folder, independent of this process's umask."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def _list_mounts(layout: Layout, folder: Path) -> tuple[Mount, ...]:
    prefix = () if layout.guest_prefix == "/usr" else (Mount(host=layout.prefix, guest=layout.guest_prefix),)
    return (
        *prefix,
        Mount(host=compile_guest(GUEST, layout.executable, default_root() / "guest"), guest=GUEST_PROGRAMS),
        Mount(host=folder, guest=GUEST_ENV),
        Mount(host=layout.site_packages, guest=f"{GUEST_ENV}/lib/python{layout.version}/site-packages"),
        *layout.extra,
    )


# ------------------------------------------------------------------------------ the guest programs, as byte code


def compile_guest(source: Path, python: Path, root: Path) -> Path:
    """Copy ``source`` to ``runners/guest`` in a folder below ``root``, with byte code for the interpreter ``python``.

    Return the copy, or ``source`` if no copy can be made. A sandbox shows the programs read-only, so Python cannot
    store byte code there. Without the copy, each start compiles them again (4 to 8 ms). An interpreter without byte
    code of its version compiles; only the time differs.
    """
    try:
        folder = root / _hash_sources(source, python)
        if not folder.exists():  # checked at each call, because the cache may have been emptied
            _compile_copy(source, python, folder)
    except (OSError, subprocess.SubprocessError):
        return source
    return folder / "runners" / "guest"


@functools.cache
def _hash_sources(source: Path, python: Path) -> str:
    files = sorted(source.rglob("*.py"))
    state = python.stat()
    parts = [
        f"{python} {state.st_size} {state.st_mtime_ns}",
        *(f"{file.relative_to(source)}\n{file.read_text()}" for file in files),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _compile_copy(source: Path, python: Path, folder: Path) -> None:
    """Make the folder completely or not at all, even if another process makes the same one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        whole = Path(beside, "whole")
        shutil.copytree(source, whole / "runners" / "guest", ignore=shutil.ignore_patterns("__pycache__"))
        words = [str(python), "-I", "-S", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
        subprocess.run([*words, str(whole)], capture_output=True, timeout=COMPILE_S, check=True)
        _make_readable(whole)
        with contextlib.suppress(OSError):  # another process finished first
            whole.rename(folder)
