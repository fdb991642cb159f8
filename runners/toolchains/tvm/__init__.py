"""Describe Apache TVM: its own wheels, and forks in other wheels."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from packaging.version import Version

from runners.core.protocol import TestcaseKind
from runners.core.toolchain.diagnosis import Comparison, Diagnoser
from runners.core.toolchain.facts import (
    AMD,
    APPLE,
    BROWSER,
    HEXAGON,
    NVIDIA,
    OPENCL,
    QUIET,
    VULKAN,
    Bundle,
    Canary,
    Device,
    HostCompiler,
)
from runners.core.toolchain.guest import GuestFacts
from runners.toolchains.tvm.drift import DRIFT as READ
from runners.toolchains.tvm.failures import FAILURES as FAILURES
from runners.toolchains.tvm.names import LISTED, REGISTERED
from runners.toolchains.tvm.reports import REPORTS as REPORTS
from runners.toolchains.tvm.rewriting import REWRITING as REWRITING

NAME = "tvm"
TITLE = "Apache TVM"
REPOSITORY: str | None = "apache/tvm"
COMPANIONS: tuple[str, ...] = ("pytest",)
"""``tvm.testing``, which most testcases import, imports pytest but does not require the package."""
COMPANION_IMPORTS = {"pytest": r"\bpytest\b|\btvm\.testing\b|\bfrom tvm import [^\n#]*\btesting\b"}

OPEN_DEPENDENCIES: tuple[str, ...] = ("apache-tvm-ffi",)
PROVIDES = frozenset({"tvm", "tvm_ffi", "numpy", "ml_dtypes", "typing_extensions"})
VARIABLES = QUIET | {
    "TVM_BACKTRACE": "1",  # without it, an error in TVMScript prints only a hint to set it
    "TVM_NUM_THREADS": "2",
}

# NVRTC, the wheels' default, needs the package cuda-bindings and the toolkit's headers. nvcc needs only the toolkit.
_NVCC = HostCompiler(
    program="/usr/local/cuda/bin/nvcc", words="the CUDA toolkit", variables={"TVM_CUDA_COMPILE_MODE": "nvcc"}
)

DEVICES = (
    Device(name="llvm", aliases=frozenset({"cpu", "host", "x86", "x86_64", "x86-64", "llvm -mcpu=native", "c"})),
    Device(name="cuda", aliases=frozenset({"gpu", "nvidia", "nvptx"}), hardware=NVIDIA, compiler=_NVCC),
    Device(name="rocm", aliases=frozenset({"amd", "hip"}), hardware=AMD, linked=False),
    Device(name="opencl", aliases=frozenset({"mali", "adreno"}), hardware=OPENCL, linked=False),
    Device(name="vulkan", aliases=frozenset(), hardware=VULKAN, linked=False),
    Device(name="metal", aliases=frozenset({"mps", "apple"}), hardware=APPLE, linked=False),
    Device(name="webgpu", aliases=frozenset({"wasm", "web"}), hardware=BROWSER, linked=False),
    Device(name="hexagon", aliases=frozenset(), hardware=HEXAGON, linked=False),
)

STAND_INS = ("llvm",)

_READ_NAMES = frozenset(entry.old for entry in READ)
DRIFT = (*READ, *REGISTERED, *(entry for entry in LISTED if entry.old not in _READ_NAMES))

GUEST = GuestFacts(
    compile_functions=("tvm.build", "tvm.compile", "tvm.relax.build", "tvm.tir.build", "tvm.tirx.build"),
    compiling_files=(
        *("/tvm/driver/", "/tvm/relax/vm_build", "/tvm/relax/pipeline", "/tvm/ir/transform"),
        *("/tvm/tir/build", "/tvm/tirx/build"),
    ),
    base_import="import tvm",
    base_packages=("tvm", "numpy", "ml_dtypes"),
    slow_modules=(  # they import other frameworks
        *("tvm.relax.frontend.onnx", "tvm.relax.frontend.tflite", "tvm.relax.frontend.torch", "tvm.relay.frontend"),
        *("tvm.autotvm", "tvm.auto_scheduler", "tvm.contrib.torch", "tvm.meta_schedule", "tvm.s_tir.meta_schedule"),
    ),
    thread_variables=("TVM_NUM_THREADS",),
)

_CANARY = """\
import sys
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
result = relax.transform.LegalizeOps()(module)
assert len(result.get_global_vars()) == 2, result
if sys.argv[1:] == ["passes"]:
    print("canary ok", tvm.__version__, "passes only")
    sys.exit()
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


def load_diagnosers() -> Sequence[Diagnoser]:
    from runners.toolchains.tvm.diagnosis import DIAGNOSERS

    return DIAGNOSERS


