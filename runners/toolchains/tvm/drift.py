"""Names of TVM's Python API that moved: where to, and with which release.

Measured by listing every module, class and signature of 0.17.dev0, 0.25.0.post1, 0.26.0 and 0.27.0.post1 and
comparing them; releases between 0.17 and 0.25 were read in TVM's history. *Exact* was checked by running programs in
the old spelling where it works and ported where it doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runners.core.toolchain.facts import DriftEntry, NameKind


def _gone(gone_in: str, old: str, new: str | None, kind: NameKind = "attribute", **more: Any) -> DriftEntry:
    return DriftEntry(old=old, new=new, kind=kind, gone_in=gone_in, **more)


def _moved(since: str, old: str, new: str, kind: NameKind = "attribute", **more: Any) -> DriftEntry:
    """One release took the old name and brought the new one, which means the same."""
    return _gone(since, old, new, kind, introduced_in=since, exact=True, **more)


def _under(since: str, old: str, new: str, names: str, kind: NameKind = "attribute") -> Iterable[DriftEntry]:
    """Names that moved from one namespace to another; ``a=b`` where the name changed besides."""
    for pair in names.split():
        before, _, after = pair.partition("=")
        yield _moved(since, f"{old}.{before}", f"{new}.{after or before}", kind)


_GONE_FOR_GOOD = (
    _gone("0.20.0", "tvm.relay", None, "module", note="Relax replaced it: tvm.relax"),
    _gone("0.20.0", "tvm.autotvm", None, "module"),
    _gone("0.20.0", "tvm.auto_scheduler", None, "module"),
    _gone("0.20.0", "tvm.contrib.graph_executor", None, "module", note="Relax runs on relax.VirtualMachine"),
    _gone("0.20.0", "tvm.driver.tvmc", None, "module"),
    _gone("0.20.0", "tvm.te.create_schedule", None, note="te.create_prim_func, then a schedule of tvm.s_tir"),
    _gone("0.20.0", "tvm.lower", None, note="tvm.compile does it"),
    _gone("0.24.0", "tvm.runtime.container", None, "module"),
    _gone("0.24.0", "tvm.ir.container", None, "module"),
    _gone("0.26.0", "tir_vars", None, "keyword", note="call_tir"),
)

_FFI = (
    _gone("0.21.0", "tvm._ffi", "tvm_ffi", "module", introduced_in="0.22.0"),
    _moved("0.22.0", "tvm._ffi.get_global_func", "tvm.get_global_func"),
    _moved("0.22.0", "tvm._ffi.register_func", "tvm.register_global_func"),
    _moved("0.22.0", "tvm._ffi.register_object", "tvm_ffi.register_object"),
    _gone("0.25.0", "tvm.ffi", "tvm_ffi", "module", introduced_in="0.22.0", exact=True, note="both in between"),
    _moved("0.22.0", "tvm.register_func", "tvm.register_global_func"),
    *_under("0.25.0", "tvm.ir", "tvm_ffi", "structural_equal structural_hash"),
    *_under("0.25.0", "tvm.ir.base", "tvm_ffi", "structural_equal structural_hash"),
    *(
        _gone("0.25.0", f"{home}.TVMError", "builtins.RuntimeError", exact=True, note="it was a RuntimeError before")
        for home in ("tvm", "tvm.error", "tvm._ffi.base")
    ),
)

_RUNTIME = (
    _moved("0.21.0", "tvm.runtime.relax_vm", "tvm.runtime.vm", "module"),
    _moved("0.20.0", "tvm.relax.Executable", "tvm.relax.VMExecutable"),
    *_under("0.22.0", "tvm.nd", "tvm.runtime", "array=tensor empty NDArray=Tensor device cpu cuda vulkan rocm metal"),
    *_under("0.22.0", "tvm.runtime.ndarray", "tvm.runtime", "array=tensor empty NDArray=Tensor device cpu cuda"),
    _gone("0.22.0", "tvm.nd", "tvm.runtime", "module"),
    _gone("0.22.0", "tvm.runtime.ndarray", "tvm.runtime", "module"),
    _moved("0.22.0", "tvm.runtime.NDArray", "tvm.runtime.Tensor"),
    _gone("0.25.0", "tvm.gpu", "tvm.cuda", exact=True),
    _gone("0.22.0", ".asnumpy", ".numpy", exact=True, note="a method of tensors"),
    _moved("0.22.0", ".get_source", ".inspect_source", note="a method of runtime modules"),
    _moved("0.22.0", ".imported_modules", ".imports", note="of runtime modules"),
)

_PASSES_OF_SCHEDULES = """
    CompactBufferAllocation ConvertBlocksToOpaque DecorateDeviceScope DefaultGPUSchedule HoistExpression
    HoistIfThenElse InferFragment InjectDoubleBuffer InjectPTXAsyncCopy InjectPermutedLayout InjectSoftwarePipeline
    InjectVirtualThread
    InstrumentBoundCheckers InstrumentProfileIntrinsics LiftThreadBinding LoopPartition LowerAutoCopy
    LowerCrossThreadReduction LowerInitBlock LowerMatchBuffer LowerOpaqueBlock LowerThreadAllreduce
    ManifestSharedMemoryLocalStage MergeSharedMemoryAllocations PlanAndUpdateBufferAllocationLocation RemoveStoreUndef
    RemoveWeightLayoutRewriteBlock RenormalizeSplitPattern RewriteUnsafeSelect ThreadSync TransformMmaBufferLayout
    UnifyThreadBinding VerifyVTCMLimit
