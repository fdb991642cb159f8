"""Retarget TVM's testcases, and port the differences between releases that are not names. Pure.

A testcase of TVM chooses its target while it runs. A hook inside the sandbox (``guest/tvm/retarget.py``) replaces
each target and device that the testcase requests. The text of the testcase does not change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

import msgspec
from packaging.version import Version

from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.guest import make_launch_step
from runners.core.toolchain.rewriting import (
    Argument,
    Assigned,
    BindingForm,
    CallForm,
    CarrierForm,
    DeclaringCall,
    DecoratorSwitch,
    Embedded,
    Expression,
    Idioms,
    Rewriting,
    StringUse,
)

TARGETS = ("llvm", "cuda", "rocm", "opencl", "vulkan", "metal")
"""Devices that the hook can substitute. Each has the name of its target."""
_GPU = re.compile(r"cuda|nvptx|rocm|opencl|vulkan|metal|nvidia/|\bgpu\b", re.I)


def retarget_testcase(testcase: Testcase, device: str) -> Testcase | None:
    """Return the same program under the hook.

    None for another device. None for the CPU if the program names no GPU, because it runs on the CPU already.
    """
    if testcase.kind is not TestcaseKind.PYTHON or device not in TARGETS:
        return None
    if device == "llvm" and not any(_GPU.search(text) for text in testcase.files.values()):
        return None
    steps = tuple(make_launch_step("tvm.retarget", device, *step[1:]) for step in testcase.steps)
    return msgspec.structs.replace(testcase, steps=steps)


_NOTHING = frozenset({"None"})
_ANY_SPAN: Mapping[str, frozenset[str] | None] = {"span": None}
_TIRX_SINCE = Version("0.24.0")
"""Functions are ``tirx`` by default, and targets are no longer written like a command line."""
_ONE_COMPILE_SINCE = Version("0.20.0")
"""``tvm.compile`` builds any module. Before, ``tvm.relax.build`` built Relax modules."""
_COMPILE = "tvm.compile"
_NAME_STRINGS = re.compile(r"(?:^|\.)(?:PassContext|func_attr|with_attr|with_attrs|without_attr)$")
_SCHEDULABLE = DecoratorSwitch(
    decorators=frozenset({"tvm.script.tir.prim_func", "tvm.script.parser.tir.prim_func"}), keyword="s_tir"
)
"""``@T.prim_func(s_tir=True)`` has blocks to schedule, as each ``@T.prim_func`` had before ``tirx``."""
_ANNOTATED_LET = BindingForm(
    decorators=_SCHEDULABLE.decorators,
    types=re.compile(r"tvm\.script\.(?:parser\.)?tir\.(?:(?:u?int|float|bfloat)\d\w*|bool|handle\(\))"),
    code="{home}.let[{type}]",
)
"""``x: T.int32 = y`` bound a name. Since ``tirx``, it makes a variable in memory."""
_DECLARED_BUFFERS = tuple(
    DeclaringCall(decorators=_SCHEDULABLE.decorators, function=f"{home}.{name}", keyword="data", name="decl_buffer")
    for home in ("tvm.script.tir", "tvm.script.parser.tir")
    for name in ("Buffer", "buffer_decl")
)
"""``B = T.Buffer(shape, data=A.data)`` in a body. Since ``tirx``, a buffer must be declared before its use."""
_BRACKETED = frozenset({"tvm.script.tir.Buffer"})
"""Names until 0.11. No build here accepts them."""
_TARGET = "tvm.target.Target"
_TARGET_SECOND = {"tvm.build", "tvm.compile", "tvm.relax.build", "tvm.tir.build", "tvm.tirx.build"}
"""Functions whose second argument is a target."""


_LET_STATEMENTS = tuple(
    CallForm(
        function=f"{home}.LetStmt",
        parameters=("var", "value", "body"),
        code="tvm.tirx.SeqStmt([tvm.tirx.Bind({var}, {value}), {body}])",
        package="tvm",
    )
    for home in ("tvm.tir", "tvm.tir.stmt", "tvm.make")
)
"""A binding had a body. Since ``tirx``, it is before the body in a sequence."""

_EXPRESSIONS_SINCE = Version("0.26.0")
"""Calls are the same node in all languages, buffers are variables, and a return is a statement."""
_OF_TIR = ("tvm.tir", "tvm.tirx")
_RETURNS = (
    *(
        CallForm(
            function=f"{home}.ret",
            parameters=("val", "span"),
            code="tvm.tirx.Return({val})",
            package="tvm",
            neutral=_ANY_SPAN,
        )
        for space in _OF_TIR
        for home in (space, f"{space}.op")
    ),
    *(
        CallForm(
            function=f"{home}.Evaluate",
            parameters=("value", "span"),
            code="(lambda one: one if isinstance(one, tvm.tirx.Stmt) else tvm.tirx.Evaluate(one))({value})",
            package="tvm",
            neutral=_ANY_SPAN,
            beside=re.compile(r"\bret\("),
            shown="value if it is a Return, else tvm.tirx.Evaluate(value)",
        )
        for space in _OF_TIR
        for home in (space, f"{space}.stmt")
    ),
)
"""``Evaluate(ret(x))`` is ``Return(x)`` since 0.26."""
_SCRIPTS = tuple(f"tvm.script.{way}{space}" for way in ("", "parser.") for space in ("tir", "tirx"))
_RETURNS_IN_SCRIPTS = (
    *(
        CallForm(
            function=f"{home}.ret",
            parameters=("val", "span"),
            code="{home}.Return({val})",
            package="",
            neutral=_ANY_SPAN,
        )
        for home in _SCRIPTS
    ),
    *(
        CallForm(
            function=f"{home}.evaluate",
            parameters=("value",),
            code="{value}",
            package="",
            around=frozenset({f"{home}.ret"}),
        )
        for home in _SCRIPTS
    ),
)
_ALLOCATIONS = tuple(
    CallForm(
        function=f"{home}.allocate",
        parameters=("extents", "dtype", "scope", "condition", "annotations"),
        code="{home}.alloc_buffer({extents}, {dtype}, scope={scope}).data",
        package="",
        defaults={"scope": '"global"'},
        neutral={"condition": _NOTHING | {"True", "T.bool(True)"}, "annotations": _NOTHING},
    )
    for home in ("tvm.script.tir", "tvm.script.parser.tir")
)
"""An allocation made a pointer. Since ``tirx``, it makes a buffer."""
_LETS_IN_SCRIPTS = tuple(
    form
    for home in ("tvm.script.tir", "tvm.script.parser.tir")
    for form in (
        CallForm(
            function=f"{home}.LetStmt",
            parameters=("value", "type_annotation", "var"),
            code="{home}.Bind({value}, {type_annotation}, var={var})",
            package="",
            defaults={"type_annotation": "None", "var": "None"},
        ),
        CallForm(function=f"{home}.let", parameters=("v", "value"), code="{home}.Bind({value}, var={v})", package=""),
    )
)
"""A binding was entered by ``with``, or its variable was declared first."""
_FLAT_CONTEXTS = frozenset(
    f"{home}.{name}"
    for home in ("tvm.script.tir", "tvm.script.parser.tir")
    for name in ("LetStmt", "let", "allocate", "decl_buffer")
)
_CALLS = tuple(
    CallForm(
        function=f"{home}.Call",
        parameters=("dtype", "op", "args", "attrs", "span"),
        code="tvm.tirx.call_intrin({dtype}, {op}, *{args})",
        package="tvm",
        neutral={**_ANY_SPAN, "attrs": _NOTHING},
    )
    for space in _OF_TIR
    for home in (space, f"{space}.expr")
)
"""Since 0.26, the type is after the operands. In every release, ``call_intrin`` takes it first."""
_ARITHMETIC = tuple(
    CallForm(
        function=f"{home}.{name}",
        parameters=("lhs", "rhs", "span"),
        code=f"({{lhs}} {sign} {{rhs}})",
        package="",
        neutral=_ANY_SPAN,
    )
    for home in (*_OF_TIR, "tvm.te")
    for name, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))
)
_FUNCTIONS = tuple(
    CallForm(
        function=f"{home}.PrimFunc",
        parameters=("params", "body", "ret_type", "buffer_map", "attrs", "span"),
        code="(lambda params, body, ret_type, buffers, attrs: tvm.tirx.PrimFunc([next((buffer for var, buffer in"
        " (buffers or {{}}).items() if var.same_as(one)), one) for one in params], body, ret_type, attrs))"
        "({params}, {body}, {ret_type}, {buffer_map}, {attrs})",
        package="tvm",
        defaults={"ret_type": "None", "buffer_map": "None", "attrs": "None"},
        neutral=_ANY_SPAN,
        still=(3, frozenset({"params", "body", "ret_type", "attrs", "span"})),
        shown="tvm.tirx.PrimFunc(params with the buffers of buffer_map, body, ret_type, attrs)",
    )
    for space in _OF_TIR
    for home in (space, f"{space}.function")
)
"""Since 0.26, a buffer is itself a parameter."""


def _read_either(old: str, new: str) -> str:
    return f"(lambda one: one.{old} if hasattr(one, '{old}') else {new})({{value}})"


_LOST = {
    "dtype": _read_either("dtype", "one.ty.dtype"),
    "shape": _read_either("shape", "one.ty.shape"),
    "name_hint": _read_either("name_hint", "one.name"),
    "checked_type": _read_either("checked_type", "one.ty"),
    "buffer_map": _read_either("buffer_map", "{{one: one for one in one.params}}"),
    "device_type": _read_either("device_type", "one.dlpack_device_type()"),
    "device_id": _read_either("device_id", "one.index"),
    "type_key": _read_either("type_key", "one.kind"),
}
"""Since 0.26, types of expressions and buffers are types of variables."""
_LOST_MESSAGE = re.compile(r"has no (?:attribute|function) '(\w{1,100})'|(\w{1,100}) is only available on a Var")

_RELAY = (Version("0.7.0"), Version("0.20.0"))
"""Releases with the Relay of `IRModule`, and the first without Relay."""
_RELAY_PASSES = {
    "infer_type": "InferType",
    "simplify_inference": "SimplifyInference",
    "canonicalize_ops": "CanonicalizeOps",
    "dead_code_elimination": "DeadCodeElimination",
    "fold_constant": "FoldConstant",
    "forward_fold_scale_axis": "ForwardFoldScaleAxis",
    "backward_fold_scale_axis": "BackwardFoldScaleAxis",
    "to_a_normal_form": "ToANormalForm",
    "to_graph_normal_form": "ToGraphNormalForm",
}
"""Function of ``relay.ir_pass``, until 0.6 → the pass on modules. Both take an expression or a function."""
_OF_RELAY = (
    *(
        CallForm(
            function=f"tvm.relay.ir_pass.{old}",
            parameters=("expr", "mod"),
            code=f"(lambda one: (lambda done: done if isinstance(one, tvm.relay.Function) else done.body)"
            f"(tvm.relay.transform.{new}()(tvm.IRModule.from_expr(one))['main']))({{expr}})",
            package="tvm",
            neutral={"mod": _NOTHING},
            shown=f"the body of tvm.relay.transform.{new}()(tvm.IRModule.from_expr(expr))",
        )
        for old, new in _RELAY_PASSES.items()
    ),
    CallForm(
        function="tvm.relay.create_executor",
        parameters=("kind", "mod", "ctx", "target"),
        code="tvm.relay.create_executor(**dict(kind={kind}, mod={mod}, device={ctx}, target={target}))",
        package="tvm",
        defaults={"kind": '"debug"', "mod": "None", "ctx": "None", "target": '"llvm"'},
        still=(4, frozenset({"kind", "mod", "device", "target", "params"})),
        shown="tvm.relay.create_executor(kind, mod, device=ctx, target=target)",
    ),
    CallForm(
        function="tvm.testing.assert_allclose",
        parameters=("actual", "desired", "rtol", "atol"),
        code="__import__('tvm.testing').testing.assert_allclose({actual}, {desired}, {rtol}, {atol})",
        package="",
        defaults={"rtol": "1e-07", "atol": "1e-07"},
        shown="tvm.testing.assert_allclose(actual, desired, rtol, atol), imported",
    ),
)
"""Functions on expressions became passes on modules. A context became a device. ``tvm.testing`` must be imported."""

_ON_BODY = "tvm.tir.transform.{new}()(tvm.IRModule.from_expr(tvm.tir.PrimFunc([], one)))['main'].body"
_OF_STATEMENTS = (
    *(
        CallForm(
            function=f"tvm.ir_pass.{old}",
            parameters=("stmt",),
            code=f"(lambda one: {_ON_BODY.format(new='Simplify')} if isinstance(one, tvm.tir.Stmt)"
            f" else tvm.arith.Analyzer().{new}(one))({{stmt}})",
            package="tvm",
            shown=f"tvm.tir.transform.Simplify() on a statement, tvm.arith.Analyzer().{new} on an expression",
        )
        for old, new in (("Simplify", "simplify"), ("CanonicalSimplify", "canonical_simplify"))
    ),
    *(
        CallForm(
            function=f"tvm.ir_pass.{name}",
            parameters=("stmt", *neutral),
            code=f"(lambda one: {_ON_BODY.format(new=name)})({{stmt}})",
            package="tvm",
            neutral=neutral,
            shown=f"tvm.tir.transform.{name}() on a function with the statement",
        )
        for name, neutral in (
            ("LoopPartition", {"split_const_loop": frozenset({"False"})}),
            ("VectorizeLoop", {"enable_vectorize": frozenset({"True"})}),
            ("InjectVirtualThread", {}),
            ("StorageRewrite", {}),
            ("RemoveNoOp", {}),
        )
    ),
    CallForm(
        function="tvm.build_config",
        parameters=("add_lower_pass",),
        code="tvm.transform.PassContext(config={{'tir.add_lower_pass': [(phase, tvm.tir.transform.prim_func_pass("
        "lambda func, mod, ctx, one=one: func.with_body(one(func.body)), opt_level=0)) for phase, one in"
        " {add_lower_pass}]}})",
        package="tvm",
        shown="tvm.transform.PassContext(config={'tir.add_lower_pass': passes on the bodies of functions})",
    ),
)
"""Passes took statements until 0.6, and take modules since then."""

_SYM_SINCE = Version("0.27.0")
"""``tvm.arith`` became ``tvm.sym``."""


def _list_simplifications(release: Version) -> tuple[CallForm, ...]:
    """Return the forms of ``ir_pass.Simplify`` for releases without schedules, which only have expressions."""
    home = "tvm.sym" if release >= _SYM_SINCE else "tvm.arith"
    return tuple(
        CallForm(
            function=f"tvm.ir_pass.{old}",
            parameters=("expr",),
            code=f"{home}.Analyzer().{new}({{expr}})",
            package="tvm",
        )
        for old, new in (("Simplify", "simplify"), ("CanonicalSimplify", "canonical_simplify"))
    )


_NO_SCHEDULES_SINCE = Version("0.20.0")
"""Tensor expressions are lowered from a function, without ``te.create_schedule``."""
_LOWERING = """
    s_tir.LowerInitBlock s_tir.PlanAndUpdateBufferAllocationLocation s_tir.ConvertBlocksToOpaque
    s_tir.CompactBufferAllocation s_tir.LowerMatchBuffer tirx.StmtSimplify s_tir.LowerOpaqueBlock
    tirx.FlattenBuffer tirx.NarrowDataType(32) tirx.StmtSimplify s_tir.LoopPartition tirx.VectorizeLoop
    s_tir.InjectVirtualThread s_tir.InjectDoubleBuffer tirx.StorageRewrite tirx.UnrollLoop
    s_tir.RenormalizeSplitPattern tirx.StmtSimplify tirx.RemoveNoOp s_tir.RewriteUnsafeSelect
    s_tir.HoistIfThenElse tirx.CommonSubexprElim
