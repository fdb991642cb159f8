"""Find the CPython installations of this machine that a sandbox can show read-only."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.toolchain.facts import USUAL_PYTHON

PREFERRED = (USUAL_PYTHON, "3.12", "3.10", "3.13")
"""Minor versions in the order in which they are tried."""

_QUESTIONS = """
import json, platform, sys, sysconfig
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "implementation": platform.python_implementation(),
    "prefix": sys.base_prefix,
    "platform": sysconfig.get_platform(),
    "plain": not sysconfig.get_config_var("Py_GIL_DISABLED") and not sysconfig.get_config_var("Py_DEBUG"),
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One CPython of the host. ``version`` is the minor version (``3.11``); ``platform`` is sysconfig's name."""

    version: str
    prefix: Path
    executable: Path
    platform: str

    @property
    def in_system(self) -> bool:
        """True if the interpreter is under /usr, which every sandbox shows anyway."""
        return self.prefix == Path("/usr")


def choose_interpreter(supported: Sequence[str]) -> Interpreter:
    """Return the preferred interpreter among the minors that a release supports.

    Raises:
        InfraError: this machine has no interpreter of these minors.
    """
    for minor in PREFERRED:
        found = find_interpreter(minor) if minor in supported else None
        if found is not None:
            return found
    wanted = " or ".join(minor for minor in PREFERRED if minor in supported) or "(no minor we know)"
    raise InfraError(f"no CPython {wanted} on this machine: install one (for example `uv python install 3.11`)")


@functools.cache
def find_interpreter(minor: str) -> Interpreter | None:
    """Return an interpreter of that minor version, or None. One with its own prefix is preferred to the system's."""
    system = None
    for candidate in _list_candidates(minor):
        found = _read_interpreter(candidate)
        if found is None or found.version != minor:
            continue
        if not found.in_system:
            return found
        system = system or found
    return system


def _list_candidates(minor: str) -> Iterator[Path]:
    """Yield possible executables without repeats. Shims are left out: they start the configured version instead."""
    name = f"python{minor}"
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    managed = Path(os.environ.get("XDG_DATA_HOME", home / ".local/share")) / "uv/python"
    managed = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", managed))
    tool_cache = Path(os.environ.get("RUNNER_TOOL_CACHE", "/opt/hostedtoolcache")) / "Python"
    folders = [*sorted(pyenv.glob(f"{minor}.*/bin")), *sorted(managed.glob(f"cpython-{minor}.*/bin"))]
    folders += sorted(tool_cache.glob(f"{minor}.*/*/bin"))
    folders += [
        Path(p) for p in os.environ.get("PATH", os.defpath).split(os.pathsep) if p and Path(p).name != "shims"
    ]
    seen = set()
    for folder in [*folders, Path("/usr/local/bin"), Path("/usr/bin")]:
        real = (folder / name).resolve()
        if real not in seen and os.access(real, os.X_OK):
            seen.add(real)
            yield real


def _read_interpreter(executable: Path) -> Interpreter | None:
    """Run an executable and return its description. None if it is not a plain CPython.

    Free-threaded and debug builds are not plain.
    """
    try:
        done = subprocess.run(
            [executable, "-I", "-S", "-c", _QUESTIONS], capture_output=True, text=True, timeout=20, check=True
        )
        facts = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    prefix = Path(facts["prefix"])
    real = prefix / "bin" / f"python{facts['version']}"
    if facts["implementation"] != "CPython" or not facts["plain"] or not real.exists():
        return None
    return Interpreter(version=facts["version"], prefix=prefix, executable=real, platform=facts["platform"])
