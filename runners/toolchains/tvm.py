"""Apache TVM: its own wheels, and forks that other wheels carry.

Drift was measured by looking every name up in 0.16.dev0, 0.17.dev0 and 0.25.0 … 0.27.0.post1; releases between them
were read in its history.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.version import Version

from runners.protocol import TestcaseKind
from runners.toolchains.facts import QUIET, Bundle, Canary, Device, DriftEntry, Kind

NAME = "tvm"
TITLE = "Apache TVM"
REPOSITORY: str | None = "apache/tvm"
COMPANIONS: tuple[str, ...] = ("pytest",)
"""``tvm.testing``, which most testcases import, imports pytest without requiring it."""

VARIABLES = QUIET | {
    "TVM_BACKTRACE": "1",  # without it an error in TVMScript prints one line saying that it would
    "TVM_NUM_THREADS": "2",
}

_GPU = "hardware and a driver, and a build with its runtime"

DEVICES = (
    Device(name="llvm", aliases=frozenset({"cpu", "host", "x86", "x86_64", "x86-64", "llvm -mcpu=native", "c"})),
    Device(name="cuda", aliases=frozenset({"gpu", "nvidia", "nvptx"}), needs="an NVIDIA GPU and its driver"),
    Device(name="rocm", aliases=frozenset({"amd", "hip"}), needs=f"an AMD GPU: {_GPU}"),
    Device(name="opencl", aliases=frozenset({"mali", "adreno"}), needs=f"OpenCL: {_GPU}"),
    Device(name="vulkan", aliases=frozenset(), needs=f"Vulkan: {_GPU}"),
    Device(name="metal", aliases=frozenset({"mps", "apple"}), needs="an Apple machine"),
    Device(name="webgpu", aliases=frozenset({"wasm", "web"}), needs="a browser"),
    Device(name="hexagon", aliases=frozenset(), needs="a Hexagon board or its simulator"),
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


def _gone(gone_in: str, old: str, new: str | None, kind: Kind = "attribute", **more: Any) -> DriftEntry:
    return DriftEntry(old=old, new=new, kind=kind, gone_in=gone_in, **more)


_RELAX_TYPES = tuple(
    _gone("0.26.0", f"tvm.relax.{name}StructInfo", f"tvm.relax.{name}Type", introduced_in="0.26.0", exact=True)
    for name in ("Tensor", "Shape", "Tuple", "Func")
)

DRIFT = (
    _gone("0.20.0", "tvm.relay", None, "module", note="Relax replaced it: tvm.relax"),
    _gone("0.20.0", "tvm.autotvm", None, "module"),
    _gone("0.20.0", "tvm.auto_scheduler", None, "module"),
    _gone("0.20.0", "tvm.contrib.graph_executor", None, "module", note="Relax runs on relax.VirtualMachine"),
    _gone("0.20.0", "tvm.driver.tvmc", None, "module"),
    _gone("0.20.0", "tvm.te.create_schedule", None, note="te.create_prim_func, then a schedule of tvm.s_tir"),
    _gone("0.20.0", "tvm.lower", None, note="tvm.compile does it"),
    _gone("0.21.0", "tvm._ffi", "tvm_ffi", "module", introduced_in="0.22.0"),
    _gone("0.22.0", "tvm.ffi", "tvm_ffi", "module", introduced_in="0.22.0", exact=True),
    _gone("0.22.0", "tvm.register_func", "tvm.register_global_func", introduced_in="0.22.0", exact=True),
    _gone("0.21.0", "tvm.runtime.relax_vm", "tvm.runtime.vm", "module", introduced_in="0.21.0", exact=True),
    _gone("0.22.0", "tvm.nd.array", "tvm.runtime.tensor", introduced_in="0.22.0", exact=True),
    _gone("0.22.0", "tvm.nd.empty", "tvm.runtime.empty", introduced_in="0.22.0", exact=True),
    _gone("0.22.0", "tvm.nd.NDArray", "tvm.runtime.Tensor", introduced_in="0.22.0", exact=True),
    _gone("0.22.0", "tvm.nd", "tvm.runtime", "module"),
    _gone("0.22.0", "tvm.runtime.NDArray", "tvm.runtime.Tensor", introduced_in="0.22.0", exact=True),
    _gone("0.22.0", "asnumpy", "numpy", note="a method of tensors"),
    _gone("0.24.0", "tvm.script.tir", "tvm.script.tirx", "module", introduced_in="0.24.0", exact=True),
    _gone("0.24.0", "tvm.tir.Schedule", "tvm.s_tir.Schedule", introduced_in="0.24.0", exact=True),
    _gone("0.24.0", "tvm.tir", "tvm.tirx", "module", introduced_in="0.24.0", note="schedules: tvm.s_tir"),
    _gone("0.24.0", "T.block", "T.sblock", introduced_in="0.24.0", note="in @T.prim_func(s_tir=True)"),
    _gone("0.24.0", "tvm.dlight", "tvm.s_tir.dlight", "module", introduced_in="0.24.0", exact=True),
    _gone("0.24.0", "tvm.meta_schedule", "tvm.s_tir.meta_schedule", "module", introduced_in="0.24.0", exact=True),
    _gone("0.24.0", "tvm.runtime.container", None, "module"),
    _gone("0.24.0", "tvm.ir.container", None, "module"),
    _gone("0.25.0", "tvm.contrib.utils", "tvm.support.utils", "module", introduced_in="0.25.0", exact=True),
    _gone("0.25.0", "tvm.TVMError", None, note="errors are Python's own, such as RuntimeError"),
    _gone("0.25.0", "tvm.error.TVMError", None, note="errors are Python's own, such as RuntimeError"),
    *_RELAX_TYPES,
    _gone("0.26.0", "tvm.relax.ObjectStructInfo", "tvm.relax.AnyType", introduced_in="0.26.0", exact=True),
    _gone("0.26.0", "tvm.relax.PrimStructInfo", "tvm.ir.PrimType", note="takes a dtype, no value"),
    _gone("0.26.0", "tvm.relax.StructInfo", "tvm.ir.Type"),
    _gone("0.26.0", "tvm.relax.struct_info", "tvm.relax.type", "module", introduced_in="0.26.0"),
    _gone("0.26.0", "tvm.relax.PrimValue", "tvm.relax.prim_value", introduced_in="0.26.0", exact=True),
    _gone(
        "0.26.0", "out_sinfo", "out_ty", "keyword", introduced_in="0.26.0", exact=True, note="call_tir and its kin"
    ),
    _gone("0.26.0", "sinfo_args", "ty_args", "keyword", introduced_in="0.26.0", exact=True, note="call_pure_packed"),
    _gone("0.26.0", "tir_vars", None, "keyword", note="call_tir"),
    _gone("0.26.0", "struct_info", "ty", "keyword", introduced_in="0.26.0", exact=True, note="relax.Var"),
    _gone("0.27.0", "tvm.arith", "tvm.sym", "module", introduced_in="0.27.0", exact=True),
    _gone("0.27.0", "tvm.tirx.SBlock", "tvm.s_tir.SBlock", introduced_in="0.27.0", exact=True),
    _gone("0.27.0", "tvm.tirx.SBlockRealize", "tvm.s_tir.SBlockRealize", introduced_in="0.27.0", exact=True),
    _gone("0.27.0", "tvm.tirx.StringImm", "tvm.ir.StringImm", introduced_in="0.27.0", exact=True),
    _gone("0.27.0", "tvm.tirx.stmt_functor", None, "module"),
    DriftEntry(
        old="tvm.relax.frontend.onnx",
        new="tvm.relax.frontend.onnx",
        kind="module",
        note="never imported automatically: write `import tvm.relax.frontend.onnx`",
    ),
    _gone("0.25.0", "tvm.ir.structural_equal", "tvm_ffi.structural_equal", introduced_in="0.25.0", exact=True),
    _gone("0.25.0", "tvm.ir.structural_hash", "tvm_ffi.structural_hash", introduced_in="0.25.0", exact=True),
)