"""
"""The passes that ``tvm.lower`` applied, by their names since ``tirx``."""
_OLD_PASSES = {"StmtSimplify": "Simplify", "CommonSubexprElim": "CommonSubexprElimTIR"}


def _list_build_forms(*, tirx: bool) -> tuple[CallForm, ...]:
    """Return the forms in which a release lowers and builds functions and modules."""
    passes = ", ".join(map(_spell_pass if tirx else _spell_old_pass, _LOWERING.split()))
    named = (
        "one.with_attr('global_symbol', name) if isinstance(one, tvm.tir{x}.PrimFunc)"
        " and (not one.attrs or 'global_symbol' not in one.attrs) else one"
    ).format(x="x" if tirx else "")
    return (
        CallForm(
            function="tvm.lower",
            parameters=("inp", "args", "name", "binds", "simple_mode"),
            code=f"tvm.transform.Sequential([{passes}])((lambda one, name: one if isinstance(one, tvm.IRModule) else"
            ' tvm.IRModule({{name: one.with_attr("global_symbol", name)}}))({inp}, {name}))',
            package="tvm",
            defaults={"name": '"main"'},
            neutral={"args": _NOTHING, "binds": _NOTHING, "simple_mode": frozenset({"True", "False"})},
            shown="the passes of tvm.lower on inp",
        ),
        CallForm(
            function="tvm.build",
            parameters=("inputs", "args", "target", "target_host", "name", "runtime", "binds"),
            code=f"tvm.build(*(lambda one, target, name: ({named}, target))({{inputs}}, {{target}}, {{name}}))",
            package="tvm",
            defaults={"target": "None", "name": '"main"'},
            neutral={
                "args": None,
                "target_host": _NOTHING | {'"llvm"', "'llvm'"},
                "runtime": _NOTHING,
                "binds": _NOTHING,
            },
            still=(2, frozenset({"mod", "target", "pipeline"})),
            shown="tvm.build(inputs, target)",
        ),
        *(
            CallForm(
                function=function,
                parameters=("mod", "target", "pipeline"),
                code=f'{function}(*(lambda one, target, name="main": ({named}, target))({{mod}}, {{target}}))',
                package="tvm",
                defaults={"target": "None"},
                neutral={"pipeline": _NOTHING},
                beside=re.compile(r"\bPrimFunc\("),
                shown=f"{function}(mod with a global_symbol, target)",
            )
            for function in ("tvm.build", "tvm.compile")
        ),
    )


def _make_schedule_form(*, tirx: bool) -> CarrierForm:
    """Return the form in which a release lowers and builds tensor expressions without their own schedule."""
    module = 'tvm.IRModule({{{name}: tvm.te.create_prim_func({args}).with_attr("global_symbol", {name})}})'
    passes = ", ".join(map(_spell_pass if tirx else _spell_old_pass, _LOWERING.split()))
    shown = "tvm.te.create_prim_func(args)"
    defaults = {"name": '"main"', "target": "None"}
    return CarrierForm(
        makers=frozenset({"tvm.te.create_schedule", "tvm.create_schedule"}),
        part="op",
        calls=(
            CallForm(
                function="tvm.lower",
                parameters=("schedule", "args", "name", "binds", "simple_mode"),
                code=f"tvm.transform.Sequential([{passes}])({module})",
                neutral={"binds": _NOTHING, "simple_mode": frozenset({"True", "False"})},
                takers=frozenset({"tvm.build"}),
                shown=f"the passes of tvm.lower on {shown}",
                package="tvm",
                defaults=defaults,
            ),
            CallForm(
                function="tvm.build",
                parameters=("schedule", "args", "target", "target_host", "name", "binds"),
                code=f"tvm.build({module}, {{target}})",
                neutral={"binds": _NOTHING, "target_host": _NOTHING | {'"llvm"', "'llvm'"}},
                shown=f"tvm.build({shown}, target)",
                package="tvm",
                defaults=defaults,
            ),
        ),
    )


def _spell_pass(text: str) -> str:
    home, _, name = text.partition(".")
    return f"tvm.{home}.transform.{name}" + ("" if name.endswith(")") else "()")


def _spell_old_pass(text: str) -> str:
    name = text.partition(".")[2]
    return _spell_pass(f"tir.{_OLD_PASSES.get(name, name)}")


def find_idioms(version: str) -> Idioms:
    """Return the differences between a release and others that are not names."""
    release = Version(version)
    tirx = release >= _TIRX_SINCE
    return Idioms(
        name_strings=_NAME_STRINGS,
        plain_constants=frozenset({"bool"}) if tirx else frozenset(),  # "tir.noalias": T.bool(True)
        switched_on=(_SCHEDULABLE,) if tirx else (),
        switched_off=() if tirx else (_SCHEDULABLE,),
        bindings=(_ANNOTATED_LET,) if tirx else (),
        declaring=_DECLARED_BUFFERS if tirx else (),
        subscripts=_BRACKETED,
        call_forms=_list_call_forms(release),
        flat_contexts=_FLAT_CONTEXTS if tirx else frozenset(),
        carriers=(_make_schedule_form(tirx=tirx),) if release >= _NO_SCHEDULES_SINCE else (),
        lost=_LOST if release >= _EXPRESSIONS_SINCE else {},
        lost_message=_LOST_MESSAGE,
        spell=None if release >= _ONE_COMPILE_SINCE else _spell_compile,
        port_string=_port_string if tirx else None,
        port_variable=_port_device_variable if release >= _NO_TARGET_DEVICES_SINCE else None,
        find_embedded=_find_script,
    )


def _list_call_forms(release: Version) -> tuple[CallForm, ...]:
    tirx = release >= _TIRX_SINCE
    return (
        *((*_LET_STATEMENTS, *_ALLOCATIONS, *_LETS_IN_SCRIPTS) if tirx else ()),
        *(
            (*_RETURNS, *_RETURNS_IN_SCRIPTS, *_CALLS, *_ARITHMETIC, *_FUNCTIONS)
            if release >= _EXPRESSIONS_SINCE
            else ()
        ),
        *(_list_simplifications(release) if release >= _RELAY[1] else ()),
        *((*_OF_RELAY, *_OF_STATEMENTS) if _RELAY[0] <= release < _RELAY[1] else ()),
        *(_list_build_forms(tirx=tirx) if release >= _NO_SCHEDULES_SINCE else ()),
    )


_SCRIPT = re.compile(
    r"^[ \t]*@(?:[TRI]\.(?:prim_func|function|ir_module)|tvm\.script\.ir_module|tir\.prim_func)\b", re.M
)
_SCRIPT_NAMES = {
    "I": "from tvm.script import ir as I",
    "T": "from tvm.script import tir as T",
    "R": "from tvm.script import relax as R",
}
"""Names that ``tvm.script.from_source`` binds for a text without imports."""


def _find_script(text: str) -> Embedded | None:
    """Return the language of a string that contains TVMScript."""
    if not _SCRIPT.search(text):
        return None
    needed = (line for name, line in _SCRIPT_NAMES.items() if not re.search(rf"^\s*from .* as {name}$", text, re.M))
    return Embedded(language="python", prelude="".join(f"{line}\n" for line in needed))


def _spell_compile(name: str, code: str) -> str:
    if name != _COMPILE:
        return name
    return "tvm.relax.build" if "VirtualMachine" in code else "tvm.build"


_NO_TARGET_DEVICES_SINCE = Version("0.26.0")
"""``tvm.device`` accepts no target name for the processor, such as ``llvm``."""
_DEVICE_MAKERS = {"tvm.device", "tvm.context", "tvm.nd.context", "tvm.runtime.device", "tvm.nd.device"}


def _port_string(use: StringUse, text: str) -> Expression | None:
    if _makes_device(use) and re.match(r"llvm\b", text):
        return Expression(code='"cpu"', notation=True)
    return _port_target(use, text)


def _port_device_variable(use: Argument, name: str) -> Expression | None:
    if not _makes_device(use):
        return None
    return Expression(code=f'"cpu" if "llvm" in str({name})[:16] else {name}', notation=True)


def _makes_device(use: StringUse) -> bool:
    return isinstance(use, Argument) and use.function in _DEVICE_MAKERS and use.position == 0 and not use.keyword


def _port_target(use: StringUse, text: str) -> Expression | None:
    """Port a target written like a command line: to the equivalent dictionary, or to a Target made from it."""
    if not _is_target(text):
        return None
    target = repr(_make_dictionary(text))
    match use:
        case Argument(function=function) if function == _TARGET:
            return Expression(code=target)
        case Argument():
            is_wanted = _is_target_argument(use)
        case Assigned(names=names):
            is_wanted = any("target" in name.lower() for name in names)
        case _ as never:
            assert_never(never)
    return Expression(code=f"{_TARGET}({target})", package="tvm") if is_wanted else None


def _is_target_argument(use: Argument) -> bool:
    if not use.function.startswith("tvm."):
        return False
    second = use.position == 1 and not use.keyword
    return use.keyword in {"target", "host"} or (second and use.function in _TARGET_SECOND)


# ------------------------------------------------------------------------ targets written like a command line

_TARGET_TEXT = re.compile(
    r"(?P<kind>[a-z][a-z0-9_]{1,20})(?P<options>(?:\s+--?[a-z][\w-]*(?:[= ][^\s-][^\s]*)?)+)\s*"
)
_OPTION = re.compile(r"--?(?P<name>[a-z][\w-]*)(?:[= ](?P<value>[^\s-][^\s]*))?")
_TARGET_KINDS = {"c", "cuda", "hexagon", "llvm", "metal", "nvptx", "opencl", "rocm", "vulkan", "webgpu"}
_LIST_OPTIONS = {"keys", "libs", "mattr", "tag_list"}

_Value = str | int | bool | list[str]


def _is_target(text: str) -> bool:
    """True if a text is a target like a command line: a kind, then options."""
    found = _TARGET_TEXT.fullmatch(text)
    return found is not None and found["kind"] in _TARGET_KINDS


def _make_dictionary(text: str) -> dict[str, _Value]:
    """Return the dictionary that is equivalent to a target such as ``llvm -mcpu=x -num-cores 4``."""
    found = _TARGET_TEXT.fullmatch(text)
    assert found is not None
    target: dict[str, _Value] = {"kind": found["kind"]}
    for option in _OPTION.finditer(found["options"]):
        target[option["name"]] = _read_option(option["name"], option["value"])
    return target


def _read_option(name: str, value: str | None) -> _Value:
    if value is None:
        return True
    if name in _LIST_OPTIONS:
        return value.split(",")
    return int(value) if value.isdecimal() else value


REWRITING = Rewriting(idioms=find_idioms, retarget=retarget_testcase)
