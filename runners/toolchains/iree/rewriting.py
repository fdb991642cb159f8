"""Retarget IREE's testcases by their flags, because their command lines name the target. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from runners.core.packages.versions import order_version
from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.rewriting import (
    Argument,
    Embedded,
    Expression,
    Idioms,
    ImpliedArgument,
    Rewriting,
    StringUse,
)
from runners.toolchains.iree.constant_data import supply_data
from runners.toolchains.iree.drift import INPUT_TYPES
from runners.toolchains.iree.input_types import find_unread_dialect, list_input_flags
from runners.toolchains.iree.notations import port_notations
from runners.toolchains.iree.placed_passes import place_passes

BACKENDS = {
    "llvm-cpu": ("llvm-cpu", "local-task"),
    "local-task": ("llvm-cpu", "local-task"),
    "local-sync": ("llvm-cpu", "local-sync"),
    "vmvx": ("vmvx", "local-task"),
    "vulkan": ("vulkan-spirv", "vulkan"),
    "cuda": ("cuda", "cuda"),
    "hip": ("rocm", "hip"),
    "metal": ("metal-spirv", "metal"),
}
"""Device → the compiler's backend and the runtime's device."""

_TARGET = ("--iree-hal-target-backends", "--iree-hal-target-device", "--iree-hal-local-target-device-backends")
_GPU = ("--iree-llvmgpu-", "--iree-codegen-llvmgpu-", "--iree-codegen-gpu-")
_FLAGS_OF = {
    "llvm-cpu": ("--iree-llvmcpu-",),
    "vmvx": ("--iree-vmvx-",),
    "vulkan-spirv": ("--iree-vulkan-", "--iree-spirv-", "--iree-codegen-spirv-"),
    "cuda": ("--iree-cuda-", "--iree-hal-cuda-", *_GPU),
    "rocm": ("--iree-hip-", "--iree-rocm-", "--iree-hal-rocm-", *_GPU),
    "metal-spirv": ("--iree-metal-", "--iree-spirv-", "--iree-codegen-spirv-"),
    "webgpu-spirv": ("--iree-webgpu-",),
}
"""Flags of one backend. Other backends ignore or reject them."""
_OF_ONE_BACKEND = tuple({prefix for prefixes in _FLAGS_OF.values() for prefix in prefixes})
_DEVICE = "--device"
_RUNNERS = {"iree-run-module", "iree-benchmark-module", "iree-check-module", "iree-run-mlir"}
_NAMED_IN_TEXT = ("hal.device.targets", "#hal.device.target<", "#hal.executable.target<")
"""Marks of an input that names its own target, which overrides the flags."""


def retarget_testcase(testcase: Testcase, device: str) -> Testcase | None:
    """Return the testcase with flags for ``device``. None if no flag names a target, or the input names its own."""
    if testcase.kind is not TestcaseKind.COMMAND_LINE or device not in BACKENDS:
        return None
    if any(mark in text for text in testcase.files.values() for mark in _NAMED_IN_TEXT):
        return None
    if len({words for step in testcase.steps for name, words in _split_flags(step) if name == _TARGET[0]}) > 1:
        return None  # it compares the results of several targets
    backend, runtime_device = BACKENDS[device]
    steps = tuple(_retarget_step(step, backend, runtime_device) for step in testcase.steps)
    if steps == testcase.steps:
        return None
    return msgspec.structs.replace(testcase, steps=tuple(_name_device(step, runtime_device) for step in steps))


MODULE_TEXT = re.compile(
    r"^\s*(?:(?:builtin\.|vm\.)?module\b|(?:func\.|util\.|builtin\.)?func\b|\"builtin\.module\"|[#!]\w+ = "
    r"|(?:hal|flow|stream)\.executable\b)[^\n]*[@({=]",
    re.M,
)
"""The beginning of a module or of a function, which identifies a text as MLIR."""
_OLD_BACKENDS = frozenset({"dylib", "dylib-llvm-aot", "llvm-aot"})
"""Names of ``llvm-cpu`` until 2022."""
_OLD_DRIVERS = frozenset({"dylib", "dylib-sync", "vmvx", "vmla"})
"""Names of the CPU's drivers until 2022, when ``local-task`` and ``local-sync`` replaced them."""


