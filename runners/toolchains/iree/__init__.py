"""IREE: its compiler and runtime wheels, at one version. Flags are as each release's own help lists them."""

from __future__ import annotations

import json
import os
import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from runners.core.protocol import TestcaseKind
from runners.core.toolchain.facts import (
    AMD,
    APPLE,
    BROWSER,
    NVIDIA,
    QUIET,
    VULKAN,
    Bundle,
    Canary,
    Device,
    DriftEntry,
)
from runners.core.toolchain.guest import GuestFacts
from runners.toolchains.iree.diagnosis import COMPARISONS as COMPARISONS, DIAGNOSERS as DIAGNOSERS
from runners.toolchains.iree.failures import FAILURES as FAILURES
from runners.toolchains.iree.reports import REPORTS as REPORTS
from runners.toolchains.iree.rewriting import REWRITING as REWRITING

NAME = "iree"
TITLE = "IREE"
REPOSITORY: str | None = "iree-org/iree"
COMPANIONS: tuple[str, ...] = ()

PROVIDES = frozenset({"iree", "numpy", "sympy", "mpmath", "ml_dtypes"})
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
"""``vmvx`` first: it also checks bounds."""

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

_PROGRAM_FOLDERS = ("iree/_runtime_libs", "iree/compiler/_mlir_libs")
_MODULES = {"iree-import-onnx": "iree.compiler.tools.import_onnx", "iree-ir-tool": "iree.compiler.tools.ir_tool"}


def list_distributions(version: str) -> tuple[str, ...]:
    """Both at one version, except that 3.7.1 mended the compiler alone."""
    runtime = "3.7.0" if version == "3.7.1" else version
    return (f"iree-base-compiler=={version}", f"iree-base-runtime=={runtime}")


def find_tag(version: str) -> str | None:
    return f"iree-{version}" if "rc" in version else f"v{version}"


def find_bundle(version: str) -> Bundle | None:
    return None


def list_tools(site_packages: Path) -> dict[str, tuple[str, ...]]:
    """Every ``iree-`` program of the wheels (they differ per release), and the importers that are Python modules."""
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
    """From ``iree/compiler/version.py``: the nightly that was promoted, and its commit."""
    try:
        text = site_packages.joinpath("iree/compiler/version.py").read_text(encoding="utf-8")[:4096]
    except OSError:
        return None, None
    version = re.search(r'^VERSION = "([0-9A-Za-z.+]{1,64})"', text, re.MULTILINE)
    commit = re.search(r'"IREE": "([0-9a-f]{40})"', text)
    return (version[1] if version else None), (commit[1] if commit else None)


_SUCCESSORS = {
    "--iree-llvmgpu-enable-prefetch": "--iree-llvmgpu-prefetch-num-stages",
    "--iree-dispatch-creation-experimental-data-tiling": "--iree-dispatch-creation-data-tiling",
    "--iree-stream-external-resources-mappable": "--iree-hal-external-resources-mappable",
    "--iree-opt-import-parameters": "--iree-parameter-import",
    "--iree-opt-import-parameter-keys": "--iree-parameter-import-keys",
    "--iree-opt-import-parameter-maximum-size": "--iree-parameter-import-maximum-size",
    "--iree-opt-export-parameter-minimum-size": "--iree-parameter-export-minimum-size",
}
"""Flags under another name; every ``--iree-hip-`` flag that went in 3.12.0 is ``--iree-rocm-`` besides."""

_NOT_EXACT = {"--iree-llvmgpu-enable-prefetch": "a switch became a number of stages"}

_VALUES = tuple(
    DriftEntry(
        old=f"--iree-hal-target-device={backend}",
        new=f"--iree-hal-target-backends={backend}",
        kind="flag",
        gone_in="3.4.0",
        exact=True,
        note="backends are no devices any more; the successor works on every release",
    )
    for backend in ("llvm-cpu", "vmvx")
)

_RENAMED_IN_2023 = {"--module_file": "--module", "--entry_function": "--function", "--function_input": "--input"}
_RUNTIME = tuple(
    DriftEntry(old=old, new=new, kind="flag", gone_in="2.9.0", exact=True, note="renamed on 2023-02-01 (#12010)")
    for old, new in _RENAMED_IN_2023.items()
)
"""Flags of the runtime's tools that went before the first release that is numbered; older reports use them."""

_DIALECT = (
    DriftEntry(
        old="flow.dispatch.tensor",
        new="iree_tensor_ext.dispatch.tensor",
        kind="dialect",
        gone_in="3.4.0",
        introduced_in="3.4.0",
        exact=True,
    ),
    DriftEntry(
        old="iree_linalg_ext.map_scatter",
        new="iree_linalg_ext.map_store",
        kind="op",
        gone_in="3.11.0",
        introduced_in="3.11.0",
        exact=True,
    ),
    DriftEntry(
        old="iree_linalg_ext.attention",
        new="iree_linalg_ext.attention",
        kind="op",
        gone_in="3.13.0",
        introduced_in="3.13.0",
        note="its properties moved from {…} to <{…}>",
    ),
)


Span = tuple[str | None, str | None]
"""First release with a flag (None: all the oldest here) and first without it again (None: the newest has it)."""


def _load_spans() -> dict[str, Span]:
    """Every flag that some release lacks, by comparing the help of all of them."""
    document = json.loads((resources.files("runners.toolchains.iree") / "flags.json").read_bytes())
    return {
        flag: (since, gone)
        for tool in ("iree-opt", "iree-run-module", "iree-compile")
        for flag, (since, gone) in document["tools"][tool].items()
    }


def _flag_drift(spans: dict[str, Span]) -> tuple[DriftEntry, ...]:
    return tuple(_flag_entry(flag, *span, spans) for flag, span in sorted(spans.items()))


def _flag_entry(flag: str, since: str | None, gone: str | None, spans: dict[str, Span]) -> DriftEntry:
    if gone is None:
        return DriftEntry(old=flag, new=flag, kind="flag", introduced_in=since, note=f"unknown before {since}")
    new = _SUCCESSORS.get(flag) or flag.replace("--iree-hip-", "--iree-rocm-")
    known = new != flag and spans.get(new, (None, gone))[1] is None
    return DriftEntry(
        old=flag,
        new=new if known else None,
        kind="flag",
        gone_in=gone,
        introduced_in=spans[new][0] if known and new in spans else None,
        exact=known and flag not in _NOT_EXACT,
        note=_NOT_EXACT.get(flag) or (f"first in {since}" if since else ""),
    )


DRIFT = (*_VALUES, *_RUNTIME, *_DIALECT, *_flag_drift(_load_spans()))
