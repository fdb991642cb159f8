"""The vocabulary of bug reports about IREE."""

from __future__ import annotations

import re

from runners.core.toolchain.reports import (
    CommitWords,
    FailureWords,
    PythonNames,
    ReportAge,
    ReportVocabulary,
    TrackerDefaults,
)
from runners.toolchains.iree.reports.devices import read_devices
from runners.toolchains.iree.reports.tools import TOOLS
from runners.toolchains.iree.reports.versions import VERSIONS


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
)

REPORTS = ReportVocabulary(
    called=("iree",),
    repositories=re.compile(r"(?:^|/)(?:iree|iree-turbine|shark\S*)$", re.I),
    marks=re.compile(
        r"\biree-(?:compile|opt|run-module|benchmark-module|base-\w+)\b|\bimport iree\b|\bfrom iree\b"
        r"|\bimport iree\.|--iree-[\w-]+|\biree\.(?:compiler|runtime|turbine)\b|\bIREE\b|\biree_\w+\.\w+"
        r"|\bflow\.dispatch\b|\bhal\.\w+|\bllvm-cpu\b|\bvmvx\b|\bvulkan-spirv\b|\bfunc\.func\b"
    ),
    read_devices=read_devices,
    versions=VERSIONS,
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
)