"""

_ANALYSES_OF_SCHEDULES = """
    OOBChecker assert_pure_function calculate_allocated_bytes detect_buffer_access_lca estimate_tir_flops
    find_anchor_block=find_anchor_sblock get_block_access_region=get_sblock_access_region
    get_block_read_write_region=get_sblock_read_write_region get_vtcm_compaction_passes is_pure_function
    verify_gpu_code
"""

_TIR = (
    _moved("0.24.0", "tvm.tir", "tvm.tirx", "module", note="schedules: tvm.s_tir"),
    *_under("0.24.0", "tvm.tir", "tvm.s_tir", "Schedule ScheduleError ScheduleState StmtSRef BlockScope=SBlockScope"),
    *_under(
        *("0.24.0", "tvm.tir", "tvm.s_tir"),
        "schedule data_layout tensor_intrin block_scope=sblock_scope",
        "module",
    ),
    _moved("0.24.0", "tvm.tir.schedule.BlockRV", "tvm.s_tir.schedule.SBlockRV"),
    _moved("0.24.0", "tvm.tir.schedule.BlockScope", "tvm.s_tir.schedule.SBlockScope"),
    *_under("0.24.0", "tvm.tir", "tvm.tirx", "Block=SBlock BlockRealize=SBlockRealize"),
    *_under("0.24.0", "tvm.tir.stmt", "tvm.tirx.stmt", "Block=SBlock BlockRealize=SBlockRealize"),
    *_under("0.24.0", "tvm.tir.transform", "tvm.s_tir.transform", _PASSES_OF_SCHEDULES),
    *_under("0.24.0", "tvm.tir.analysis", "tvm.s_tir.analysis", _ANALYSES_OF_SCHEDULES),
    _gone(
        *("0.24.0", "tvm.tir.analysis.verify_well_formed", "tvm.s_tir.analysis.verify_well_formed"),
        introduced_in="0.27.0",
        exact=True,
        note="tvm.tirx.analysis.verify_well_formed before 0.27.0, when it still knew blocks",
    ),
    _moved("0.24.0", "tvm.tir.schedule.schedule", "tvm.s_tir", "module", note="which defined schedules"),
    _moved("0.24.0", "tvm.tir.transform.Simplify", "tvm.tirx.transform.StmtSimplify"),
    _moved("0.24.0", "tvm.tir.transform.CommonSubexprElimTIR", "tvm.tirx.transform.CommonSubexprElim"),
    *(
        _gone("0.24.0", f"tvm.tir.{name}", None)
        for name in (
            "Allocate",
            "AllocateConst",
            "Any",
            "BufferRealize",
            "ProducerRealize",
            "ProducerStore",
            "Prefetch",
        )
    ),
    _gone("0.24.0", "tvm.tir.usmp", None, "module"),
    _gone("0.24.0", "tvm.tir.ir_builder", None, "module", note="write TVMScript"),
    _moved("0.24.0", "tvm.dlight", "tvm.s_tir.dlight", "module"),
    _moved("0.24.0", "tvm.meta_schedule", "tvm.s_tir.meta_schedule", "module"),
    _moved("0.24.0", ".get_block", ".get_sblock", note="a method of schedules"),
    *_under("0.27.0", "tvm.tirx", "tvm.s_tir", "SBlock SBlockRealize MatchBufferRegion"),
    *_under("0.27.0", "tvm.tirx.stmt", "tvm.s_tir", "SBlock SBlockRealize MatchBufferRegion"),
    _moved("0.27.0", "tvm.tirx.StringImm", "tvm.ir.StringImm"),
    _gone("0.27.0", "tvm.tirx.stmt_functor", None, "module"),
    _gone("0.26.0", "tvm.tirx.SizeVar", "tvm.tirx.Var", note="loses that it is not negative"),
    _gone("0.26.0", "tvm.te.size_var", "tvm.te.var", note="loses that it is not negative"),
    *(_gone("0.26.0", f"{home}.PrimExpr", f"{home}.Expr", note="wider") for home in ("tvm.ir", "tvm.tirx")),
    _moved("0.26.0", "dtype", "ty", "keyword", of="tvm.tirx.Var"),
    _moved("0.27.0", "tvm.arith", "tvm.sym", "module"),
)

_SCRIPT = (
    *_under("0.24.0", "tvm.script", "tvm.script", "tir=tirx", "module"),
    *_under("0.24.0", "tvm.script.parser", "tvm.script.parser", "tir=tirx", "module"),
    *_under(
        *("0.24.0", "tvm.script.tir", "tvm.script.tirx"),
        "block=sblock block_attr=sblock_attr alloc_buffer=sblock_alloc_buffer",
    ),
    *_under(
        *("0.24.0", "tvm.script.parser.tir", "tvm.script.parser.tirx"),
        "block=sblock block_attr=sblock_attr alloc_buffer=sblock_alloc_buffer",
    ),
    *(
        _gone("0.24.0", f"tvm.script.tir.{name}", None)
        for name in ("LetStmt", "allocate", "allocate_const", "realize")
    ),
)

_STRUCT_INFO = ("Tensor", "Shape", "Tuple", "Func")

_RELAX = (
    *_under("0.26.0", "tvm.relax", "tvm.relax", " ".join(f"{n}StructInfo={n}Type" for n in _STRUCT_INFO)),
    *_under("0.26.0", "tvm.relax.struct_info", "tvm.relax", " ".join(f"{n}StructInfo={n}Type" for n in _STRUCT_INFO)),
    *_under("0.26.0", "tvm.relax", "tvm.relax", "ObjectStructInfo=AnyType PrimValue=prim_value"),
    _moved("0.26.0", "tvm.relax.expr.PrimValue", "tvm.relax.prim_value"),
    _gone("0.26.0", "tvm.relax.PrimStructInfo", "tvm.ir.PrimType", exact=True, note="takes a dtype, no value"),
    _gone("0.26.0", "value", None, "keyword", of="tvm.relax.PrimStructInfo"),
    _gone("0.26.0", "tvm.relax.StructInfo", "tvm.ir.Type", exact=True),
    _gone("0.26.0", "tvm.relax.struct_info", "tvm.relax.type", "module", introduced_in="0.26.0"),
    _moved("0.26.0", "tvm.relax.transform.UpdateParamStructInfo", "tvm.relax.transform.UpdateParamType"),
    *_under(
        *("0.26.0", "tvm.relax.analysis", "tvm.relax.analysis"),
        "definable_tir_vars_in_struct_info=definable_tir_vars_in_type "
        "derive_call_ret_struct_info=derive_call_ret_type struct_info_base_check=type_base_check "
        "struct_info_lca=type_lca tir_vars_in_struct_info=tir_vars_in_type",
    ),
    _moved("0.26.0", "tvm.relax.dpl.StructInfoPattern", "tvm.relax.dpl.TypePattern"),
    _moved("0.26.0", "out_sinfo", "out_ty", "keyword", note="call_tir and its kin"),
    _moved("0.26.0", "sinfo_args", "ty_args", "keyword", note="call_pure_packed"),
    _moved("0.26.0", "struct_info", "ty", "keyword", note="relax.Var", of="tvm.relax"),
    _moved("0.26.0", "ret_struct_info", "ret_ty", "keyword", note="relax.Function", of="tvm.relax"),
    _moved("0.26.0", "check_struct_info", "check_ty", "keyword", note="well_formed", of="tvm.relax"),
    _moved("0.26.0", "sinfo", "ty", "keyword", of="tvm.relax.analysis"),
    _moved("0.26.0", "annotate_struct_info", "annotate_ty", "keyword"),
    *(
        _gone("0.26.0", f".{old}", f".{new}", exact=True, note="of expressions and functions")
        for old, new in (("struct_info", "ty"), ("struct_info_", "ty"), ("ret_struct_info", "ret_ty"))
    ),
    _moved("0.27.0", "tvm.relax.Constant", "tvm.ir.Constant"),
    *_under("0.27.0", "tvm.ir", "tvm.relax", "VDevice DummyGlobalInfo"),
    DriftEntry(
        old="tvm.relax.frontend.onnx",
        new="tvm.relax.frontend.onnx",
        kind="module",
        note="never imported automatically: write `import tvm.relax.frontend.onnx`",
    ),
)

_CONTRIB = tuple(
    _moved("0.25.0", f"tvm.contrib.{name}", f"tvm.support.{name}", "module")
    for name in ("utils", "cc", "popen_pool", "tar", "nvcc", "rocm")
)

_OPTIONS = (
    *_under(
        *("0.24.0", "tir", "tirx"),
        "UnrollLoop RemoveNoOp Simplify=StmtSimplify add_lower_pass debug_keep_trivial_loop disable_assert "
        "disable_cse_tir disable_storage_rewrite disable_vectorize enable_debug instrument_bound_checkers "
        "instrument_lwp is_entry_func merge_static_smem noalias use_async_copy vtcm_capacity is_scheduled "
        "is_host_func",
        "option",
    ),
    *_under(
        *("0.24.0", "tir", "s_tir"),
        "HoistExpression HoistIfThenElse InjectDoubleBuffer LoopPartition instr_siblings lwp_disable_func_prof "
        "lwp_max_depth lwp_min_height reset_start_id",
        "option",
    ),
)

DRIFT = (*_GONE_FOR_GOOD, *_FFI, *_RUNTIME, *_TIR, *_SCRIPT, *_RELAX, *_CONTRIB, *_OPTIONS)