def load_comparisons() -> Sequence[Comparison]:
    return ()


def list_distributions(version: str) -> tuple[str, ...]:
    carried = find_bundle(version)
    return (carried.distribution,) if carried else (f"apache-tvm=={version}",)


def find_tag(version: str) -> str | None:
    """Return the tag: that of ``0.25.0rc1`` is ``v0.25.0.rc1``."""
    parsed = Version(version)
    return f"v{parsed.base_version}" + "".join(f".{kind}{n}" for kind, n in _list_suffixes(parsed))


def _list_suffixes(version: Version) -> list[tuple[str, int]]:
    found = [version.pre] if version.pre else []
    return found + ([("post", version.post)] if version.post is not None else [])


def list_tools(site_packages: Path) -> dict[str, tuple[str, ...]]:
    """Return Python, and ``tvmc`` for old builds. ``tvmc`` was removed together with Relay."""
    return (
        {"python": ("python",), "tvmc": ("python", "-m", "tvm.driver.tvmc")}
        if (site_packages / "tvm/driver/tvmc").is_dir()
        else {"python": ("python",)}
    )


def read_build_info(site_packages: Traversable) -> tuple[str | None, str | None]:
    """Return no commit, because the wheels name none."""
    return None, None


_DRIVER = (
    "cuDeviceGetName cuFuncSetAttribute cuGetErrorName cuLaunchKernel cuMemsetD32_v2 cuModuleGetFunction "
    "cuModuleGetGlobal_v2 cuModuleLoadData cuModuleUnload"
)
_RUNTIME = (
    "cudaDeviceGetAttribute cudaEventCreate cudaEventDestroy cudaEventElapsedTime cudaEventRecord "
    "cudaEventSynchronize cudaFree cudaFreeHost cudaGetDevice cudaGetDeviceCount cudaGetDeviceProperties_v2 "
    "cudaGetErrorString cudaGraphDestroy cudaGraphExecDestroy cudaGraphInstantiate cudaGraphLaunch cudaMalloc "
    "cudaMallocHost cudaMemGetInfo cudaMemcpyAsync cudaMemcpyPeerAsync cudaMemsetAsync cudaSetDevice "
    "cudaStreamBeginCapture cudaStreamCreate cudaStreamCreateWithFlags cudaStreamDestroy cudaStreamEndCapture "
    "cudaStreamSynchronize cudaStreamWaitEvent"
)
_NVRTC = (
    "nvrtcCompileProgram nvrtcCreateProgram nvrtcDestroyProgram nvrtcGetErrorString nvrtcGetPTX nvrtcGetPTXSize "
    "nvrtcGetProgramLog nvrtcGetProgramLogSize"
)


def _make_stubs(driver: str, runtime: str) -> dict[str, tuple[str, ...]]:
    """Return the functions that a bundled libtvm.so leaves undefined (`nm -D`). They must resolve at load time."""
    libraries = {"libcuda.so.1": driver, "libcudart.so.12": runtime, "libnvrtc.so.12": _NVRTC}
    return {soname: tuple(names.split()) for soname, names in libraries.items()}


_NEEDS = ("attrs", "cloudpickle", "ml-dtypes", "packaging", "psutil", "scipy", "tornado", "typing-extensions")


def _make_bitblas(version: str) -> Bundle:
    return Bundle(
        distribution=f"bitblas=={version}",
        requirements=("decorator", "numpy<2", *_NEEDS, *COMPANIONS),
        path="bitblas/3rdparty/tvm/python",
        title="BitBLAS",
        stubs=_make_stubs(_DRIVER, f"{_RUNTIME} cudaMemcpy"),
    )


_TILELANG = Bundle(
    distribution="tilelang==0.1.7",
    # Its libtvm.so is built against this version of the FFI, and links it by a relative path in site-packages.
    requirements=("apache-tvm-ffi==0.1.1", "numpy", *_NEEDS, *COMPANIONS),
    path="tilelang/3rdparty/tvm/python",
    stubs=_make_stubs(f"{_DRIVER} cuGetErrorString cuTensorMapEncodeTiled", f"{_RUNTIME} cudaPeekAtLastError"),
    variables={"TVM_LIBRARY_PATH": "tilelang/lib"},
    compiles=False,
    title="TileLang",
)

BUNDLES = {
    "0.16.dev0": _make_bitblas("0.0.1.dev2"),
    "0.17.dev0": _make_bitblas("0.0.1.dev13"),
    "0.22.0": _TILELANG,
}
"""Forks in other wheels. They are the only builds from before 2026."""


def find_bundle(version: str) -> Bundle | None:
    return BUNDLES.get(version)
