"""IREE's programs in the command lines of reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.core.toolchain.reports import CheckProgram, CombinedProgram, CommandLineTools, Step
from runners.toolchains.iree.reports.check_tests import return_checked_values

_BACKENDS = {
    "llvm-cpu": "llvm-cpu",
    "vmvx": "vmvx",
    "vulkan": "vulkan-spirv",
    "cuda": "cuda",
    "hip": "rocm",
    "rocm": "rocm",
    "metal": "metal-spirv",
}
"""Device → the backend that compiles for it."""


def _backend_flag(device: str) -> str:
    return f"--iree-hal-target-backends={_BACKENDS.get(device, 'llvm-cpu')}"


def _compile_input(device: str, source: str, module: str) -> Step:
    return ("iree-compile", _backend_flag(device), source, "-o", module)


def _output_suffix(argv: Sequence[str]) -> str:
    """Return ``mlir`` if ``--compile-to`` names a phase before the last, else ``vmfb``."""
    return "mlir" if any(re.match(r"--?compile-to=(?!vm$|end$)", word) for word in argv) else "vmfb"


def _split_run_mlir(flags: Sequence[str], device: str) -> tuple[Step, Step]:
    """Split the flags of ``iree-run-mlir`` by their prefix."""
    compiling = [word for word in flags if re.match(r"--?(?:iree|mlir|Xcompiler)[-,]", word)]
    running = [re.sub(r"^--Xruntime[,=]", "", word) for word in flags if word not in compiling]
    if not any("iree-hal-target" in word for word in compiling):
        compiling.insert(0, _backend_flag(device))
    return ("iree-compile", *compiling), ("iree-run-module", *running)


def _run_test(argv: Sequence[str], name: str) -> Step:
    return ("iree-run-module", *argv[1:], f"--function={name}")


TOOLS = CommandLineTools(
    prefix="iree-",
    programs=frozenset(
        {
            *("iree-compile", "iree-opt", "iree-run-module", "iree-benchmark-module", "iree-dump-module"),
            *("iree-import-onnx", "iree-run-mlir", "iree-check-module", "iree-translate"),
            "iree-benchmark-executable",
        }
    ),
    other_programs=frozenset({"iree-run-trace", "iree-e2e-matmul-test"}),
    compiler="iree-compile",
    compilers=frozenset({"iree-compile", "iree-opt", "iree-translate", "iree-run-mlir"}),
    runners=frozenset({"iree-run-module", "iree-benchmark-module", "iree-check-module"}),
    module_flags=("--module", "--module_file"),
    module_suffix="vmfb",
    data_suffixes=("irpa",),
    compile_input=_compile_input,
    output_suffix=_output_suffix,
    combined=CombinedProgram(name="iree-run-mlir", split=_split_run_mlir),
    check=CheckProgram(name="iree-check-module", return_checked=return_checked_values, run_test=_run_test),
    result_header_patterns=("EXEC @", r"result\[\d+\]"),
    result_value_patterns=(r"(?:\d+x){0,8}[a-z]{1,4}\d{1,2}=",),
    compared_values=re.compile(r"^\s{0,8}lhs: (?P<actual>[^\n]+)\n\s{0,8}rhs: (?P<expected>[^\n]+)", re.M),
)
