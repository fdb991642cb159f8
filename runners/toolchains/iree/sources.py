"""Find the folder of IREE's repository for a pass, a dialect, a C++ function or a device.

A pass has the name of the folder that defines it: ``iree-dispatch-creation-…`` is in ``DispatchCreation``. Dialects
and namespaces have it too, in other spellings.
"""

from __future__ import annotations

import re

from runners.core.toolchain.reports import SourceWords

_COMPILER, _PLUGINS = "compiler/src/iree/compiler", "compiler/plugins"
_FOLDERS = {
    "abi": f"{_COMPILER}/Bindings/Native",
    "amdgpu": f"{_COMPILER}/Codegen/LLVMGPU",
    "codegen": f"{_COMPILER}/Codegen/Common",
    "codegen-amdgpu": f"{_COMPILER}/Codegen/Common/GPU",
    "codegen-cpu": f"{_COMPILER}/Codegen/Common/CPU",
    "codegen-gpu": f"{_COMPILER}/Codegen/Common/GPU",
    "consteval": f"{_COMPILER}/ConstEval",
    "convert-to-llvm": f"{_COMPILER}/Codegen/LLVMCPU",
    "convert-to-nvvm": f"{_COMPILER}/Codegen/LLVMGPU",
    "convert-to-rocdl": f"{_COMPILER}/Codegen/LLVMGPU",
    "convert-to-spirv": f"{_COMPILER}/Codegen/SPIRV",
    "dispatch-creation": f"{_COMPILER}/DispatchCreation",
    "encoding": f"{_COMPILER}/Dialect/Encoding",
    "flow": f"{_COMPILER}/Dialect/Flow",
    "global-opt": f"{_COMPILER}/GlobalOptimization",
    "global-optimization": f"{_COMPILER}/GlobalOptimization",
    "gpu": f"{_COMPILER}/Codegen/Dialect/GPU",
    "hal": f"{_COMPILER}/Dialect/HAL",
    "hal-inline": f"{_COMPILER}/Modules/HAL/Inline",
    "hal-loader": f"{_COMPILER}/Modules/HAL/Loader",
    "hal-serialize": f"{_PLUGINS}/target",  # the backends, which the pass calls
    "input-conversion": f"{_COMPILER}/InputConversion",
    "linalg-ext": f"{_COMPILER}/Dialect/LinalgExt",
    "llvmcpu": f"{_COMPILER}/Codegen/LLVMCPU",
    "llvmgpu": f"{_COMPILER}/Codegen/LLVMGPU",
    "pcf": f"{_COMPILER}/Codegen/Dialect/PCF",
    "preprocessing": f"{_COMPILER}/Preprocessing",
    "rocdl": f"{_COMPILER}/Codegen/LLVMGPU",
    "spirv": f"{_COMPILER}/Codegen/SPIRV",
    "stablehlo": f"{_PLUGINS}/input/StableHLO",
    "stream": f"{_COMPILER}/Dialect/Stream",
    "tensor-ext": f"{_COMPILER}/Dialect/TensorExt",
    "torch": f"{_PLUGINS}/input/Torch",
    "tosa": f"{_PLUGINS}/input/TOSA",
    "util": f"{_COMPILER}/Dialect/Util",
    "vector-ext": f"{_COMPILER}/Codegen/Dialect/VectorExt",
    "vm": f"{_COMPILER}/Dialect/VM",
    "vmvx": f"{_COMPILER}/Codegen/VMVX",
}
"""The first words of a pass's name, without ``iree``. The longest ones count."""
_OWN_DIALECTS = frozenset({"flow", "hal", "stream", "util", "vm", "vmvx"})
"""Dialects of IREE whose names do not begin with ``iree_``."""
_DEVICES = {
    "llvm-cpu": "llvmcpu",
    "vmvx": "vmvx",
    "vulkan": "spirv",
    "metal": "spirv",
    "cuda": "llvmgpu",
    "rocm": "llvmgpu",
    "hip": "llvmgpu",
}
_NAMESPACE = re.compile(r"\biree_compiler::(?:IREE::)?(?P<name>[A-Z]\w{1,40})::", re.ASCII)
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OPERATION = re.compile(r"'(?P<dialect>[a-z]\w{1,40})\.\w", re.ASCII)


def find_pass(name: str) -> tuple[str, ...]:
    """Return the folder of a pass, from its name as a flag, or of a phase of the compiler; none for MLIR's passes."""
    if name.startswith(("iree-", "torch-")):
        return _find_folder(name.removeprefix("iree-"))
    return (_FOLDERS[name],) if name in _FOLDERS else ()


def find_function(name: str) -> tuple[str, ...]:
    """Return the folder of a C++ function, from its namespace."""
    found = _NAMESPACE.search(name)
    return _find_folder(_CAPITAL.sub("-", found["name"]).lower()) if found is not None else ()


def find_operation(message: str) -> tuple[str, ...]:
    """Return the folder of the dialect of the operation that a message quotes, if the dialect is IREE's own."""
    found = _OPERATION.search(message)
    if found is None:
        return ()
    dialect = found["dialect"]
    is_own = dialect.startswith("iree_") or dialect in _OWN_DIALECTS
    return _find_folder(dialect.removeprefix("iree_").replace("_", "-")) if is_own else ()


def find_generator(device: str) -> tuple[str, ...]:
    """Return the folders of the code generator of a device."""
    own = _find_folder(_DEVICES.get(device, ""))
    return (*own, _FOLDERS["codegen"]) if own else ()


def _find_folder(words: str) -> tuple[str, ...]:
    first = [key for key in _FOLDERS if f"{words}-".startswith(f"{key}-")]
    return (_FOLDERS[max(first, key=len)],) if first else ()


SOURCES = SourceWords(
    find_pass=find_pass, find_function=find_function, find_operation=find_operation, find_generator=find_generator
)