_NO_BACKENDS = {
    **dict.fromkeys((*_OLD_BACKENDS, "cpu", "local-task", "local-sync", "local"), "llvm-cpu"),
    **{"vulkan": "vulkan-spirv", "metal": "metal-spirv"},
}
"""Names of drivers, and earlier names of backends → the backend whose driver a module's loader uses."""


_NO_MHLO = order_version("20230815.614")
"""The first build that reads only StableHLO. Earlier ones call their input type MHLO, and read both."""


_IMPLIED = tuple(
    ImpliedArgument(
        function=f"iree.runtime{module}.VmModule.from_flatbuffer",
        count=1,
        makers=frozenset({"iree.runtime.Config", "iree.runtime.system_api.Config"}),
        attribute="vm_instance",
    )
    for module in ("", ".binding")
)
"""Until 2022, the instance of the virtual machine was a global."""


_PROPOSED_FLAG = re.compile(
    r"Unknown command line argument '-{1,2}(?P<old>[\w-]{3,200})'[^\n]{0,400}\n"
    r"[^\n]{0,200}Did you mean '-{1,2}(?P<new>[\w-]{3,200})'"
)
"""LLVM's command line proposes the flag with the fewest edits, whatever its function."""


def find_idioms(version: str) -> Idioms:
    """Return the differences between a release and others that are not names."""
    return Idioms(
        find_embedded=lambda text: Embedded(language="mlir") if MODULE_TEXT.search(text) else None,
        port_mlir=lambda text: port_notations(text, version),
        port_string=lambda use, text: _port_string(use, text, version),
        flags_program="iree-compile",
        rename_program=_rename_program,
        implied=_IMPLIED,
        find_unread_dialect=lambda files: find_unread_dialect(files, version),
        list_needed_flags=lambda step, files: list_input_flags(step, files, version),
        port_pipeline=_anchor_pipeline,
        place_passes=place_passes,
        proposed_flag=_PROPOSED_FLAG,
    )


_SHORT_ANCHOR = re.compile(r"(?<![\w.-])(func|module)\(")
_ANCHORED = re.compile(r"\s*(?:builtin\.module|any)\s*\(")


_ANCHORS = {"func": "func.func", "module": "builtin.module"}


def _anchor_pipeline(pipeline: str) -> str:
    """Name the operation on which the pipeline runs. Until October 2022, MLIR assumed the module.

    Until March 2022, ``func.func(…)`` was called ``func(…)``, and ``builtin.module(…)`` was called ``module(…)``.
    """
    text = _SHORT_ANCHOR.sub(lambda found: f"{_ANCHORS[found[1]]}(", pipeline)
    return text if not text.strip() or _ANCHORED.match(text) else f"builtin.module({text})"


def _rename_program(argv: Sequence[str]) -> str | None:
    """Return ``iree-compile`` for the names that it had until 2022. No wheel has a program of these names."""
    translates = any(re.match(r"--?iree-mlir-to-vm-bytecode-module$", word) for word in argv)
    return "iree-compile" if argv[0] == "ireec" or (argv[0] == "iree-translate" and translates) else None


