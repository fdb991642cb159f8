"""Find the backends and devices that a report about IREE names."""

from __future__ import annotations

import re

from runners.core.toolchain.reports import DeviceText, NamedDevices

_BACKENDS = re.compile(
    r"--?iree-hal-(?:target-backends|local-target-device-backends"
    r"|target-device)(?:\[\d\])?[= ]\s*[\"']?([\w,:/.-]+)"
)
_DEVICE = re.compile(r"(?<![\w-])--device=[\"']?([\w-]+)")
_PYTHON = re.compile(
    r"target_backends\s*=\s*\[?\s*\(?((?:['\"][\w-]+['\"],?\s*)+)|(?:get_device|Config|get_driver"
    r"|create_device)\(\s*['\"]([\w-]+)|\bdriver(?:_name)?\s*=\s*['\"]([\w-]+)"
)
_PROSE = re.compile(r"\b(llvm-cpu|vmvx|vulkan-spirv|metal-spirv|local-task|local-sync)\b", re.I)
_FLAGS = re.compile(r"--?iree-(hip|rocm|cuda|vulkan|metal)-")
"""Flags of one backend. They identify the device of a command without a target."""
_CHIPS = (
    (re.compile(r"\bgfx[0-9a-f]{3,4}\b|\bMI\d{2,3}[AX]?\b|\bROCm\b|\bHIP\b|\bAMD ?GPU\b|\bRadeon\b", re.I), "hip"),
    (
        re.compile(r"\bsm_\d{2,3}a?\b|\b(?:V100|A100|H[12]00|B[12]00|L40S?|RTX ?\d{4})\b|\bCUDA\b|\bNVPTX\b", re.I),
        "cuda",
    ),
    (re.compile(r"\bAdreno\b|\bMali\b|\bRDNA ?\d?\b|\bVulkan\b|\bSPIR-?V\b", re.I), "vulkan"),
    (re.compile(r"\bMetal\b"), "metal"),
    (re.compile(r"\bGPU[ -]only\b|\bonly (?:on )?(?:the )?GPUs?\b", re.I), "cuda"),
)
"""Words of a title, and the device that they name. Without a vendor, a report gets the device of ``gpu``."""
_CPU = re.compile(r"\b(?:LLVM ?)?CPU\b|\bx86(?:_64)?\b|\bAVX|\bAArch64\b|\bRISC-?V\b", re.I)
_GPU = re.compile(r"\bGPUs?\b", re.I)
"""A title with both words compares the two."""
_EXACT_CHIP = re.compile(r"\bgfx[0-9a-f]{3,4}\b|\bMI\d{3}[AX]?\b", re.I)
"""Chips that only IREE's own targets name. Other chips in prose are often only the reporter's machine."""
_TARGETS = re.compile(r"#hal\.executable\.target<\"([\w-]+)\"|#hal\.device\.target<\"([\w-]+)\"")


def read_devices(text: DeviceText) -> NamedDevices:
    """Return the backends and the run-time devices of flags and calls.

    Without any, return those of the quoted output, else those of title and prose.

    If there is a script, words count only if it compiles.
    """
    code = text.python or text.commands
    found: dict[str, None] = {}
    for value in _BACKENDS.findall(code):
        for name in re.split(r"[,;]", value):
            found[re.split(r"[:/\[]", name, maxsplit=1)[0]] = None
    in_python = _PYTHON.findall(code)
    for listed, *_ in in_python:
        found.update(dict.fromkeys(re.findall(r"[\w-]+", listed)))
    if not found:  # a script's driver adds no device to its compiled backend
        found.update((name, None) for _, *single in in_python for name in single if name)
    found.update(dict.fromkeys(_DEVICE.findall(code)))
    found.update((one or other, None) for one, other in _TARGETS.findall(code))
    if not found:
        found.update(dict.fromkeys(_FLAGS.findall(code)))
    if not found and not text.python:
        found.update((one or other, None) for one, other in _TARGETS.findall(text.output))
        found.update((value.partition(",")[0], None) for value in _BACKENDS.findall(text.output))
        found.update(dict.fromkeys(_FLAGS.findall(text.output)))
    if not found and (not text.python or "compile" in text.python):
        found.update((name.lower(), None) for name in _PROSE.findall(f"{text.title}\n{text.prose}"))
        found.update((device, None) for words, device in _CHIPS if not found and words.search(text.title))
        if not found and _CPU.search(text.title) and not _GPU.search(text.title):
            found["llvm-cpu"] = None
        found.update((device, None) for device in ("hip",) if not found and _EXACT_CHIP.search(text.prose))
    named = tuple(dict.fromkeys(_correct_name(name) for name in found if name and name != "local"))
    chosen = next((known for name in named if (known := _find_device(name))), "llvm-cpu")
    return NamedDevices(named=named, chosen=chosen)


_NAMES = {
    **dict.fromkeys(("llvm-cpu", "local", "local-task", "local-sync", "cpu", "dylib", "dylib-llvm-aot"), "llvm-cpu"),
    **dict.fromkeys(("vulkan", "vulkan-spirv"), "vulkan"),
    **dict.fromkeys(("metal", "metal-spirv"), "metal"),
    **{name: name for name in ("vmvx", "cuda", "hip", "rocm", "webgpu-spirv", "amdgpu")},
}
"""Backend or driver, as written → the device of the testcase."""
_ACCELERATORS = {"metal", "vulkan", "cuda", "rocm", "hip"}


def _correct_name(name: str) -> str:
    """Return a backend as written, or the device that a misspelt backend means."""
    return name if name in _NAMES else (_find_device(name) or name)


def _find_device(name: str) -> str | None:
    """Return the device of a name. For a misspelt name (``metal-spire``), return the device of its first word."""
    family = name.partition("-")[0]
    return _NAMES.get(name) or (_NAMES.get(family) if family in _ACCELERATORS else None)
