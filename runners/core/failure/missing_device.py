"""Is a failure only hardware that isn't here, or is ill? Pure: failure text → reason in words, or None.

The toolchain's own message is the signal, never the mere word: ``target="cuda"`` compiles on any machine (facts.md).
"""

from __future__ import annotations

import re

_DEVICE = r"(?P<device>cuda|hip|rocm|vulkan|metal|opencl|libcuda|nvcuda|libamdhip64|libvulkan|amdgpu)"
_SIGNS = [
    re.compile(sign, re.IGNORECASE)
    for sign in (
        rf"{_DEVICE} runtime is not linked into this build",
        rf"Device API {_DEVICE} is not enabled",
        rf"(?:Build target|target\.build\.)\s?{_DEVICE} is not enabled",
        rf"Cannot find global function (?:target\.build|device_api)\.{_DEVICE}",
        rf"no driver '{_DEVICE}[\w-]{{0,20}}' registered",
        rf"(?:UNAVAILABLE|INCOMPATIBLE|NOT_FOUND|FAILED_PRECONDITION); [^\n]{{0,300}}?{_DEVICE}",
        rf"{_DEVICE}[^\n]{{0,60}}(?:library|driver|runtime)[^\n]{{0,40}} not (?:available|found)",
        rf"{_DEVICE}_ERROR_NO_DEVICE|no (?:CUDA|ROCm)-capable device",
        r"Cannot find global function target\.build\.(?P<device>llvm)\b",
        r"target\.build\.(?P<device>llvm) is not enabled",
        r"(?P<device>VK)_ERROR_(?:INCOMPATIBLE_DRIVER|INITIALIZATION_FAILED)",
    )
]


def missing_device(text: str) -> str | None:
    """One sentence naming the device that the output says is not here; None when it says nothing of the kind."""
    tail = text[-60_000:]
    for sign in _SIGNS:
        if found := sign.search(tail):
            device = (found["device"] or "gpu").lower()
            if device == "llvm":
                return "this build has no LLVM: it runs passes and generates no code"
            return f"no {_COMMON.get(device, device)} device or runtime here"
    return None


_ILL = [
    (re.compile(sign, re.IGNORECASE), why)
    for sign, why in (
        (
            r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY"
            r"|RESOURCE_EXHAUSTED; [^\n]{0,200}(?:cuda|hip|vulkan|device)|CUDA: out of memory",
            "the device's memory was used up",
        ),
        (
            r"CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable|uncorrectable ECC error",
            "the device's memory had an error that could not be corrected",
        ),
        (
            r"VK_ERROR_DEVICE_LOST|CUDA_ERROR_DEVICE_UNAVAILABLE|all CUDA-capable devices are busy",
            "the device was lost",
        ),
        (
            r"CUDA_ERROR_SYSTEM_(?:DRIVER_MISMATCH|NOT_READY)|Driver/library version mismatch"
            r"|driver version is insufficient for CUDA runtime",
            "the driver does not fit",
        ),
        (
            r"--task_topology_\w+=\S* selected [^\n]{0,40} none contain any usable cores",
            "IREE found no processor to use: this sandbox does not show it how they lie (gVisor); use another engine",
        ),
    )
]


def device_trouble(text: str) -> str | None:
    """Why the output shows a device in trouble rather than a compiler: memory used up or broken, driver unfit.

    An illegal access is none of these: a wrongly compiled kernel makes it.
    """
    tail = text[-60_000:]
    return next((why for sign, why in _ILL if sign.search(tail)), None)


_COMMON = {"libcuda": "cuda", "nvcuda": "cuda", "libamdhip64": "hip", "libvulkan": "vulkan", "vk": "vulkan"}