def _port_string(use: StringUse, text: str, version: str) -> Expression | None:
    """Replace the names of backends, drivers and input types of earlier years."""
    match use:
        case Argument(keyword="target_backends") if text in _OLD_BACKENDS:
            return Expression(code='"llvm-cpu"', notation=True)
        case Argument(function=function, keyword="backend") if text in _NO_BACKENDS and _loads_module(function):
            return Expression(code=repr(_NO_BACKENDS[text]), notation=True)
        case Argument(keyword="input_type") if text in INPUT_TYPES and order_version(version) >= _NO_MHLO:
            return Expression(code=repr(INPUT_TYPES[text]), notation=True)
        case Argument(function=function, keyword=keyword) if text in _OLD_DRIVERS and _names_driver(
            function, keyword
        ):
            driver = "local-sync" if text.endswith("-sync") else "local-task"
            return Expression(code=f'"{driver}"', notation=True)
        case _:
            return None


def _loads_module(function: str) -> bool:
    return function.startswith("iree.runtime") and function.rpartition(".")[2].startswith("load_vm_flatbuffer")


def _names_driver(function: str, keyword: str) -> bool:
    named = function.rpartition(".")[2] in {"Config", "get_driver", "get_device", "load_vm_flatbuffer"}
    return function.startswith("iree.runtime") and (named if not keyword else keyword in {"driver", "driver_name"})


TARGETS = ("hip", "cuda", "vulkan")
"""Targets of many reports. Each release compiles for them without a device."""
_CHIPS = {"hip": ("--iree-hip-target", "gfx942"), "cuda": ("--iree-cuda-target", "sm_80")}
"""Device → the flag and the chip of a usual target. The compiler's default is rejected (AMD) or is from 2016."""


def compile_for(testcase: Testcase, device: str) -> Testcase | None:
    """Return the testcase that compiles for ``device`` and a usual chip. None if it does more than compile."""
    if any(step[:1] != ("iree-compile",) for step in testcase.steps):
        return None
    moved = retarget_testcase(testcase, device)
    if moved is None or device not in _CHIPS:
        return moved
    flag, chip = _CHIPS[device]
    return msgspec.structs.replace(moved, steps=tuple((*step, f"{flag}={chip}") for step in moved.steps))


REWRITING = Rewriting(
    idioms=find_idioms,
    supply_data=supply_data,
    retarget=retarget_testcase,
    targets=TARGETS,
    compile_for=compile_for,
)


def _name_device(step: tuple[str, ...], runtime_device: str) -> tuple[str, ...]:
    """Add the device to a command that runs a module on the runtime's default device."""
    named = any(name == _DEVICE for name, _ in _split_flags(step))
    return step if named or not step or step[0] not in _RUNNERS else (*step, f"{_DEVICE}={runtime_device}")


def _retarget_step(step: tuple[str, ...], backend: str, runtime_device: str) -> tuple[str, ...]:
    """Replace the target of a command, and remove the flags of other backends."""
    words: list[str] = []
    targeted = False
    for name, word in _split_flags(step):
        if name in _TARGET:
            words += [] if targeted else [f"--iree-hal-target-backends={backend}"]
            targeted = True
        elif name == _DEVICE:
            words.append(f"{_DEVICE}={runtime_device}")
        elif name.startswith(_FLAGS_OF[backend]) or not name.startswith(_OF_ONE_BACKEND):
            words.extend(word)
    return tuple(words)


def _split_flags(step: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """Split a command into its words, each with the name of its flag. ``--flag value`` is one entry if the flag names
    a target."""
    found: list[tuple[str, tuple[str, ...]]] = []
    words = list(step)
    while words:
        word = words.pop(0)
        name = "-" + word if word.startswith("-") and not word.startswith("--") else word
        name, equals, _ = name.partition("=")
        taken = [word]
        if not equals and words and _takes_value(name, words[0]):
            taken.append(words.pop(0))
        found.append((name, tuple(taken)))
    return found


def _takes_value(flag: str, word: str) -> bool:
    """True if the word after a flag is its value. A switch of a backend has no value; the next word is a file."""
    if word.startswith("-"):
        return False
    return flag in (*_TARGET, _DEVICE) or (flag.startswith(_OF_ONE_BACKEND) and "." not in word)
