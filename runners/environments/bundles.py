"""Making a bundled toolchain importable: its folder on the path, and stand-ins for the libraries it links.

The stand-ins are our own C, compiled here; nothing of the wheel is. They are loaded inside the sandbox, by a ``.pth``
file that Python reads when it starts there.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.toolchain.facts import Bundle
from runners.environments.atomic_dirs import make_folder

LAYOUT = "bundle 3"
"""Part of such an environment's digest: count up when what `complete` writes changes."""

_STUBS = "reprobot_stubs"
_NO_DEVICE = 100
"""cudaErrorNoDevice, which is CUDA_ERROR_NO_DEVICE as well."""
_STATUS = "cuGetErrorString"
"""The driver's function of that kind returns a status like all the others; its words come through a pointer."""


def complete(bundle: Bundle, site: Path) -> None:
    """Add what a bundle needs beside its wheels.

    Raises:
        InfraError: there is no C compiler.
    """
    folder = make_folder(site / _STUBS)
    for soname, functions in bundle.stubs.items():
        _compile(soname, stub_source(functions), folder)
    (site / "reprobot_bundle.py").write_text(render_loader(bundle), encoding="utf-8")
    (site / "reprobot_bundle.pth").write_text(f"{bundle.path}\nimport reprobot_bundle\n", encoding="utf-8")


def render_loader(bundle: Bundle) -> str:
    """A module that loads the stand-ins, after which the loader knows their names, and says where libraries are."""
    return (
        "import ctypes\nimport os\n\n"
        "here = os.path.dirname(__file__)\n"
        f"for name, folder in {sorted(bundle.variables.items())!r}:\n"
        "    os.environ.setdefault(name, os.path.join(here, folder))\n"
        f"for name in {tuple(sorted(bundle.stubs))!r}:\n"
        f"    ctypes.CDLL(os.path.join(here, {_STUBS!r}, name))\n"
    )


def stub_source(functions: tuple[str, ...]) -> str:
    """C in which each function says that there is no device, or, where it describes an error, says that in words."""
    return "".join(
        f'const char *{name}(void) {{ return "no device"; }}\n'
        if name.endswith("GetErrorString") and name != _STATUS
        else f"int {name}(void) {{ return {_NO_DEVICE}; }}\n"
        for name in functions
    )


def _compile(soname: str, source: str, folder: Path) -> None:
    """A shared library whose symbols have the version that is asked for: the soname, except for the driver's."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise InfraError("a bundled toolchain needs a C compiler once, for stand-ins of CUDA: install gcc")
    arguments = ["-shared", "-fPIC", "-O1", "-w", f"-Wl,-soname,{soname}", "-x", "c", "-", "-o", str(folder / soname)]
    script = folder / "versions"
    if soname != "libcuda.so.1":
        script.write_text(f"{soname} {{ global: *; }};\n", encoding="utf-8")
        arguments.append(f"-Wl,--version-script={script}")
    done = subprocess.run(
        [compiler, *arguments], input=source, capture_output=True, text=True, check=False, umask=0o022
    )
    script.unlink(missing_ok=True)
    if done.returncode != 0:
        raise InfraError(f"{compiler} cannot make {soname}: {done.stderr.strip()[-300:]}")
