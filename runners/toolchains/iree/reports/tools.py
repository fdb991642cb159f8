"""Describe IREE's programs in the command lines of reports."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from runners.core.toolchain.guest import Step
from runners.core.toolchain.reports import CheckProgram, CombinedProgram, CommandLineTools, DeviceText
from runners.toolchains.iree.constant_data import list_missing_data
from runners.toolchains.iree.failures import DISPATCHES
from runners.toolchains.iree.reports.inputs import choose_extents, find_called, generate_inputs
from runners.toolchains.iree.reports.reproducers import REPRODUCERS

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


def _make_backend_flag(device: str) -> str:
    return f"--iree-hal-target-backends={_BACKENDS.get(device, 'llvm-cpu')}"


def _compile_input(device: str, source: str, module: str) -> Step:
    return ("iree-compile", _make_backend_flag(device), source, "-o", module)


_NAMES_TARGET = re.compile(r"--?iree-hal-(?:target-backends|target-device|default-device)|--?compile-mode=")
_EARLY_PHASE = re.compile(r"--?compile-to=(?!vm$|end$|hal$|executable-)")
_TARGET_IN_TEXT = re.compile(
    r"hal\.device\.targets|#hal\.(?:device|executable)\.target|!hal\.device\b|hal\.executable\b"
)


def _choose_target(argv: Sequence[str], text: str, device: str) -> str | None:
    """Return the flag for ``device`` if a call compiles completely, and names no target in its flags or its input.

    Without a target, every release rejects a program that has a dispatch.
    """
    if argv[0] != "iree-compile" or any(_NAMES_TARGET.match(word) or _EARLY_PHASE.match(word) for word in argv):
        return None
    return None if _TARGET_IN_TEXT.search(text) else _make_backend_flag(device)


_LOCAL_BACKENDS = "--iree-hal-local-target-device-backends"


def _complete_target(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the flag of the code generator that the device ``local`` needs, if a call lacks it.

    All releases reject the device without it: "does not provide any executable targets".
    """
    local = any(re.match(r"--?iree-hal-target-device=local\b", word) for word in argv)
    given = any(word.lstrip("-").startswith(_LOCAL_BACKENDS[2:]) for word in argv)
    return (f"{_LOCAL_BACKENDS}=llvm-cpu",) if local and not given else ()


_TARGET_FLAGS = {"iree-hal-target-backends", "iree-hal-target-device", _LOCAL_BACKENDS[2:]}
_TARGETS = {
    *(
        *_BACKENDS,
        *_BACKENDS.values(),
        "vmvx-inline",
        "webgpu-spirv",
        "webgpu",
        "dylib-llvm-aot",
        "dylib",
        "llvm-aot",
    ),
    *("local", "amdgpu", "amd-aie", "xrt", "xrt-lite", "inline-static", "inline-dynamic"),
}
_COMMON_FLAGS = {
    *("split-input-file", "verify-diagnostics", "verify-each", "allow-unregistered-dialect", "canonicalize", "cse"),
    *("inline", "symbol-dce", "debug", "verbose", "help", "show-dialects", "pass-pipeline", "debug-only"),
    *("compile-to", "compile-from", "compile-mode", "output-format", "print-ir-after-all", "device", "module"),
    *("input", "output", "expected_output", "parameters", "device_allocator", "list_drivers", "list_devices"),
    *("function_input", "entry_function", "module_file", "driver", "input_file", "inputs_file"),
}
"""Flags of LLVM's tools in reports. The passes of other projects are too many to list: ``iree-opt`` may know any."""


def _knows_flag(program: str, word: str) -> bool:
    name, assigned, value = word.lstrip("-").partition("=")
    if name in _TARGET_FLAGS and assigned:
        return all(re.sub(r"\[\d+\]$", "", one) in _TARGETS for one in value.split(","))
    upstream = program == "iree-opt" and not name.startswith(("iree", "mlir")) and not name.endswith("-")
    return upstream or name in _COMMON_FLAGS or name in _load_flags(program) or name.startswith("benchmark_")


@cache
def _load_flags(program: str) -> frozenset[str]:
    """Return the flags of IREE and of MLIR that some release of a program knows, from the releases' own help."""
    document = json.loads((resources.files("runners.toolchains.iree") / "flags.json").read_bytes())
    runs: tuple[str, ...] = (
        ("iree-run-module",) if program in ("iree-benchmark-module", "iree-check-module") else ("iree-compile",)
    )
    runs = ("iree-compile", "iree-run-module") if program == "iree-run-mlir" else runs
    tools = (program,) if program in document["others"] else runs
    lists = (names for tool in tools for names in (document["tools"][tool], document["others"][tool]))
    return frozenset(name.lstrip("-") for names in lists for name in names)


