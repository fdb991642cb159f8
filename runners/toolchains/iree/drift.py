"""List the flags, operations and dialects of IREE that a release moved, removed or introduced.

``flags.json`` lists the flags that some release lacks, from the help of all releases' programs. ``passes.json`` lists
the passes that were renamed before the first numbered release, from the history of IREE's repository.
"""

from __future__ import annotations

import json
from importlib import resources

from runners.core.toolchain.facts import DriftEntry

_SUCCESSORS = {
    "--iree-llvmgpu-enable-prefetch": "--iree-llvmgpu-prefetch-num-stages",
    "--iree-dispatch-creation-experimental-data-tiling": "--iree-dispatch-creation-data-tiling",
    "--iree-stream-external-resources-mappable": "--iree-hal-external-resources-mappable",
    "--iree-opt-import-parameters": "--iree-parameter-import",
    "--iree-opt-import-parameter-keys": "--iree-parameter-import-keys",
    "--iree-opt-import-parameter-maximum-size": "--iree-parameter-import-maximum-size",
    "--iree-opt-export-parameter-minimum-size": "--iree-parameter-export-minimum-size",
    "--iree-gpu-fuse-and-hoist-parallel-loops": "--iree-codegen-gpu-fuse-and-hoist-parallel-loops",
    "--iree-gpu-pack-to-intrinsics": "--iree-codegen-gpu-pack-to-intrinsics",
    "--iree-codegen-gpu-propagate-dispatch-size-bounds": "--iree-codegen-propagate-dispatch-size-bounds",
    "--iree-llvmcpu-vector-transfer-lowering": "--iree-codegen-vector-transfer-lowering",
    "--iree-linalg-ext-convert-conv2d-to-im2col-op": "--iree-linalg-ext-convert-conv-to-im2col-op",
    "--iree-linalg-ext-decompose-map-scatter": "--iree-linalg-ext-decompose-map-store",
    "--iree-codegen-affine-expand-index-ops": "--iree-affine-expand-index-ops",
    "--iree-gpu-distribute-mma-to-lanes": "--iree-gpu-distribute-inner-tiled-to-lanes",
}
"""Renamed flags and passes. Every ``--iree-hip-`` flag that 3.12.0 removed became an ``--iree-rocm-`` flag."""

_EARLIEST = "20230209.425"
"""The earliest build that runs here. No build knows the names of 2021 and 2022."""
_NOT_EXACT = {"--iree-llvmgpu-enable-prefetch": "a switch became a number of stages"}

_VALUES = tuple(
    DriftEntry(
        old=f"--iree-hal-target-device={backend}",
        new=f"--iree-hal-target-backends={backend}",
        kind="flag",
        gone_in="3.4.0",
        exact=True,
        note="backends are no devices any more; the successor works on every release",
    )
    for backend in ("llvm-cpu", "vmvx")
)

_RENAMED_IN_2023 = {
    **{"--module_file": "--module", "--entry_function": "--function", "--function_input": "--input"},
    **{"--module-file": "--module", "--entry-function": "--function", "--function-input": "--input"},
    **{f"--{flag}=dylib": "--device=local-task" for flag in ("driver", "device")},
    **{f"--{flag}=dylib-sync": "--device=local-sync" for flag in ("driver", "device")},
    **{f"--{flag}=vmvx": "--device=local-task" for flag in ("driver", "device")},
    **{"--driver": "--device", "--print_max_element_count": "--output_max_element_count"},
}
_RUNNERS = ("iree-run-module", "iree-benchmark-module")
"""Programs with the same runtime flags. The table lists those of the first."""
_RUNTIME = tuple(
    DriftEntry(
        old=old, new=new, kind="flag", gone_in=_EARLIEST, exact=True, note="renamed on 2023-02-01 (#12010)", of=tool
    )
    for old, new in _RENAMED_IN_2023.items()
    for tool in _RUNNERS
)
"""Flags of the runtime's tools that were renamed before the first numbered release. Older reports use them."""

