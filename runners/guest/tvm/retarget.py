"""Run an unmodified TVM testcase for another device: ``launch.py tvm.retarget TARGET repro.py [ARGUMENT…]``.

Every target for another kind of device becomes TARGET, and every device becomes the device of TARGET. The testcase's
text does not change. At the end the program prints the last ``MAX_RESULTS`` results that the testcase's own code
reads with ``.numpy()``, in the format of ``iree-run-module``, so that the host can compare the values of two devices.
A large tensor is reduced to ``MAX_VALUES`` values, evenly spaced.

The output is a claim, like all output. The host compares it, and no verdict rests on it.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from typing import Any

from runners.guest.tvm.testcase import import_compiler, run_testcase, set_script

MAX_RESULTS = 8
MAX_VALUES = 96
GPUS = ("cuda", "rocm", "opencl", "vulkan", "metal", "webgpu", "nvptx")
TAGS = {"nvidia": "cuda", "apple": "metal", "qcom": "opencl"}
"""Vendor of a tag, such as ``nvidia/geforce-rtx-3090`` → kind of target."""
MAKERS = ("device", "cpu", "gpu", "cl", "mtl", *GPUS)
_INSIDE = ("__init__", "with_host", "canon_target_and_host", "canon_target_map_and_host")
"""Callers that create a target for the host, not for the device."""


def main(arguments: list[str]) -> int:
    target, path, *rest = arguments
    file = os.path.abspath(path)
    results: deque[str] = deque(maxlen=MAX_RESULTS)
    try:
        install_hooks(target, file, results)
    except Exception as error:  # for example, the compiler cannot be imported; then the testcase itself fails
        sys.stderr.write(f"not retargeted: {type(error).__name__}: {error}\n"[-400:])
    set_script(path, rest)
    status = run_testcase(file)
    for number, line in enumerate(results):
        sys.stdout.write(f"result[{number}]: read from the device\n{line}\n")
    return status


def install_hooks(target: str, file: str, results: deque[str]) -> None:
    tvm = import_compiler()
    switch_targets(tvm, target)
    switch_devices(tvm, target.split()[0])
    record_results(tvm, file, results)


def switch_targets(tvm: Any, new_target: str) -> None:
    original = tvm.target.Target.__init__

    def create_target(self: Any, target: Any, host: Any = None) -> None:
        kind = find_kind(target)
        of_host = kind == "llvm" and sys._getframe(1).f_code.co_name in _INSIDE
        change = kind in (*GPUS, "llvm") and kind != find_kind(new_target) and not of_host
        original(self, new_target if change else target, host)

    tvm.target.Target.__init__ = create_target


def find_kind(target: Any) -> str | None:
    """Return the kind of ``cuda -arch=sm_86``, ``{"kind": "cuda"}``, its JSON or ``nvidia/…``. Otherwise None."""
    if isinstance(target, str) and target.lstrip().startswith("{"):
        try:
            target = json.loads(target)
        except ValueError:
            return None
    if isinstance(target, dict):
        target = target.get("kind", target.get("tag"))
    if not isinstance(target, str) or not target.strip():
        return None
    word = target.split()[0]
    return TAGS.get(word.partition("/")[0]) if "/" in word else word


def switch_devices(tvm: Any, kind: str) -> None:
    """Make every function that creates a device return the device of ``kind``."""
    runtime = tvm.runtime
    real = runtime.device
    name = "cpu" if kind == "llvm" else kind

    def create_device(*_words: Any, **_named: Any) -> Any:
        return real(name, 0)

    for module in (tvm, runtime, getattr(runtime, "_tensor", None), getattr(runtime, "ndarray", None)):
        for maker in MAKERS:
            if module is not None and hasattr(module, maker):
                setattr(module, maker, create_device)


def record_results(tvm: Any, file: str, results: deque[str]) -> None:
    tensor = getattr(tvm.runtime, "Tensor", None) or tvm.runtime.NDArray
    original = tensor.numpy

    def read_array(self: Any) -> Any:
        array = original(self)
        if sys._getframe(1).f_code.co_filename == file:
            results.append(format_array(array))
        return array

    tensor.numpy = read_array


def format_array(array: Any) -> str:
    """Return an array in IREE's format: ``2x3xf32=1 2 3 4 5 6``."""
    kind = {"float": "f", "int": "i", "uint": "ui", "bool": "i1", "bfloat": "bf"}
    letters = array.dtype.name.rstrip("0123456789_")
    dtype = kind.get(letters, letters) + ("" if letters == "bool" else array.dtype.name[len(letters) :])
    values = array.reshape(-1)
    step = max(1, -(-values.size // MAX_VALUES))
    shape = "".join(f"{extent}x" for extent in array.shape)
    return f"{shape}{dtype}=" + " ".join(f"{float(value):.9g}" for value in values[::step])
