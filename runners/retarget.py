"""The same command lines for another device: IREE's target flags rewritten, inputs untouched. Pure."""

from __future__ import annotations

import msgspec

from runners.protocol import Testcase, TestcaseKind

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
_OF_ONE_BACKEND = (
    *("--iree-hip-", "--iree-rocm-", "--iree-cuda-", "--iree-vulkan-", "--iree-metal-", "--iree-webgpu-"),
    *("--iree-llvmgpu-", "--iree-codegen-llvmgpu-", "--iree-spirv-", "--iree-codegen-spirv-", "--iree-llvmcpu-"),
    *("--iree-vmvx-", "--iree-hal-cuda-", "--iree-hal-rocm-"),
)
"""Flags that mean nothing to another backend; some are refused by it."""
_DEVICE = "--device"


def retarget(testcase: Testcase, device: str) -> Testcase | None:
    """The testcase for ``device``; None for a Python testcase, an unknown device, or one that names no target."""
    if testcase.kind is not TestcaseKind.COMMAND_LINE or device not in BACKENDS:
        return None
    backend, runtime_device = BACKENDS[device]
    steps = tuple(_step(step, backend, runtime_device) for step in testcase.steps)
    return msgspec.structs.replace(testcase, steps=steps) if steps != testcase.steps else None


def _step(step: tuple[str, ...], backend: str, runtime_device: str) -> tuple[str, ...]:
    """One command: its target replaced where it names one, and flags of the old backend left out."""
    words: list[str] = []
    targeted = False
    for name, word in _flags(step):
        if name in _TARGET:
            if not targeted:
                words.append(f"--iree-hal-target-backends={backend}")
            targeted = True
        elif name == _DEVICE:
            words.append(f"--device={runtime_device}")
        else:
            words.extend(word)
    if not targeted:
        return tuple(words)
    return tuple(word for word in words if not word.startswith(_OF_ONE_BACKEND))


def _flags(step: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """The words of a command with their flag's name; ``--flag value`` is one where the flag names a target."""
    found: list[tuple[str, tuple[str, ...]]] = []
    words = list(step)
    while words:
        word = words.pop(0)
        name = "-" + word if word.startswith("-") and not word.startswith("--") else word
        name, equals, _ = name.partition("=")
        taken = [word]
        if name in (*_TARGET, _DEVICE) and not equals and words and not words[0].startswith("-"):
            taken.append(words.pop(0))
        found.append((name, tuple(taken)))
    return found