INPUT_TYPES = {"mhlo": "stablehlo", "xla": "stablehlo_xla", "mhlo_xla": "stablehlo_xla"}
_LLVM_FLAGS = """
    debug-symbols embedded-linker-path keep-linker-artifacts link-embedded link-static loop-interleaving
    loop-unrolling loop-vectorization sanitize slp-vectorization static-library-output-path system-linker-path
    target-abi target-cpu target-cpu-features target-float-abi target-triple wasm-linker-path
"""
_VULKAN_FAMILIES = {
    **{"ada": "rtx4090", "ampere": "rtx3080 rtx3090 a100", "pascal": "", "turing": "t4 rtx2080ti"},
    **{"rdna1": "5700xt", "rdna2": "6800xt 6900 6900xt", "rdna3": "780m 7900 7900xtx w7900"},
    **{"adreno": "a640 a650 a660 a730 a740", "valhall": "g77 g78 g710"},
}
"""Families of GPUs and their chips, as named in target triples until 2024."""
_VULKAN_CHIPS = frozenset({"rtx3080", "rtx3090", "a100"})
"""Chips that every release knows as separate targets. The target of any other chip is its family."""
_RENAMED_BY_2024 = {
    **{f"--iree-llvm-{name}": f"--iree-llvmcpu-{name}" for name in _LLVM_FLAGS.split()},
    **{
        f"--iree-hal-target-backends={name}": "--iree-hal-target-backends=llvm-cpu"
        for name in ("dylib-llvm-aot", "dylib", "llvm-aot")
    },
    **{
        f"--iree-hal-target-backends={name}": f"--iree-hal-target-backends={name}-spirv"
        for name in ("vulkan", "metal")
    },
    **{f"--iree-input-type={old}": f"--iree-input-type={new}" for old, new in INPUT_TYPES.items()},
    **{f"--iree-{where}-demote-i64-to-i32": "--iree-input-demote-i64-to-i32" for where in ("flow", "mhlo")},
    "--iree-flow-demote-f64-to-f32": "--iree-input-demote-f64-to-f32",
    "--iree-flow-demote-f32-to-f16": "--iree-input-demote-f32-to-f16",
    **{
        f"--iree-opt-{change}": f"--iree-input-{change}"
        for change in (
            *("demote-i64-to-i32", "demote-f32-to-f16", "demote-f64-to-f32"),
            *("promote-f16-to-f32", "promote-bf16-to-f32"),
        )
    },
    **{
        f"--iree-flow-{name}": f"--iree-dispatch-creation-{name}"
        for name in (
            *("collapse-reduction-dims", "enable-aggressive-fusion", "enable-detensoring", "split-matmul-reduction"),
            *("enable-fuse-padding-into-linalg-consumer-ops", "topk-split-reduction"),
        )
    },
    "--iree-hal-cuda-llvm-target-arch": "--iree-cuda-target",
    "--iree-cuda-llvm-target-arch": "--iree-cuda-target",
    "--iree-rocm-target-chip": "--iree-hip-target",
    "--iree-mlir-to-vm-bytecode-module": "",
    **{
        f"--iree-llvmcpu-enable-microkernels{value}": f"--iree-llvmcpu-enable-ukernels={kernels}"
        for value, kernels in (("", "all"), ("=true", "all"), ("=1", "all"), ("=false", "none"), ("=0", "none"))
    },
    "--iree-flow-enable-data-tiling": "--iree-opt-data-tiling",
    "--iree-flow-fuse-multi-use": "--iree-dispatch-creation-fuse-multi-use",
    "--iree-global-opt-enable-fuse-horizontal-contractions": (
        "--iree-dispatch-creation-enable-fuse-horizontal-contractions"
    ),
    **dict.fromkeys(
        ("--iree-flow-dispatch-linalg-on-tensors", "--iree-codegen-llvm-experimental-linalg-on-tensors"), ""
    ),
    **{
        f"--iree-vulkan-target-triple={family}-{chip}-{system}": (
            f"--iree-vulkan-target={chip if chip in _VULKAN_CHIPS else family}"
        )
        for family, chips in _VULKAN_FAMILIES.items()
        for chip in ("unknown", *chips.split())
        for system in ("linux", "unknown", "windows", "android29", "android30", "android31", "android34")
    },
}
"""Flags of the compiler that were renamed before the first numbered release. Empty: no flag is needed."""
_GONE_IN = {
    **dict.fromkeys((f"--iree-llvm-{name}" for name in _LLVM_FLAGS.split()), "20230419.494"),
    **dict.fromkeys(
        (f"--iree-flow-demote-{types}" for types in ("i64-to-i32", "f64-to-f32", "f32-to-f16")), "20231004.665"
    ),
    "--iree-mhlo-demote-i64-to-i32": "20230815.614",
    **{
        old: "20240621.931"
        for old in _RENAMED_BY_2024
        if old.startswith(("--iree-opt-demote-", "--iree-opt-promote-"))
    },
    **{old: "20240828.999" for old, new in _RENAMED_BY_2024.items() if new.startswith("--iree-dispatch-creation-")},
    **{
        old: "20240828.999"
        for old in _RENAMED_BY_2024
        if old.startswith(("--iree-hal-cuda-", "--iree-rocm-target-chip", "--iree-vulkan-target-triple="))
    },
    **{old: "20231218.742" for old in _RENAMED_BY_2024 if old.startswith("--iree-llvmcpu-enable-microkernels")},
    "--iree-flow-enable-data-tiling": "20231004.665",
    **{f"--iree-input-type={old}": "20230815.614" for old in INPUT_TYPES},
}
"""Flag → the first build that lacks it, from the help of the builds of 2023 and 2024."""
_NO_WAY_BACK = ("--iree-input-demote-", "--iree-input-promote-", "--iree-input-type=stablehlo_xla")
"""Prefixes of successors that have several names in earlier builds, or one that some of these builds lack."""
_INTRODUCED_IN = {"--iree-input-type=stablehlo": "20230524.529"}
"""Successor → the first build that has it, if the previous build still has the old name. By default, the build that
dropped the old name has the successor."""
_GONE_EARLIER = frozenset(
    {
        *("--iree-mlir-to-vm-bytecode-module", "--iree-flow-dispatch-linalg-on-tensors"),
        "--iree-codegen-llvm-experimental-linalg-on-tensors",
        *(f"--iree-hal-target-backends={name}" for name in ("dylib-llvm-aot", "dylib", "llvm-aot")),
    }
)
"""Flags that no build here knows, from the help of the builds of 2023 and 2024."""


