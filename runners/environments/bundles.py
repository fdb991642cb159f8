"""Make a bundled toolchain importable: add its folder to the path, and stand-ins for the libraries that it links.

The stand-ins are our own C code, compiled on the host. No code of the wheel is compiled. A ``.pth`` file loads them
inside the sandbox when Python starts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from runners.core.toolchain.facts import Bundle
from runners.environments.files import make_folder
from runners.environments.stand_ins.compile import compile_stub

LAYOUT = "bundle 4"
"""Part of the digest of environments with a bundle. Increase the number when `complete_bundle` writes other files."""

_STUBS = "reprobot_stubs"
_DRIVER = "libcuda.so.1"
"""The driver's symbols have no version; each other library's symbols have its soname as version."""


def complete_bundle(
    bundle: Bundle, site: Path, beside: Mapping[str, Mapping[str, Collection[str]]] | None = None
) -> None:
    """Add the stand-ins, their loader and the bundle's path to the environment's packages.

    ``beside`` contains the libraries that other packages link and lack: functions by symbol version, by soname. A
    process has only one library of each name, and loads the bundle's first. So the bundle's libraries contain these
    functions too.

    Raises:
        InfraError: there is no C compiler.
    """
    folder = make_folder(site / _STUBS)
    for soname, functions in bundle.stubs.items():
        by_version: dict[str, set[str]] = {"" if soname == _DRIVER else soname: set(functions)}
        for version, names in (beside or {}).get(soname, {}).items():
            by_version.setdefault(version, set()).update(names)
        compile_stub(soname, by_version, folder)
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
