"""Devices and targets that a text names, in the toolchain's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TVM_CALL = re.compile(r"\btvm\.(?:runtime\.)?(cpu|cuda|gpu|vulkan|opencl|metal|rocm|webgpu|hexagon|ext_dev|cl)\(")
_TVM_DEVICE = re.compile(r"\b(?:tvm\.)?(?:runtime\.)?device\(\s*['\"](\w+)")
_TVM_TARGET = re.compile(
    r"(?:Target\(|target\s*=\s*|build\([^()\n]{0,80},\s*|with_host\("
    r"|\"kind\":\s*)(?:tvm\.target\.)?(?:Target\()?\s*f?['\"]([^'\"\n]{2,200})['\"]"
)
_TVM_GPU = {
    "cuda": "cuda",
    "gpu": "cuda",
    "nvidia": "cuda",
    "cl": "opencl",
    "apple": "metal",
    "llvm": "llvm",
    "c": "c",
}
_KNOWN_TVM = {
    "cuda",
    "vulkan",
    "opencl",
    "metal",
    "rocm",
    "webgpu",
    "hexagon",
    "llvm",
    "c",
    "cpu",
    "gpu",
    "nvidia",
    "apple",
}
_PROSE_CPU = re.compile(
    r"\bon (?:the |my |a |plain )?(?:[\w-]+ )?CPUs?\b|\bdevice:? *`?cpu\b|\bCPU (?:target|backend|device)", re.I
)

_IREE_BACKENDS = re.compile(
    r"--?iree-hal-(?:target-backends|local-target-device-backends"
    r"|target-device)(?:\[\d\])?[= ]\s*[\"']?([\w,:/.-]+)"
)
_IREE_DEVICE = re.compile(r"(?<![\w-])--device=[\"']?([\w-]+)")
_IREE_PYTHON = re.compile(
    r"target_backends\s*=\s*\[?\s*\(?((?:['\"][\w-]+['\"],?\s*)+)|(?:get_device|Config|get_driver"
    r"|create_device)\(\s*['\"]([\w-]+)|\bdriver(?:_name)?\s*=\s*['\"]([\w-]+)"
)
_IREE_PROSE = re.compile(
    r"\b(llvm-cpu|vmvx|vulkan-spirv|metal-spirv|local-task|local-sync)\b|\bgfx\d{3,4}\w?\b", re.I
)
_IREE_TARGETS = re.compile(r"#hal\.executable\.target<\"([\w-]+)\"|#hal\.device\.target<\"([\w-]+)\"")


def tvm_devices(code: str, prose: str) -> tuple[str, ...]:
    """``cpu``, ``cuda`` …: where the code runs (a target alone, without a device, names only GPUs)."""
    found: dict[str, None] = {}
    for name in [*_TVM_CALL.findall(code), *_TVM_DEVICE.findall(code)]:
        found["cpu" if name in ("cpu", "llvm") else _TVM_GPU.get(name, name)] = None
    for kind in tvm_targets(code):
        if kind not in ("llvm", "c"):
            found[kind] = None
    if not found and _PROSE_CPU.search(prose):
        found["cpu"] = None
    return tuple(found)


def tvm_targets(code: str) -> tuple[str, ...]:
    """Target kinds in the code: ``llvm``, ``cuda`` …"""
    kinds: dict[str, None] = {}
    for text in _TVM_TARGET.findall(code):
        kind = re.split(r"[ /-]", text.strip(), maxsplit=1)[0].lower()
        if kind in _KNOWN_TVM:
            kinds["llvm" if kind == "cpu" else _TVM_GPU.get(kind, kind)] = None
    return tuple(kinds)


def tvm_device(code: str) -> str:
    """The one target that the code asks for; the accelerator where a host is named as well."""
    kinds = [k for k in tvm_targets(code) if k not in ("llvm", "c")]
    calls = [_TVM_GPU.get(name, name) for name in _TVM_CALL.findall(code) if name != "cpu"]
    return next(iter([*kinds, *calls]), "llvm")


def iree_devices(commands: Iterable[Iterable[str]], texts: Iterable[str], prose: str) -> tuple[str, ...]:
    """Backends first, then run-time devices, as written in flags and calls; from prose only when there are none."""
    everything = [" ".join(argv) for argv in commands]
    joined = "\n".join([*everything, *texts])
    found: dict[str, None] = {}
    for value in _IREE_BACKENDS.findall(joined):
        for name in re.split(r"[,;]", value):
            found[re.split(r"[:/\[]", name, maxsplit=1)[0]] = None
    in_python = _IREE_PYTHON.findall(joined)
    for listed, *_ in in_python:
        found.update(dict.fromkeys(re.findall(r"[\w-]+", listed)))
    if not found:  # a script's driver says nothing new beside the backend it compiles for
        found.update((name, None) for _, *single in in_python for name in single if name)
    for name in _IREE_DEVICE.findall(joined):
        found[name] = None
    for one, other in _IREE_TARGETS.findall(joined):
        found[one or other] = None
    if not found:
        for name in _IREE_PROSE.findall(prose):
            if name:
                found[name.lower()] = None
    return tuple(dict.fromkeys(_spelt(name) for name in found if name and name != "local"))


def _spelt(name: str) -> str:
    """A backend as written, unless no such backend exists."""
    return name if name in _IREE_NAMES else (_known(name) or name)


_IREE_NAMES = {
    **dict.fromkeys(("llvm-cpu", "local", "local-task", "local-sync", "cpu", "dylib", "dylib-llvm-aot"), "llvm-cpu"),
    **dict.fromkeys(("vulkan", "vulkan-spirv"), "vulkan"),
    **dict.fromkeys(("metal", "metal-spirv"), "metal"),
    **{name: name for name in ("vmvx", "cuda", "hip", "rocm", "webgpu-spirv", "amdgpu")},
}


def iree_device(devices: Iterable[str]) -> str:
    """The testcase's device by one name: ``llvm-cpu``, ``vmvx``, ``vulkan``, ``cuda``, ``hip``, ``metal`` …"""
    return next((known for name in devices if (known := _known(name))), "llvm-cpu")


def _known(name: str) -> str | None:
    """By its exact name, else by the family that a misspelt one begins with (``metal-spire``)."""
    family = name.partition("-")[0]
    return _IREE_NAMES.get(name) or (_IREE_NAMES.get(family) if family in _ACCELERATORS else None)


_ACCELERATORS = {"metal", "vulkan", "cuda", "rocm", "hip"}