def _find_introduction(old: str, new: str) -> str | None:
    """Return the first build with the successor of a flag. None if an early build has no name for it."""
    return None if new.startswith(_NO_WAY_BACK) else _INTRODUCED_IN.get(new, _GONE_IN.get(old))


_PASSES = {
    "--iree-llvmcpu-drop-vector-unit-dims": "--iree-codegen-drop-vector-unit-dims",
    **{
        f"--{old}": f"--{new}"
        for old, new in json.loads((resources.files("runners.toolchains.iree") / "passes.json").read_bytes()).items()
    },
}
"""Passes that were renamed before the first numbered release. The file comes from IREE's history."""
_COMPILER = tuple(
    DriftEntry(
        old=old,
        new=new,
        kind="flag",
        gone_in=_EARLIEST if old in _GONE_EARLIER else _GONE_IN.get(old, "2.9.0"),
        introduced_in=_find_introduction(old, new),
        exact=True,
        note="renamed before the first release",
        of=tool,
    )
    for tool, renamed in (
        ("iree-compile", _RENAMED_BY_2024),
        ("iree-opt", _RENAMED_BY_2024),
        ("iree-opt", _PASSES),
    )
    for old, new in renamed.items()
)

_MODULES = (
    *(
        DriftEntry(old=name, new=None, kind="module", gone_in="2.9.0", note="removed before the first release")
        for name in ("iree.compiler.api.driver", "iree.compiler.xla", "iree.compiler.tools.xla", "pyiree")
    ),
    *(
        DriftEntry(old=old, new=new, kind="module", gone_in="2.9.0", exact=True, note="renamed in 2020 and 2021")
        for old, new in (("pyiree.rt", "iree.runtime"), ("pyiree.compiler2", "iree.compiler"))
    ),
)
"""Modules of IREE's Python packages until 2021, and modules of its compiler's package."""

