"""List the names of TVM's Python API that a release moved or removed.

They come from a comparison of all modules, classes and signatures of 0.17.dev0, 0.25.0.post1, 0.26.0 and
0.27.0.post1. Releases between 0.17 and 0.25 were looked up in TVM's history. Each *exact* entry was tested with
programs in the old spelling on an old release, and ported on a new release.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runners.core.toolchain.facts import DriftEntry, NameKind


def _drop_name(gone_in: str, old: str, new: str | None, kind: NameKind = "attribute", **more: Any) -> DriftEntry:
    """Return the entry of a name that a release removed."""
    return DriftEntry(old=old, new=new, kind=kind, gone_in=gone_in, **more)


def _move_name(since: str, old: str, new: str, kind: NameKind = "attribute", **more: Any) -> DriftEntry:
    """Return the entry of a name that one release replaced by another name with the same meaning."""
    return _drop_name(since, old, new, kind, introduced_in=since, exact=True, **more)


def _move_names(since: str, old: str, new: str, names: str, kind: NameKind = "attribute") -> Iterable[DriftEntry]:
    """Return the entries of names that moved from one namespace to another. ``a=b`` if the name changed too."""
    for pair in names.split():
        before, _, after = pair.partition("=")
        yield _move_name(since, f"{old}.{before}", f"{new}.{after or before}", kind)


_GONE_FOR_GOOD = (
    _drop_name("0.20.0", "tvm.relay", None, "module", note="Relax replaced it: tvm.relax"),
    _drop_name("0.20.0", "tvm.autotvm", None, "module"),
    _drop_name("0.20.0", "tvm.auto_scheduler", None, "module"),
    _drop_name("0.20.0", "tvm.contrib.graph_executor", None, "module", note="Relax runs on relax.VirtualMachine"),
    _drop_name("0.20.0", "tvm.driver.tvmc", None, "module"),
    _drop_name("0.20.0", "tvm.te.create_schedule", None, note="te.create_prim_func, then a schedule of tvm.s_tir"),
    _drop_name("0.20.0", "tvm.te.decl_tensor_intrin", None, note="tvm.s_tir.tensor_intrin"),
    _drop_name("0.20.0", "tvm.te.hybrid", None, "module", note="write TVMScript"),
    _drop_name("0.20.0", "tvm.te.schedule", None, "module", note="schedules: tvm.s_tir"),
    _drop_name("0.20.0", "tvm.lower", None, note="tvm.compile does it"),
    _drop_name("0.24.0", "tvm.runtime.container", None, "module"),
    _drop_name("0.24.0", "tvm.ir.container", None, "module"),
    _drop_name("0.26.0", "tir_vars", None, "keyword", note="call_tir"),
)

_BEFORE_0_7 = (
    *_move_names(
        *("0.7.0", "tvm", "tvm.te"),
        "placeholder compute scan extern var reduce_axis thread_axis create_schedule sum min max all any "
        "exp log sqrt tanh sigmoid",
    ),
    _move_name("0.7.0", "tvm.comm_reducer", "tvm.te.comm_reducer"),
    _move_name("0.7.0", "tvm.Range", "tvm.ir.Range"),
    _move_name("0.7.0", "tvm.ir_pass.Equal", "tvm.ir.structural_equal"),
    _move_name("0.7.0", "tvm.ir_pass.VerifyMemory", "tvm.tir.analysis.verify_memory"),
    *_move_names(
        *("0.7.0", "tvm.ir_pass", "tvm.tir.stmt_functor"),
        "Substitute=substitute PostOrderVisit=post_order_visit IRTransform=ir_transform",
    ),
    *_move_names("0.7.0", "tvm", "tvm.tir", "const select=Select if_then_else decl_buffer ir_builder"),
    *_move_names(
        *("0.7.0", "tvm", "tvm.tir"),
        "abs ceil floor round trunc nearbyint cos sin atan erf rsqrt power popcount fmod isnan floordiv floormod "
        "truncdiv truncmod indexdiv indexmod div call_packed call_extern call_pure_extern min_value max_value",
    ),
    _drop_name("0.16.dev0", "tvm.convert", "tvm.runtime.convert", exact=True),
    *_move_names("0.7.0", "tvm", "tvm.te", "tag_scope decl_tensor_intrin"),
    *_move_names("0.7.0", "tvm", "tvm.te", "hybrid tensor", "module"),
    *_move_names("0.7.0", "tvm.schedule", "tvm.te.schedule", "InferBound ScheduleOps"),
    *_move_names("0.7.0", "tvm", "tvm.ir", "load_json save_json"),
    _move_name("0.7.0", "tvm.make.node", "tvm.ir.make_node"),
    *_move_names(
        *("0.7.0", "tvm.expr", "tvm.tir"),
        "Var IntImm FloatImm StringImm Add Sub Mul Mod Min Max EQ NE LT LE GT GE And Or Not Select Cast Let "
        "Broadcast Ramp Shuffle",
    ),
    *_move_names("0.7.0", "tvm.stmt", "tvm.tir", "For AttrStmt IfThenElse Evaluate AssertStmt"),
    *_move_names(
        *("0.7.0", "tvm.make", "tvm.tir"),
        "Add Sub Mul Div Mod Min Max EQ NE LT LE GT GE And Or Not Select Cast Evaluate IfThenElse LetStmt AssertStmt "
        "StringImm",
    ),
    _drop_name("0.7.0", "tvm.context", "tvm.device", exact=True),
    _drop_name("0.25.0", "tvm.target.create", "tvm.target.Target", exact=True),
    _drop_name("0.7.0", "tvm.module.load", "tvm.runtime.load_module", exact=True),
    _drop_name("0.7.0", "tvm.module.enabled", "tvm.runtime.enabled", exact=True),
    _drop_name("0.7.0", "tvm.ndarray", "tvm.nd", "module", exact=True),
    _drop_name("0.7.0", "tvm.nd.context", "tvm.device", exact=True),
    _drop_name("0.7.0", "topi", "tvm.topi", "module", exact=True),
    _drop_name("0.7.0", "topi.util", "tvm.topi.utils", "module", exact=True),
    *_move_names("0.8.0", "tvm", "tvm", "topi.util=topi.utils contrib.util=contrib.utils", "module"),
    _drop_name("0.7.0", "nnvm", None, "module", note="Relay replaced it, then Relax: tvm.relax"),
    _drop_name("0.20.0", "vta", None, "module", note="the VTA accelerator left the project"),
    _drop_name("0.7.0", "tvm.relay.Module", "tvm.IRModule", exact=True),
    _drop_name("0.20.0", "tvm.relay.build_config", "tvm.transform.PassContext", exact=True),
    _drop_name("0.7.0", "tvm.contrib.cc_compiler", "tvm.contrib.cc", "module", exact=True),
    *_move_names(
        "0.7.0",
        "tvm.relay.ir_pass",
        "tvm.relay.analysis",
        "free_vars bound_vars all_vars free_type_vars post_order_visit",
    ),
    _move_name("0.7.0", "tvm.relay.ir_pass.alpha_equal", "tvm.ir.structural_equal"),
    _drop_name("0.20.0", "tvm.contrib.graph_runtime", "tvm.contrib.graph_executor", "module", exact=True),
)
"""Names of 2018 to 2021. Only forks have most of their successors."""

_FFI = (
    _drop_name("0.21.0", "tvm._ffi", "tvm_ffi", "module", introduced_in="0.22.0"),
    _move_name("0.22.0", "tvm._ffi.get_global_func", "tvm.get_global_func"),
    _move_name("0.22.0", "tvm._ffi.register_func", "tvm.register_global_func"),
    _move_name("0.22.0", "tvm._ffi.register_object", "tvm_ffi.register_object"),
    _drop_name("0.25.0", "tvm.ffi", "tvm_ffi", "module", introduced_in="0.22.0", exact=True, note="both in between"),
    _move_name("0.22.0", "tvm.register_func", "tvm.register_global_func"),
    *_move_names("0.25.0", "tvm.ir", "tvm_ffi", "structural_equal structural_hash"),
    *_move_names("0.25.0", "tvm.ir.base", "tvm_ffi", "structural_equal structural_hash"),
    *(
        _drop_name(
            "0.25.0", f"{home}.TVMError", "builtins.RuntimeError", exact=True, note="it was a RuntimeError before"
        )
        for home in ("tvm", "tvm.error", "tvm._ffi.base")
    ),
)

_RUNTIME = (
    _move_name("0.21.0", "tvm.runtime.relax_vm", "tvm.runtime.vm", "module"),
    _move_name("0.20.0", "tvm.relax.Executable", "tvm.relax.VMExecutable"),
    *_move_names(
        "0.22.0", "tvm.nd", "tvm.runtime", "array=tensor empty NDArray=Tensor device cpu cuda vulkan rocm metal"
    ),
    *_move_names("0.22.0", "tvm.runtime.ndarray", "tvm.runtime", "array=tensor empty NDArray=Tensor device cpu cuda"),
    _drop_name("0.22.0", "tvm.nd", "tvm.runtime", "module"),
    _drop_name("0.22.0", "tvm.runtime.ndarray", "tvm.runtime", "module"),
    _move_name("0.22.0", "tvm.runtime.NDArray", "tvm.runtime.Tensor"),
    _drop_name("0.25.0", "tvm.gpu", "tvm.cuda", exact=True),
    _drop_name("0.22.0", ".asnumpy", ".numpy", exact=True, note="a method of tensors"),
    _move_name("0.22.0", ".get_source", ".inspect_source", note="a method of runtime modules"),
    _move_name("0.22.0", ".imported_modules", ".imports", note="of runtime modules"),
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
    _move_name("0.24.0", "tvm.tir", "tvm.tirx", "module", note="schedules: tvm.s_tir"),
    *_move_names(
        "0.24.0", "tvm.tir", "tvm.s_tir", "Schedule ScheduleError ScheduleState StmtSRef BlockScope=SBlockScope"
    ),
    *_move_names(
        *("0.24.0", "tvm.tir", "tvm.s_tir"),
        "schedule data_layout tensor_intrin block_scope=sblock_scope",
        "module",
    ),
    _move_name("0.24.0", "tvm.tir.schedule.BlockRV", "tvm.s_tir.schedule.SBlockRV"),
    _move_name("0.24.0", "tvm.tir.schedule.BlockScope", "tvm.s_tir.schedule.SBlockScope"),
    *_move_names("0.24.0", "tvm.tir", "tvm.tirx", "Block=SBlock BlockRealize=SBlockRealize"),
    *_move_names("0.24.0", "tvm.tir.stmt", "tvm.tirx.stmt", "Block=SBlock BlockRealize=SBlockRealize"),
    *_move_names("0.24.0", "tvm.tir.transform", "tvm.s_tir.transform", _PASSES_OF_SCHEDULES),
    *_move_names("0.24.0", "tvm.tir.analysis", "tvm.s_tir.analysis", _ANALYSES_OF_SCHEDULES),
    _drop_name(
        *("0.24.0", "tvm.tir.analysis.verify_well_formed", "tvm.s_tir.analysis.verify_well_formed"),
        introduced_in="0.27.0",
        exact=True,
        note="tvm.tirx.analysis.verify_well_formed before 0.27.0, when it still knew blocks",
    ),
    _move_name("0.24.0", "tvm.tir.schedule.schedule", "tvm.s_tir", "module", note="which defined schedules"),
    _move_name("0.24.0", "tvm.tir.transform.Simplify", "tvm.tirx.transform.StmtSimplify"),
    _move_name("0.24.0", "tvm.tir.transform.CommonSubexprElimTIR", "tvm.tirx.transform.CommonSubexprElim"),
    *(
        _drop_name("0.24.0", f"tvm.tir.{name}", None)
        for name in (
            "Allocate",
            "AllocateConst",
            "Any",
            "AssertStmt",
            "BufferRealize",
            "LetStmt",
            "ProducerRealize",
            "ProducerStore",
            "Prefetch",
        )
    ),
    _drop_name("0.24.0", "tvm.tir.usmp", None, "module"),
    _drop_name("0.24.0", "tvm.tir.ir_builder", None, "module", note="write TVMScript"),
    _move_name("0.24.0", "tvm.dlight", "tvm.s_tir.dlight", "module"),
    _move_name("0.24.0", "tvm.meta_schedule", "tvm.s_tir.meta_schedule", "module"),
    _move_name("0.24.0", ".get_block", ".get_sblock", note="a method of schedules"),
    *_move_names("0.27.0", "tvm.tirx", "tvm.s_tir", "SBlock SBlockRealize MatchBufferRegion"),
    *_move_names("0.27.0", "tvm.tirx.stmt", "tvm.s_tir", "SBlock SBlockRealize MatchBufferRegion"),
    _drop_name("0.26.0", "tvm.tirx.Call", "tvm.ir.Call", exact=True, note="the type comes last"),
    _drop_name("0.26.0", "tvm.tirx.expr.Call", "tvm.ir.Call", exact=True, note="the type comes last"),
    _drop_name("0.26.0", "tvm.tirx.ret", "tvm.tirx.Return", exact=True, note="a statement"),
    _move_name("0.27.0", "tvm.tirx.StringImm", "tvm.ir.StringImm"),
    _drop_name("0.27.0", "tvm.tirx.stmt_functor", None, "module"),
    _drop_name("0.26.0", "tvm.tirx.SizeVar", "tvm.tirx.Var", exact=True, note="no variable is known to be positive"),
    _drop_name("0.26.0", "tvm.te.size_var", "tvm.te.var", exact=True, note="no variable is known to be positive"),
    *(
        _drop_name("0.26.0", f"{home}.PrimExpr", f"{home}.Expr", exact=True, note="wider")
        for home in ("tvm.ir", "tvm.tirx")
    ),
    _move_name("0.24.0", "tvm.tir.TensorIntrin", "tvm.s_tir.TensorIntrin"),
    *(
        _move_name("0.24.0", f"{home}.{old}", f"tvm.s_tir.{new}")
        for home in ("tvm.tir", "tvm.tir.data_layout")
        for old, new in (
            ("layout", "slayout"),
            ("bijective_layout", "sbijective_layout"),
            ("Layout", "SLayout"),
            ("BijectiveLayout", "SBijectiveLayout"),
        )
    ),
    _move_name("0.27.0", "tvm.tirx.analysis.expr_deep_equal", "tvm.ir.prim.expr_deep_equal"),
    _move_name("0.26.0", "dtype", "ty", "keyword", of="tvm.tirx.Var"),
    _move_name("0.16.dev0", "min_val", "min", "keyword", of="tvm.tir.For"),
    _move_name("0.27.0", "tvm.arith", "tvm.sym", "module"),
)

_SCRIPT = (
    *_move_names("0.24.0", "tvm.script", "tvm.script", "tir=tirx", "module"),
    *_move_names("0.24.0", "tvm.script.parser", "tvm.script.parser", "tir=tirx", "module"),
    *_move_names(
        *("0.24.0", "tvm.script.tir", "tvm.script.tirx"),
        "block=sblock block_attr=sblock_attr alloc_buffer=sblock_alloc_buffer",
    ),
    *_move_names(
        *("0.24.0", "tvm.script.parser.tir", "tvm.script.parser.tirx"),
        "block=sblock block_attr=sblock_attr alloc_buffer=sblock_alloc_buffer",
    ),
    *(
        _drop_name("0.24.0", f"tvm.script.tir.{name}", None)
        for name in ("LetStmt", "allocate", "allocate_const", "realize")
    ),
)

_STRUCT_INFO = ("Tensor", "Shape", "Tuple", "Func")

_RELAX = (
    *_move_names("0.26.0", "tvm.relax", "tvm.relax", " ".join(f"{n}StructInfo={n}Type" for n in _STRUCT_INFO)),
    *_move_names(
        "0.26.0", "tvm.relax.struct_info", "tvm.relax", " ".join(f"{n}StructInfo={n}Type" for n in _STRUCT_INFO)
    ),
    *_move_names("0.26.0", "tvm.relax", "tvm.relax", "ObjectStructInfo=AnyType PrimValue=prim_value"),
    _move_name("0.26.0", "tvm.relax.expr.PrimValue", "tvm.relax.prim_value"),
    _drop_name("0.26.0", "tvm.relax.PrimStructInfo", "tvm.ir.PrimType", exact=True, note="takes a dtype, no value"),
    _drop_name("0.26.0", "value", None, "keyword", of="tvm.relax.PrimStructInfo"),
    _drop_name("0.26.0", "tvm.relax.StructInfo", "tvm.ir.Type", exact=True),
    _drop_name("0.26.0", "tvm.relax.struct_info", "tvm.relax.type", "module", introduced_in="0.26.0"),
    _move_name("0.26.0", "tvm.relax.transform.UpdateParamStructInfo", "tvm.relax.transform.UpdateParamType"),
    *_move_names(
        *("0.26.0", "tvm.relax.analysis", "tvm.relax.analysis"),
        "definable_tir_vars_in_struct_info=definable_tir_vars_in_type "
        "derive_call_ret_struct_info=derive_call_ret_type struct_info_base_check=type_base_check "
        "struct_info_lca=type_lca tir_vars_in_struct_info=tir_vars_in_type",
    ),
    _move_name("0.26.0", "tvm.relax.dpl.StructInfoPattern", "tvm.relax.dpl.TypePattern"),
    _move_name("0.26.0", "out_sinfo", "out_ty", "keyword", note="call_tir and its kin"),
    _move_name("0.26.0", "sinfo_args", "ty_args", "keyword", note="call_pure_packed"),
    _move_name("0.26.0", "struct_info", "ty", "keyword", note="relax.Var", of="tvm.relax"),
    _move_name("0.26.0", "ret_struct_info", "ret_ty", "keyword", note="relax.Function", of="tvm.relax"),
    _move_name("0.26.0", "check_struct_info", "check_ty", "keyword", note="well_formed", of="tvm.relax"),
    _move_name("0.26.0", "sinfo", "ty", "keyword", of="tvm.relax.analysis"),
    _move_name("0.26.0", "annotate_struct_info", "annotate_ty", "keyword"),
    *(
        _drop_name("0.26.0", f".{old}", f".{new}", exact=True, note="of expressions and functions")
        for old, new in (("struct_info", "ty"), ("struct_info_", "ty"), ("ret_struct_info", "ret_ty"))
    ),
    _move_name("0.27.0", "tvm.relax.Constant", "tvm.ir.Constant"),
    _move_name("0.27.0", "tvm.relax.StringImm", "tvm.ir.StringImm"),
    *_move_names("0.27.0", "tvm.ir", "tvm.relax", "VDevice DummyGlobalInfo"),
    DriftEntry(
        old="tvm.relax.frontend.onnx",
        new="tvm.relax.frontend.onnx",
        kind="module",
        note="never imported automatically: write `import tvm.relax.frontend.onnx`",
    ),
)

_CONTRIB = tuple(
    _move_name("0.25.0", f"tvm.contrib.{name}", f"tvm.support.{name}", "module")
    for name in ("utils", "cc", "popen_pool", "tar", "nvcc", "rocm")
)

_OPTIONS = (
    *_move_names(
        *("0.24.0", "tir", "tirx"),
        "UnrollLoop RemoveNoOp Simplify=StmtSimplify add_lower_pass debug_keep_trivial_loop disable_assert "
        "disable_cse_tir disable_storage_rewrite disable_vectorize enable_debug instrument_bound_checkers "
        "instrument_lwp is_entry_func merge_static_smem noalias use_async_copy vtcm_capacity is_scheduled "
        "is_host_func",
        "option",
    ),
    *_move_names(
        *("0.24.0", "tir", "s_tir"),
        "HoistExpression HoistIfThenElse InjectDoubleBuffer LoopPartition instr_siblings lwp_disable_func_prof "
        "lwp_max_depth lwp_min_height reset_start_id",
        "option",
    ),
)

DRIFT = (*_GONE_FOR_GOOD, *_BEFORE_0_7, *_FFI, *_RUNTIME, *_TIR, *_SCRIPT, *_RELAX, *_CONTRIB, *_OPTIONS)