_FLAG = re.compile(r"(?<![\w-])--iree-[a-z0-9-]{3,80}(?:=[\w.,+-]{1,80})?(?![\w=])")
_OF_TARGET = re.compile(r"--iree-hal-|--iree-[\w-]*(?:list|dump|print|compile-to)")
"""Flags of a target, which the device determines, and flags that only print something."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n\n")
_FAILS = re.compile(r"\b(?:fail|crash|error|hang|wrong|incompatib|segfault|assert|broken|invalid|abort)\w*", re.I)
_WORKS = re.compile(
    r"\b(?:works?|without|fine|passes|passing|unless|work-?around|disabl\w*|remov\w*|instead|no longer|avoid\w*"
    r"|drop\w*|not (?:needed|required)|should|suggest\w*|succeeds?)\b",
    re.I,
)
"""Words of a sentence about a flag that avoids the failure."""
_NOT_WORKING = re.compile(
    r"\b(?:(?:do|does|did|is|are|was|were)(?:n[o'’]?t| not)|not|never|no longer)"
    r" (?:\w+ )?(?:work\w*|fine|pass\w*|succeed\w*)",
    re.I,
)
"""The opposite of such words: ``doesnt work``."""
_AMD = frozenset({"hip", "rocm", "amdgpu"})
_AMD_CHIP = re.compile(r"\bgfx[0-9a-f]{3,4}\b")


def _list_told_flags(text: DeviceText) -> tuple[str, ...]:
    """Return the flags in the title and in sentences about the failure.

    A clean run without the suspected flag would prove nothing.
    """
    sentences = [text.title, *_SENTENCE_END.split(text.prose[:20_000])]
    marked = (_NOT_WORKING.sub("fails", one) for one in sentences)
    accusing = [one for at, one in enumerate(marked) if not _WORKS.search(one) and (at == 0 or _FAILS.search(one))]
    told = dict.fromkeys(flag for one in accusing for flag in _FLAG.findall(one) if not _OF_TARGET.match(flag))
    return tuple(told)[:MAX_TOLD_FLAGS]


def _choose_chip(text: DeviceText, device: str) -> tuple[str, ...]:
    """Return the flag for the first AMD chip in the report, else for a usual one. AMD targets need the flag."""
    if device not in _AMD:
        return ()
    chip = _AMD_CHIP.search("\n".join((text.title, text.prose, text.output, text.commands[:200_000])))
    return (f"--iree-hip-target={chip[0] if chip else USUAL_CHIP}",)


USUAL_CHIP = "gfx942"
MAX_TOLD_FLAGS = 6


_DRIVERS = {"vulkan", "cuda", "hip", "metal"}


def _run_module(device: str, module: str, function: str) -> Step:
    driver = "hip" if device == "rocm" else device
    flag = f"--device={driver if driver in _DRIVERS else 'local-task'}"
    return ("iree-run-module", flag, f"--module={module}", f"--function={function}")


_ENTRY = re.compile(
    r"^[ \t]*(?:util\.)?func(?:\.func)?[ \t]+(?:public[ \t]+)?@(?P<name>[\w.$-]+)\((?P<arguments>[^)\n]?)", re.M
)


def _list_entry_points(text: str) -> tuple[tuple[str, bool], ...]:
    return tuple((found["name"], bool(found["arguments"].strip())) for found in _ENTRY.finditer(text))


def _choose_suffix(argv: Sequence[str]) -> str:
    """Return ``mlir`` if ``--compile-to`` names a phase before the last, else ``vmfb``."""
    return "mlir" if any(re.match(r"--?compile-to=(?!vm$|end$)", word) for word in argv) else "vmfb"


def _split_run_mlir(flags: Sequence[str], device: str) -> tuple[Step, Step]:
    """Split the flags of ``iree-run-mlir`` by their prefix."""
    compiling = [word for word in flags if re.match(r"--?(?:iree|mlir|Xcompiler)[-,]", word)]
    running = [re.sub(r"^--Xruntime[,=]", "", word) for word in flags if word not in compiling]
    if not any("iree-hal-target" in word for word in compiling):
        compiling.insert(0, _make_backend_flag(device))
    return ("iree-compile", *compiling), ("iree-run-module", *running)


def _make_test_step(argv: Sequence[str], name: str) -> Step:
    return ("iree-run-module", *argv[1:], f"--function={name}")


# ------------------------------------------------------------------------------------------ check tests
#
# Rewrite IREE's ``check.*`` tests into functions that return the checked values: no wheel has ``iree-check-module``.
# ``iree-run-module`` runs a rewritten test and prints the values, which are compared with those in the report.

_CHECK = re.compile(
    r"^[ \t]*check\.expect_\w+\((?P<values>%[\w#.$-]+(?:, ?%[\w#.$-]+)?)[^\n]*:[ ]?(?P<type>[^\s:()]+)[ \t]*$"
)
_FUNCTION = re.compile(
    r"^(?P<head>[ \t]*(?:util\.)?func(?:\.func)?\b[^\n@]{0,60}@(?P<name>[\w.$-]+)\(\))(?P<tail>[^\n]*\{[ \t]*)$"
)
_RETURN = re.compile(r"^(?P<head>[ \t]*(?:util\.|func\.)?return)[ \t]*$")


def _return_checked_values(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the MLIR with each checked value returned, and the names of the rewritten functions.

    Only functions without arguments and results are rewritten: all tests are such functions.
    """
    rows = text.split("\n")
    names: list[str] = []
    begin: int | None = None
    values: list[tuple[str, str]] = []
    gone: set[int] = set()
    for row, line in enumerate(rows):
        if _FUNCTION.match(line):
            begin, values = row, []
        elif begin is not None and (check := _CHECK.match(line)):
            values += [(value.strip(), check["type"]) for value in check["values"].split(",")]
            gone.add(row)
        elif begin is not None and values and (end := _RETURN.match(line)):
            head = _FUNCTION.match(rows[begin])
            assert head is not None
            types = ", ".join(kind for _, kind in values)
            rows[begin] = f"{head['head']} -> ({types}){head['tail']}"
            rows[row] = f"{end['head']} {', '.join(value for value, _ in values)} : {types}"
            names.append(head["name"])
            begin = None
    return "\n".join(line for row, line in enumerate(rows) if row not in gone), tuple(names)