_DIALECT = (
    DriftEntry(
        old="mhlo",
        new="stablehlo",
        kind="dialect",
        gone_in="2.9.0",
        note="most operations have the same name and meaning there",
    ),
    DriftEntry(
        old="flow.dispatch.tensor",
        new="iree_tensor_ext.dispatch.tensor",
        kind="dialect",
        gone_in="3.4.0",
        introduced_in="3.4.0",
        exact=True,
    ),
    *(
        DriftEntry(
            old=f"tensor.{op}",
            new=f"linalg.{op}",
            kind="op",
            gone_in="3.3.0",
            introduced_in="3.3.0",
            exact=True,
        )
        for op in ("pack", "unpack")
    ),
    DriftEntry(
        old="iree_linalg_ext.map_scatter",
        new="iree_linalg_ext.map_store",
        kind="op",
        gone_in="3.11.0",
        introduced_in="3.11.0",
        exact=True,
    ),
    DriftEntry(
        old="iree_linalg_ext.attention",
        new="iree_linalg_ext.attention",
        kind="op",
        gone_in="3.13.0",
        introduced_in="3.13.0",
        note="its properties moved from {…} to <{…}>",
    ),
)


Span = tuple[str | None, str | None]
"""First release with a flag (None: the oldest has it), first later one without it (None: the newest has it)."""


def _load_spans() -> dict[str, dict[str, Span]]:
    """Load the spans of all flags that some release lacks: program → flag → span."""
    document = json.loads((resources.files("runners.toolchains.iree") / "flags.json").read_bytes())
    return {
        program: {flag: (since, gone) for flag, (since, gone) in flags.items()}
        for tool, flags in document["tools"].items()
        for program in (_RUNNERS if tool in _RUNNERS else (tool,))
    }


def _list_flag_drift(spans: dict[str, dict[str, Span]]) -> tuple[DriftEntry, ...]:
    return tuple(
        _make_flag_entry(flag, *span, known, tool)
        for tool, known in spans.items()
        for flag, span in sorted(known.items())
    )


def _make_flag_entry(flag: str, since: str | None, gone: str | None, spans: dict[str, Span], tool: str) -> DriftEntry:
    """Return the entry of a flag of one program. Another program may keep the same flag longer."""
    if gone is None:
        return DriftEntry(
            old=flag, new=flag, kind="flag", introduced_in=since, note=f"unknown before {since}", of=tool
        )
    new = _SUCCESSORS.get(flag) or flag.replace("--iree-hip-", "--iree-rocm-")
    known = new != flag and spans.get(new, (None, gone))[1] is None
    return DriftEntry(
        old=flag,
        new=new if known else None,
        kind="flag",
        gone_in=gone,
        introduced_in=spans[new][0] if known and new in spans else None,
        exact=known and flag not in _NOT_EXACT,
        note=_NOT_EXACT.get(flag) or (f"first in {since}" if since else ""),
        of=tool,
    )


DRIFT = (*_VALUES, *_RUNTIME, *_COMPILER, *_MODULES, *_DIALECT, *_list_flag_drift(_load_spans()))
