"""Describe IREE: its compiler wheel and its runtime wheel, at one version."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from runners.core.packages.versions import is_dated
from runners.core.protocol import TestcaseKind
from runners.core.toolchain.diagnosis import Comparison, Diagnoser
from runners.core.toolchain.facts import AMD, APPLE, BROWSER, NVIDIA, QUIET, VULKAN, Bundle, Canary, Device
from runners.core.toolchain.guest import GuestFacts
from runners.toolchains.iree.drift import DRIFT as DRIFT
from runners.toolchains.iree.failures import FAILURES as FAILURES
from runners.toolchains.iree.reports import REPORTS as REPORTS
from runners.toolchains.iree.rewriting import REWRITING as REWRITING

NAME = "iree"
TITLE = "IREE"
REPOSITORY: str | None = "iree-org/iree"
COMPANIONS: tuple[str, ...] = ()
COMPANION_IMPORTS: dict[str, str] = {}
OPEN_DEPENDENCIES: tuple[str, ...] = ()

PROVIDES = frozenset({"iree", "numpy", "sympy", "mpmath"})
VARIABLES = QUIET | {"IREE_PY_RUNTIME": "default"}

DEVICES = (
    Device(name="llvm-cpu", aliases=frozenset({"cpu", "x86", "x86_64", "host", "llvm_cpu", "llvm", "llvmcpu"})),
    Device(name="local-task", aliases=frozenset({"task", "local"})),
    Device(name="local-sync", aliases=frozenset({"sync"})),
    Device(name="vmvx", aliases=frozenset({"vmvx-inline", "reference"})),
    Device(name="vulkan", aliases=frozenset({"vulkan-spirv", "spirv"}), hardware=VULKAN),
    Device(name="cuda", aliases=frozenset({"nvidia", "nvptx", "gpu"}), hardware=NVIDIA),
    Device(name="hip", aliases=frozenset({"rocm", "amd", "amdgpu"}), hardware=AMD),
    Device(name="metal", aliases=frozenset({"metal-spirv", "apple"}), hardware=APPLE, linked=False),
    Device(name="webgpu", aliases=frozenset({"webgpu-spirv", "wasm"}), hardware=BROWSER, linked=False),
)

GUEST = GuestFacts(
    programs=("iree-",),
    compilers=("iree-compile", "iree-opt"),
    compile_functions=("iree.compiler.compile_str", "iree.compiler.compile_file"),
    compiling_files=("/iree/compiler/",),
    reports_at_exit=("iree",),  # nanobind's leak warnings
)
STAND_INS = ("vmvx", "llvm-cpu")
"""``vmvx`` is first, because it also checks bounds."""

_CANARY = """\
func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %sum = arith.addf %x, %x : tensor<4xf32>
  return %sum : tensor<4xf32>
}
"""

CANARY = Canary(
    kind=TestcaseKind.COMMAND_LINE,
    files={"canary.mlir": _CANARY},
    steps=(
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "canary.mlir", "-o", "canary.vmfb"),
        (
            "iree-run-module",
            "--device=local-sync",
            "--module=canary.vmfb",
            "--function=double",
            "--input=4xf32=1 2 3 4",
        ),
    ),
    prints="4xf32=2 4 6 8",
)

_PROGRAM_FOLDERS = ("iree/_runtime_libs", "iree/runtime", "iree/compiler/_mlir_libs")
"""``iree/runtime`` contained the runtime's programs until August 2023."""
_MODULES = {"iree-import-onnx": "iree.compiler.tools.import_onnx", "iree-ir-tool": "iree.compiler.tools.ir_tool"}


def list_distributions(version: str) -> tuple[str, ...]:
    """Return both distributions at one version, except for 3.7.1, which changed only the compiler.

    Until November 2024, versions were dates, and the names lacked ``base``.
    """
    if is_dated(version):
        return (f"iree-compiler=={version}", f"iree-runtime=={version}")
    runtime = "3.7.0" if version == "3.7.1" else version
    return (f"iree-base-compiler=={version}", f"iree-base-runtime=={runtime}")


def load_diagnosers() -> Sequence[Diagnoser]:
    from runners.toolchains.iree.diagnosis import DIAGNOSERS

    return DIAGNOSERS


def load_comparisons() -> Sequence[Comparison]:
    from runners.toolchains.iree.diagnosis import COMPARISONS

    return COMPARISONS


def find_tag(version: str) -> str | None:
    if is_dated(version):
        return f"candidate-{version}"
    return f"iree-{version}" if "rc" in version else f"v{version}"


def find_bundle(version: str) -> Bundle | None:
    return None


def list_tools(site_packages: Path) -> dict[str, tuple[str, ...]]:
    """Return every ``iree-`` program of the wheels, which differ by release, and the importers written in Python."""
    found: dict[str, tuple[str, ...]] = {"python": ("python",)}
    for folder in _PROGRAM_FOLDERS:
        for program in sorted((site_packages / folder).glob("iree-*")):
            if os.access(program, os.X_OK):
                found[program.name] = (f"{folder}/{program.name}",)
    for name, module in _MODULES.items():
        if (site_packages / module.replace(".", "/")).is_dir():
            found[name] = ("python", "-m", module)
    return found


def read_build_info(site_packages: Traversable) -> tuple[str | None, str | None]:
    """Read ``iree/compiler/version.py``: the version of the promoted nightly, and its commit."""
    try:
        text = site_packages.joinpath("iree/compiler/version.py").read_text(encoding="utf-8")[:4096]
    except OSError:
        return None, None
    version = re.search(r'^VERSION = "([0-9A-Za-z.+]{1,64})"', text, re.MULTILINE)
    commit = re.search(r'"IREE": "([0-9a-f]{40})"', text)
    return (version[1] if version else None), (commit[1] if commit else None)