TOOLS = CommandLineTools(
    prefix="iree-",
    programs=frozenset(
        {
            *("iree-compile", "iree-opt", "iree-run-module", "iree-benchmark-module", "iree-dump-module"),
            *("iree-create-parameters", "iree-convert-parameters", "iree-dump-parameters"),
            *("iree-import-onnx", "iree-run-mlir", "iree-check-module", "iree-translate"),
            *("iree-benchmark-executable", "ireec"),
        }
    ),
    other_programs=frozenset(
        {
            *("iree-as-module", "iree-benchmark-replay", "iree-build", "iree-c-embed-data", "iree-cpuinfo"),
            *("iree-dump-replay", "iree-flatcc-cli", "iree-ir-tool", "iree-link", "iree-lld", "iree-profile"),
            *("iree-profile-render", "iree-run-replay", "iree-tracy-capture", "iree-import-tf", "iree-import-tflite"),
        }
    ),
    optimizer="iree-opt",
    stand_ins={"mlir-opt": "iree-opt", "iree-dialects-opt": "iree-opt"},
    compiler="iree-compile",
    compilers=frozenset({"iree-compile", "iree-opt", "iree-translate", "iree-run-mlir", "ireec"}),
    runners=frozenset({"iree-run-module", "iree-benchmark-module", "iree-check-module"}),
    importers={"iree-import-onnx": ("onnx",)},
    module_flags=("--module", "--module_file"),
    module_suffix="vmfb",
    data_suffixes=("irpa",),
    compile_input=_compile_input,
    output_suffix=_choose_suffix,
    choose_target=_choose_target,
    complete_target=_complete_target,
    knows_flag=_knows_flag,
    list_told_flags=_list_told_flags,
    choose_chip=_choose_chip,
    no_target="no HAL devices defined",
    informs=re.compile(r"--?(?:iree-(?:\w+-)*list-[\w-]+|list-passes|show-dialects|help[\w-]*)$"),
    run_module=_run_module,
    entry_points=_list_entry_points,
    generate_inputs=generate_inputs,
    find_called=find_called,
    choose_extents=choose_extents,
    no_inputs="input list and function mismatch",
    missing_data=list_missing_data,
    product=DISPATCHES,
    combined=CombinedProgram(name="iree-run-mlir", split=_split_run_mlir),
    reproducers=REPRODUCERS,
    check=CheckProgram(name="iree-check-module", return_checked=_return_checked_values, run_test=_make_test_step),
    result_header_patterns=("EXEC @", r"result\[\d+\]"),
    result_value_patterns=(r"(?:\d+x){0,8}[a-z]{1,4}\d{1,2}=",),
    compared_values=re.compile(r"^\s{0,8}lhs: (?P<actual>[^\n]+)\n\s{0,8}rhs: (?P<expected>[^\n]+)", re.M),
)
