"""Make a bundled toolchain importable: add its folder to the path, and stand-ins for the libraries that it links.

The stand-ins are our own C, compiled on the host; no code of the wheel is compiled. A ``.pth`` file loads them inside
the sandbox when Python starts.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.toolchain.facts import Bundle
from runners.environments.files import make_folder

LAYOUT = "bundle 3"
"""Part of the digest of environments with a bundle. Increase the number when `complete_bundle` writes other files."""

_STUBS = "reprobot_stubs"
_NO_DEVICE = 100
"""cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE have the same value."""
_STATUS = "cuGetErrorString"
"""This function of the driver returns a status, as all others do, and the text through a pointer."""


def complete_bundle(bundle: Bundle, site: Path) -> None:
    """Add the stand-ins, their loader and the bundle's path to the environment's packages.

    Raises:
        InfraError: there is no C compiler.
    """
    folder = make_folder(site / _STUBS)
    for soname, functions in bundle.stubs.items():
        _compile_stub(soname, render_stub_source(functions), folder)
    (site / "reprobot_bundle.py").write_text(render_loader(bundle), encoding="utf-8")
    (site / "reprobot_bundle.pth").write_text(f"{bundle.path}\nimport reprobot_bundle\n", encoding="utf-8")


def render_loader(bundle: Bundle) -> str:
    """Return a Python module that loads the stand-ins and sets variables for the bundle's libraries.

    Once loaded, the dynamic linker resolves the stand-ins by name.
    """
    return (
        "import ctypes\nimport os\n\n"
        "here = os.path.dirname(__file__)\n"
        f"for name, folder in {sorted(bundle.variables.items())!r}:\n"
        "    os.environ.setdefault(name, os.path.join(here, folder))\n"
        f"for name in {tuple(sorted(bundle.stubs))!r}:\n"
        f"    ctypes.CDLL(os.path.join(here, {_STUBS!r}, name))\n"
    )


def render_stub_source(functions: tuple[str, ...]) -> str:
    """Return C source in which each function returns the status "no device", or that text if it describes errors."""
    return "".join(
        f'const char *{name}(void) {{ return "no device"; }}\n'
        if name.endswith("GetErrorString") and name != _STATUS
        else f"int {name}(void) {{ return {_NO_DEVICE}; }}\n"
        for name in functions
    )


def _compile_stub(soname: str, source: str, folder: Path) -> None:
    """Compile a shared library whose symbols have the soname as version, except the driver's, which have none."""
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
