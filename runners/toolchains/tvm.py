"""Apache TVM: its own wheels, and forks that other wheels carry."""

from __future__ import annotations

from pathlib import Path

from packaging.version import Version

from runners.protocol import TestcaseKind
from runners.toolchains.facts import QUIET, Bundle, Canary, Device
from runners.toolchains.hardware import AMD, APPLE, BROWSER, HEXAGON, NVIDIA, OPENCL, VULKAN
from runners.toolchains.tvm_drift import DRIFT as DRIFT

NAME = "tvm"
TITLE = "Apache TVM"
REPOSITORY: str | None = "apache/tvm"
COMPANIONS: tuple[str, ...] = ("pytest",)
"""``tvm.testing``, which most testcases import, imports pytest without requiring it."""

VARIABLES = QUIET | {
    "TVM_BACKTRACE": "1",  # without it an error in TVMScript prints one line saying that it would
    "TVM_NUM_THREADS": "2",
}

DEVICES = (
    Device(name="llvm", aliases=frozenset({"cpu", "host", "x86", "x86_64", "x86-64", "llvm -mcpu=native", "c"})),
    Device(name="cuda", aliases=frozenset({"gpu", "nvidia", "nvptx"}), hardware=NVIDIA),
    Device(name="rocm", aliases=frozenset({"amd", "hip"}), hardware=AMD, linked=False),
    Device(name="opencl", aliases=frozenset({"mali", "adreno"}), hardware=OPENCL, linked=False),
    Device(name="vulkan", aliases=frozenset(), hardware=VULKAN, linked=False),
    Device(name="metal", aliases=frozenset({"mps", "apple"}), hardware=APPLE, linked=False),
    Device(name="webgpu", aliases=frozenset({"wasm", "web"}), hardware=BROWSER, linked=False),
    Device(name="hexagon", aliases=frozenset(), hardware=HEXAGON, linked=False),
)

_CANARY = """\
import numpy as np
import tvm
from tvm import relax

block = relax.BlockBuilder()
annotation = getattr(relax, "TensorStructInfo", None) or relax.TensorType
x = relax.Var("x", annotation((4,), "float32"))
with block.function("main", [x]):
    with block.dataflow():
        out = block.emit_output(block.emit(relax.op.add(x, x)))
    block.emit_func_output(out)
module = block.get()
assert tvm.ir.load_json(tvm.ir.save_json(module))
build = getattr(tvm, "compile", relax.build)
tensor = getattr(tvm.runtime, "tensor", None) or tvm.nd.array
machine = relax.VirtualMachine(build(module, target="llvm"), tvm.cpu())
result = machine["main"](tensor(np.arange(4, dtype="float32"))).numpy()
assert result.tolist() == [0.0, 2.0, 4.0, 6.0], result
print("canary ok", tvm.__version__)
"""

CANARY = Canary(
    kind=TestcaseKind.PYTHON,
    files={"canary.py": _CANARY},
    steps=(("python", "canary.py"),),
    prints="canary ok",
)


def distributions(version: str) -> tuple[str, ...]:
    carried = bundle(version)
    return (carried.distribution,) if carried else (f"apache-tvm=={version}",)


def tag(version: str) -> str | None:
    """``0.25.0rc1`` is tagged ``v0.25.0.rc1``."""
    parsed = Version(version)
    return f"v{parsed.base_version}" + "".join(f".{kind}{n}" for kind, n in _suffixes(parsed))


def _suffixes(version: Version) -> list[tuple[str, int]]:
    found = [version.pre] if version.pre else []
    return found + ([("post", version.post)] if version.post is not None else [])


def tools(site_packages: Path) -> dict[str, tuple[str, ...]]:
    """Python only: tvmc left with Relay."""
    return (
        {"python": ("python",), "tvmc": ("python", "-m", "tvm.driver.tvmc")}
        if (site_packages / "tvm/driver/tvmc").is_dir()
        else {"python": ("python",)}
    )


def built_from(site_packages: Path) -> tuple[str | None, str | None]:
    """The wheels carry no commit."""
    return None, None


_CUDA_STUBS = {
    "libcuda.so.1": (
        "cuDeviceGetName cuFuncSetAttribute cuGetErrorName cuLaunchKernel cuMemsetD32_v2 cuModuleGetFunction "
        "cuModuleGetGlobal_v2 cuModuleLoadData cuModuleUnload"
    ),
    "libcudart.so.12": (
        "cudaDeviceGetAttribute cudaEventCreate cudaEventDestroy cudaEventElapsedTime cudaEventRecord "
        "cudaEventSynchronize cudaFree cudaFreeHost cudaGetDevice cudaGetDeviceCount cudaGetDeviceProperties_v2 "
        "cudaGetErrorString cudaGraphDestroy cudaGraphExecDestroy cudaGraphInstantiate cudaGraphLaunch cudaMalloc "
        "cudaMallocHost cudaMemGetInfo cudaMemcpy cudaMemcpyAsync cudaMemcpyPeerAsync cudaMemsetAsync cudaSetDevice "
        "cudaStreamBeginCapture cudaStreamCreate cudaStreamCreateWithFlags cudaStreamDestroy cudaStreamEndCapture "
        "cudaStreamSynchronize cudaStreamWaitEvent"
    ),
    "libnvrtc.so.12": (
        "nvrtcCompileProgram nvrtcCreateProgram nvrtcDestroyProgram nvrtcGetErrorString nvrtcGetPTX nvrtcGetPTXSize "
        "nvrtcGetProgramLog nvrtcGetProgramLogSize"
    ),
}
"""The functions that the bundled libtvm.so leaves undefined (`nm -D`), which must resolve before it loads."""


def _bitblas(version: str) -> Bundle:
    return Bundle(
        distribution=f"bitblas=={version}",
        requirements=(
            *("attrs", "cloudpickle", "decorator", "ml-dtypes", "numpy<2", "packaging", "psutil", "scipy", "tornado"),
            *("typing-extensions", *COMPANIONS),
        ),
        path="bitblas/3rdparty/tvm/python",
        stubs={soname: tuple(names.split()) for soname, names in _CUDA_STUBS.items()},
    )


BUNDLES = {
    "0.16.dev0": _bitblas("0.0.1.dev2"),
    "0.17.dev0": _bitblas("0.0.1.dev13"),
}
"""Forks that other wheels carry: the only builds from before 2026."""


def bundle(version: str) -> Bundle | None:
    return BUNDLES.get(version)
