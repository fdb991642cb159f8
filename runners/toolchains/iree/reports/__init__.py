"""Define the vocabulary of bug reports about IREE."""

from __future__ import annotations

import re

from runners.core.toolchain.reports import (
    CommitWords,
    FailureWords,
    PythonNames,
    ReportAge,
    ReportVocabulary,
    TrackerDefaults,
    VersionWords,
)
from runners.toolchains.iree.reports.devices import read_devices
from runners.toolchains.iree.reports.tools import TOOLS
from runners.toolchains.iree.sources import SOURCES


def _is_plausible(version: str) -> bool:
    """True for the number of a release or the date of a nightly."""
    major, _, rest = version.partition(".")
    minor = re.match(r"\d+", rest)
    number = int(minor[0]) if minor else 0
    return (major in ("2", "3") and number < 100) or len(major) == 8 or (len(rest) >= 8 and major.startswith("20"))


_VERSIONS = VersionWords(
    prefixes=("iree-", "candidate-", "stable-"),
    leading=("candidate-", "iree-", "iree", "iree-base-compiler"),
    named_by_patterns=("iree", "compiler", "runtime", "wheel", "nightly", "candidate", "release", "snapshot"),
    wheel_patterns=("iree[-_](?:base[-_])?(?:compiler|runtime)",),
    wheel_file_patterns=("iree_(?:base_)?(?:compiler|runtime)",),
    line_patterns=("IREE.{0,40}version", "iree-(?:base-)?compiler", "LLVM version .{0,20}IREE"),
    short_pattern=r"3\.\d",  # one digit: 3.11 is as often Python's version
    is_plausible=_is_plausible,
    # `VERSION` in the release's iree/compiler/version.py.
    promoted={
        "2.9.0rc20241108": "2.9.0",
        "3.0.0rc20241118": "3.0.0",
        "3.1.0rc20250107": "3.1.0",
        "3.2.0rc20250206": "3.2.0",
        "3.3.0rc20250320": "3.3.0",
        "3.4.0rc20250430": "3.4.0",
        "3.5.0rc20250609": "3.5.0",
        "3.6.0rc20250718": "3.6.0",
        "3.7.0rc20250904": "3.7.0",
        "3.8.0rc20251010": "3.8.0",
        "3.9.0rc20251125": "3.9.0",
        "3.10.0rc20260107": "3.10.0",
        "3.11.0rc20260316": "3.11.0",
        "3.12.0rc20260917": "3.12.0",
        "3.13.0rc20261016": "3.13.0",
    },
)


def _choose_import(name: str, code: str, age: ReportAge) -> str | None:
    if name != "iree":
        return None
    if "iree.compiler" not in code:
        return "import iree.runtime"
    return "import iree.compiler, iree.runtime" if "iree.runtime" in code else "import iree.compiler"


_PYTHON = PythonNames(
    packages=frozenset({"iree"}),
    namespaces=("iree", "ireert", "ireec"),
    imports={
        "rt": "import iree.runtime as rt",
        "ireert": "import iree.runtime as ireert",
        "iree_runtime": "import iree.runtime as iree_runtime",
        "ireec": "import iree.compiler as ireec",
        "aot": "from iree.turbine import aot",
    },
    choose_import=_choose_import,
    distributions={"iree.turbine": "iree-turbine", "shark_turbine": "iree-turbine"},
    readers=frozenset(
        {
            *("VmModule.mmap", "ireert.VmModule.mmap", "rt.VmModule.mmap", "load_vm_module_from_file"),
            *("load_vm_flatbuffer_file", "ireert.load_vm_flatbuffer_file"),
            *("compile_file", "ireec.compile_file", "iree.compiler.compile_file", "tools.compile_file"),
            *("compiler.compile_file", "ireec.tools.compile_file"),
        }
    ),
    writers=frozenset({"save_to_mlir", "compile_str"}),
)

_FAILURES = FailureWords(
    mismatch_patterns=(
        "Expected (?:near )?equality of these values",
        r"\[FAILED\]",
        r"element at index \d+ \(.{1,40}?\) does not match",
    ),
    assertions_abort=True,  # they are LLVM's
)

_COMMITS = CommitWords(
    name_patterns=(r"\b(?:passes|linalg_ext)\.\w{4,60}", r"--iree-[\w-]{4,60}"),
    related={
        "metal": "spirv",
        "rocm": "llvmgpu gpu amdgpu",
        "hip": "llvmgpu gpu amdgpu",
        "cuda": "llvmgpu gpu",
        "gfx942": "llvmgpu gpu amdgpu",
        "gfx1100": "llvmgpu gpu amdgpu",
        "mi300x": "llvmgpu gpu amdgpu",
        "llvmcpu": "cpu",
        "dylib": "cpu llvmcpu",
        "datatiling": "dt encoding",
    },
    targets={"cpu": "llvmcpu vmvx", "cuda": "llvmgpu", "rocm": "llvmgpu"},
    sources=SOURCES,
)

REPORTS = ReportVocabulary(
    called=("iree",),
    repositories=re.compile(r"(?:^|/)(?:iree|iree-turbine|shark\S*)$", re.I),
    marks=re.compile(
        r"\biree-(?:compile|opt|run-module|benchmark-module|base-\w+)\b|\bimport iree\b|\bfrom iree\b"
        r"|\bimport iree\.|--iree-[\w-]+|\biree\.(?:compiler|runtime|turbine)\b|\bIREE\b|\biree_\w+\.\w+"
        r"|\bflow\.dispatch\b|\bhal\.\w+|\bllvm-cpu\b|\bvmvx\b|\bvulkan-spirv\b|\bfunc\.func\b|\bmlir-opt\b"
        r"|^[ \t]{0,40}%[\w:]{1,40} = \"?"
        r"(?:arith|linalg|tensor|tosa|stablehlo|mhlo|memref|vector|scf|affine|torch)\.\w",
        re.M,
    ),
    read_devices=read_devices,
    versions=_VERSIONS,
    python=_PYTHON,
    failures=_FAILURES,
    tools=TOOLS,
    mlir_functions=("util.func",),
    mlir_modules=(
        *("hal.executable", "flow.executable", "stream.executable", "vm.module"),
        *("util.global", "util.initializer", "check."),
    ),
    commits=_COMMITS,
    tracker=TrackerDefaults(skip_labels=("enhancement ➕",), devices=("vmvx",)),
    source_folders=(
        *("integrations/tensorflow", "integrations/tf", "iree/test", "tests/e2e", "tests/external", "build_tools"),
        *("compiler/bindings", "runtime/bindings", "llvm-external-projects", "samples", "experimental"),
        *("compiler/src", "tests/compiler_driver", "tests/transform_dialect", "tests/microbenchmarks", "tools/test"),
    ),
)
