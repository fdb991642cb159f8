"""The same testcase for another device, its inputs untouched. Pure.

IREE's command lines name their target: the flags are rewritten. TVM's testcases choose it while they run: a hook
inside the sandbox (``guest/tvm/retarget.py``) gives every target and device that they ask for the one wanted, and
their text stays as it is.
"""

from __future__ import annotations

import re

import msgspec

from runners.core.guest_programs import is_launch, launch
from runners.core.protocol import Testcase, TestcaseKind

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
"""Flags that mean nothing to other backends; some are refused by them."""
_OF_ONE_BACKEND = tuple({prefix for prefixes in _FLAGS_OF.values() for prefix in prefixes})
_DEVICE = "--device"
_RUNNERS = {"iree-run-module", "iree-benchmark-module", "iree-check-module", "iree-run-mlir"}
_NAMED_IN_TEXT = ("hal.device.targets", "#hal.device.target<", "#hal.executable.target<")
"""Input that carries its own target, which overrides the flags."""


TVM_TARGETS = {name: name for name in ("llvm", "cuda", "rocm", "opencl", "vulkan", "metal")}
_TVM_GPU = re.compile(r"cuda|nvptx|rocm|opencl|vulkan|metal|nvidia/|\bgpu\b", re.I)


def retarget(testcase: Testcase, device: str) -> Testcase | None:
    """The testcase for ``device``.

    None for an unknown device, or a testcase that names no target; where the input carries its own; and where the
    testcase is for that device as it is.
    """
    if testcase.toolchain == "tvm" and testcase.kind is TestcaseKind.PYTHON:
        return _hooked(testcase, device)
    if testcase.kind is not TestcaseKind.COMMAND_LINE or device not in BACKENDS:
        return None
    if any(mark in text for text in testcase.files.values() for mark in _NAMED_IN_TEXT):
        return None
    backend, runtime_device = BACKENDS[device]
    steps = tuple(_step(step, backend, runtime_device) for step in testcase.steps)
    if steps == testcase.steps:
        return None
    return msgspec.structs.replace(testcase, steps=tuple(_with_device(step, runtime_device) for step in steps))


def _hooked(testcase: Testcase, device: str) -> Testcase | None:
    """The same program under the hook; one that names no GPU already runs on the CPU."""
    names_gpu = any(_TVM_GPU.search(text) for text in testcase.files.values())
    if device not in TVM_TARGETS or (device == "llvm" and not names_gpu):
        return None
    steps = tuple(launch("tvm.retarget", TVM_TARGETS[device], *step[1:]) for step in testcase.steps)
    return msgspec.structs.replace(testcase, steps=steps)


def is_hooked(testcase: Testcase) -> bool:
    """Whether our programs for the inside take part in its steps."""
    return any(is_launch(step) for step in testcase.steps)


def in_words(testcase: Testcase) -> tuple[str, ...]:
    """How a retargeted testcase differs, for people: the new command lines, or what the hook does."""
    if is_hooked(testcase):
        target = testcase.steps[0][3]
        return (f"while it runs, every target is {target} and every device the one that goes with it",)
    return tuple(" ".join(step)[:500] for step in testcase.steps)


def _with_device(step: tuple[str, ...], runtime_device: str) -> tuple[str, ...]:
    """What runs a module on the runtime's default device says which it is."""
    named = any(name == _DEVICE for name, _ in _flags(step))
    return step if named or not step or step[0] not in _RUNNERS else (*step, f"{_DEVICE}={runtime_device}")


def _step(step: tuple[str, ...], backend: str, runtime_device: str) -> tuple[str, ...]:
    """One command: its target replaced where it names one, and flags of the old backend left out."""
    words: list[str] = []
    targeted = False
    for name, word in _flags(step):
        if name in _TARGET:
            words += [] if targeted else [f"--iree-hal-target-backends={backend}"]
            targeted = True
        elif name == _DEVICE:
            words.append(f"{_DEVICE}={runtime_device}")
        elif name.startswith(_FLAGS_OF[backend]) or not name.startswith(_OF_ONE_BACKEND):
            words.extend(word)
    return tuple(words)


def _flags(step: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """The words of a command with their flag's name; ``--flag value`` is one where the flag names a target."""
    found: list[tuple[str, tuple[str, ...]]] = []
    words = list(step)
    while words:
        word = words.pop(0)
        name = "-" + word if word.startswith("-") and not word.startswith("--") else word
        name, equals, _ = name.partition("=")
        taken = [word]
        if not equals and words and _takes(name, words[0]):
            taken.append(words.pop(0))
        found.append((name, tuple(taken)))
    return found


def _takes(flag: str, word: str) -> bool:
    """Whether the word behind a flag is its value. A switch of a backend has none: what follows it is a file."""
    if word.startswith("-"):
        return False
    return flag in (*_TARGET, _DEVICE) or (flag.startswith(_OF_ONE_BACKEND) and "." not in word)
