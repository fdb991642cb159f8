"""Find the devices and targets that a report about TVM names."""

from __future__ import annotations

import re

from runners.core.toolchain.reports import DeviceText, NamedDevices

_CALL = re.compile(r"\btvm\.(?:runtime\.)?(cpu|cuda|gpu|vulkan|opencl|metal|rocm|webgpu|hexagon|ext_dev|cl)\(")
_DEVICE = re.compile(r"\b(?:tvm\.)?(?:runtime\.)?device\(\s*['\"](\w+)")
_TARGET = re.compile(
    r"(?:Target\(|target\s*=\s*|build\([^()\n]{0,80},\s*|with_host\("
    r"|\"kind\":\s*)(?:tvm\.target\.)?(?:Target\()?\s*f?['\"]([^'\"\n]{2,200})['\"]"
)
_PROSE_CPU = re.compile(
    r"\bon (?:the |my |a |plain )?(?:[\w-]+ )?CPUs?\b|\bdevice:? *`?cpu\b|\bCPU (?:target|backend|device)", re.I
)
_SYNONYMS = {"gpu": "cuda", "nvidia": "cuda", "cl": "opencl", "apple": "metal"}
_HOST_KINDS = ("llvm", "c")
_KINDS = {
    *("cpu", "gpu", "nvidia", "apple", "cuda", "vulkan", "opencl", "metal", "rocm", "webgpu", "hexagon"),
    *_HOST_KINDS,
}


def read_devices(text: DeviceText) -> NamedDevices:
    """Return the devices of the code. A target without a device counts only if it names an accelerator.

    Without either, prose may name the CPU.
    """
    code = text.python
    found: dict[str, None] = {}
    for name in [*_CALL.findall(code), *_DEVICE.findall(code)]:
        found["cpu" if name in ("cpu", "llvm") else _SYNONYMS.get(name, name)] = None
    accelerators = [kind for kind in _find_target_kinds(code) if kind not in _HOST_KINDS]
    found.update(dict.fromkeys(accelerators))
    if not found and _PROSE_CPU.search(f"{text.title}\n{text.prose}"):
        found["cpu"] = None
    return NamedDevices(named=tuple(found), chosen=_choose_device(code, accelerators))


def _find_target_kinds(code: str) -> tuple[str, ...]:
    """Return ``llvm``, ``cuda`` and similar kinds, in order of first use."""
    kinds: dict[str, None] = {}
    for text in _TARGET.findall(code):
        kind = re.split(r"[ /-]", text.strip(), maxsplit=1)[0].lower()
        if kind in _KINDS:
            kinds["llvm" if kind == "cpu" else _SYNONYMS.get(kind, kind)] = None
    return tuple(kinds)


def _choose_device(code: str, accelerators: list[str]) -> str:
    """Return the target that the code requests: an accelerator rather than its host."""
    named = [name for name in _DEVICE.findall(code) if name in _KINDS and name not in _HOST_KINDS]
    calls = [_SYNONYMS.get(name, name) for name in [*_CALL.findall(code), *named] if name != "cpu"]
    return next(iter([*accelerators, *calls]), "llvm")
