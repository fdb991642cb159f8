"""Runs an unmodified TVM testcase for another device: ``launch.py tvm.retarget TARGET repro.py [ARGUMENT…]``.

Every target that the testcase makes for another kind of device becomes TARGET, and every device that it asks for the
one that goes with it; nothing of its text changes. What it reads back from the device (the last ``MAX_RESULTS`` calls
of ``.numpy()`` in its own code) is printed at the end, as ``iree-run-module`` prints results, so that two devices'
values can be compared. Of a large tensor ``MAX_VALUES`` values are shown, evenly spaced.

What is printed is a claim like all output: the host compares it, and no verdict rests on it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import deque
from typing import Any

from runners.guest import forget_modules
from runners.guest.tvm.diagnose import run_testcase

MAX_RESULTS = 8
MAX_VALUES = 96
GPUS = ("cuda", "rocm", "opencl", "vulkan", "metal", "webgpu", "nvptx")
TAGS = {"nvidia": "cuda", "apple": "metal", "qcom": "opencl"}
"""A tag such as ``nvidia/geforce-rtx-3090`` → its kind."""
MAKERS = ("device", "cpu", "gpu", "cl", "mtl", *GPUS)
_INSIDE = ("__init__", "with_host", "canon_target_and_host", "canon_target_map_and_host")
"""Where a target is a host's rather than the device's."""


def main(arguments: list[str]) -> int:
    wanted, path, *rest = arguments
    file = os.path.abspath(path)
    results: deque[str] = deque(maxlen=MAX_RESULTS)
    try:
        install(wanted, file, results)
    except Exception as error:  # a compiler that cannot be imported: the testcase itself will say so
        sys.stderr.write(f"not retargeted: {type(error).__name__}: {error}\n"[-400:])
    forget_modules()
    sys.argv = [path, *rest]
    sys.path[0] = os.path.dirname(file)
    status = run_testcase(file)
    for number, line in enumerate(results):
        sys.stdout.write(f"result[{number}]: read from the device\n{line}\n")
    return status


def install(wanted: str, file: str, results: deque[str]) -> None:
    tvm: Any = importlib.import_module("tvm")
    switch_targets(tvm, wanted)
    switch_devices(tvm, wanted.split()[0])
    record_results(tvm, file, results)


def switch_targets(tvm: Any, wanted: str) -> None:
    original = tvm.target.Target.__init__

    def made(self: Any, target: Any, host: Any = None) -> None:
        kind = kind_of(target)
        of_host = kind == "llvm" and sys._getframe(1).f_code.co_name in _INSIDE
        change = kind in (*GPUS, "llvm") and kind != kind_of(wanted) and not of_host
        original(self, wanted if change else target, host)

    tvm.target.Target.__init__ = made


def kind_of(target: Any) -> str | None:
    """``cuda -arch=sm_86``, ``{"kind": "cuda"}``, its JSON, ``nvidia/…`` → ``cuda``; None for anything else."""
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
    """Every way to name a device gives the one that programs for ``kind`` run on."""
    runtime = tvm.runtime
    real = runtime.device
    name = "cpu" if kind == "llvm" else kind

    def chosen(*_words: Any, **_named: Any) -> Any:
        return real(name, 0)

    for module in (tvm, runtime, getattr(runtime, "_tensor", None), getattr(runtime, "ndarray", None)):
        for maker in MAKERS:
            if module is not None and hasattr(module, maker):
                setattr(module, maker, chosen)


def record_results(tvm: Any, file: str, results: deque[str]) -> None:
    tensor = getattr(tvm.runtime, "Tensor", None) or tvm.runtime.NDArray
    original = tensor.numpy

    def numpy(self: Any) -> Any:
        array = original(self)
        if sys._getframe(1).f_code.co_filename == file:
            results.append(printed(array))
        return array

    tensor.numpy = numpy


def printed(array: Any) -> str:
    """``2x3xf32=1 2 3 4 5 6``."""
    kind = {"float": "f", "int": "i", "uint": "ui", "bool": "i1", "bfloat": "bf"}
    letters = array.dtype.name.rstrip("0123456789_")
    dtype = kind.get(letters, letters) + ("" if letters == "bool" else array.dtype.name[len(letters) :])
    values = array.reshape(-1)
    step = max(1, -(-values.size // MAX_VALUES))
    shape = "".join(f"{extent}x" for extent in array.shape)
    return f"{shape}{dtype}=" + " ".join(f"{float(value):.9g}" for value in values[::step])
