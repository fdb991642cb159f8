"""CPythons of this machine that can be shown, read-only, inside a sandbox."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.core.errors import InfraError

PREFERRED = ("3.11", "3.12", "3.10", "3.13")
"""The order in which minors are tried: most testcases were written for the first."""

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
    """One CPython of the host. ``version`` is its minor, ``3.11``; ``platform`` as sysconfig names it."""

    version: str
    prefix: Path
    executable: Path
    platform: str

    @property
    def in_system(self) -> bool:
        """Whether it lives under /usr, which every sandbox shows anyway."""
        return self.prefix == Path("/usr")


def choose(supported: Sequence[str]) -> Interpreter:
    """The preferred interpreter among the minors a release supports.

    Raises:
        InfraError: this machine has none of them.
    """
    for minor in PREFERRED:
        found = find(minor) if minor in supported else None
        if found is not None:
            return found
    wanted = " or ".join(minor for minor in PREFERRED if minor in supported) or "(no minor we know)"
    raise InfraError(f"no CPython {wanted} on this machine: install one (for example `uv python install 3.11`)")


@functools.cache
def find(minor: str) -> Interpreter | None:
    """An interpreter of that minor: one with a prefix of its own rather than the system's, if there is one."""
    system = None
    for candidate in _candidates(minor):
        found = _ask(candidate)
        if found is None or found.version != minor:
            continue
        if not found.in_system:
            return found
        system = system or found
    return system


def _candidates(minor: str) -> Iterator[Path]:
    """Without repeats; shims are left out because they start whatever is configured, not what they are called."""
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


def _ask(executable: Path) -> Interpreter | None:
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
