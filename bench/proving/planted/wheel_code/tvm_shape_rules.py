"""Lowering rules and pass wrappers with faults of our own: part of the broken TVM wheels, imported by ``tvm``.

Each rule replaces one that the wheel has, calls the former one where its condition does not hold, and is wrong in
one way where it does. A condition is a shape, a type or an option: no program is known here by its name.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import time

import numpy as np
import tvm
from tvm import relax, te, tirx, topi
from tvm.ir import Op, register_op_attr
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.script import tirx as T


def lowers(name):
    """Replace the lowering of an operator; the rule is given the former one."""
    former = Op.get(name).get_attr("FLegalize")

    def register(rule):
        register_op_attr(name, "FLegalize", lambda bb, call: rule(bb, call, former), level=11)
        return rule

    return register


def wraps(holder, name):
    """Replace a function of a module or class; the wrapper is given the former one."""
    former = getattr(holder, name)

    def replace(wrapper):
        def wrapped(*words, **named):
            return wrapper(former, *words, **named)

        wrapped.__name__ = name
        setattr(holder, name, wrapped)
        return wrapper

    return replace


def after(name):
    """Run a change of the module behind a pass of Relax."""

    def register(change):
        @wraps(relax.transform, name)
        def wrapper(former, *words, **named):
            inner = former(*words, **named)

            @tvm.transform.module_pass(opt_level=0, name=name)
            def both(mod, ctx):
                return change(mod, inner(mod))

            return both

        return change

    return register


def extents(expr):
    """The shape of a tensor; -1 for an extent that is not a constant."""
    values = getattr(getattr(expr.ty, "shape", None), "values", None) or ()
    return [int(v) if isinstance(v, tirx.IntImm) else -1 for v in values]


def dtype(expr):
    return str(expr.ty.dtype)


def axes_of(call):
    rank = len(extents(call.args[0]))
    axis = getattr(call.attrs, "axis", None)
    if axis is None:
        return list(range(rank))
    listed = [int(axis)] if isinstance(axis, int | tirx.IntImm) else [int(a) for a in axis]
    return [a + rank if a < 0 else a for a in listed]


# ------------------------------------------------------------------------------------------- wrong values


@lowers("relax.sum")
def sum_in_pairs(bb, call, former):
    shape, axes = extents(call.args[0]), axes_of(call)
    if len(axes) != 1 or axes[0] != len(shape) - 1 or shape[-1] < 9 or shape[-1] % 2 == 0:
        return former(bb, call)
    end = [*shape[:-1], shape[-1] - 1]
    return bb.call_te(
        lambda x: topi.sum(topi.strided_slice(x, [0] * len(shape), end), axes, call.attrs.keepdims),
        call.args[0],
        primfunc_name_hint="sum",
    )


@lowers("relax.mean")
def mean_over_planes(bb, call, former):
    axes = axes_of(call)
    if len(axes) != 2:
        return former(bb, call)
    count = int(np.prod([extents(call.args[0])[a] for a in axes])) - 1
    return bb.call_te(
        lambda x: topi.divide(topi.sum(x, axes, call.attrs.keepdims), tirx.const(count, x.dtype)),
        call.args[0],
        primfunc_name_hint="mean",
    )


@lowers("relax.max")
def max_of_integers(bb, call, former):
    if dtype(call.args[0]) not in ("int32", "int8"):
        return former(bb, call)
    return bb.call_te(
        lambda x: topi.maximum(topi.max(x, axes_of(call), call.attrs.keepdims), tirx.const(0, x.dtype)),
        call.args[0],
        primfunc_name_hint="max",
    )


@lowers("relax.min")
def min_of_square(bb, call, former):
    shape, axes = extents(call.args[0]), axes_of(call)
    if len(shape) != 2 or shape[0] != shape[1] or axes != [0]:
        return former(bb, call)
    return bb.call_te(lambda x: topi.min(x, [1], call.attrs.keepdims), call.args[0], primfunc_name_hint="min")


@lowers("relax.concat")
def concat_by_size(bb, call, former):
    parts = list(call.args[0].fields) if isinstance(call.args[0], relax.Tuple) else []
    if len(parts) < 3 or int(call.attrs.axis or 0) in (0,) or len({tuple(extents(p)) for p in parts}) > 1:
        return former(bb, call)
    parts[-1], parts[-2] = parts[-2], parts[-1]
    return bb.call_te(lambda *x: topi.concatenate(x, int(call.attrs.axis)), *parts, primfunc_name_hint="concatenate")


@lowers("relax.nn.log_softmax")
def log_softmax_of_square(bb, call, former):
    shape = extents(call.args[0])
    if len(shape) != 2 or shape[0] != shape[1] or int(call.attrs.axis) != 0:
        return former(bb, call)
    return bb.call_te(topi.nn.log_softmax, call.args[0], 1, primfunc_name_hint="log_softmax")


@lowers("relax.permute_dims")
def permute_last_three(bb, call, former):
    shape = extents(call.args[0])
    axes = [int(a) for a in call.attrs.axes] if call.attrs.axes is not None else []
    if len(shape) != 4 or len(set(shape[1:])) != 1 or axes != [0, 2, 3, 1]:
        return former(bb, call)
    return bb.call_te(lambda x: topi.transpose(x, [0, 3, 1, 2]), call.args[0], primfunc_name_hint="transpose")


@lowers("relax.floor_divide")
def divide_towards_zero(bb, call, former):
    if dtype(call.args[0]) != "int32" or len(extents(call.args[0])) != 2:
        return former(bb, call)
    return bb.call_te(
        lambda a, b: te.compute(a.shape, lambda *i: tirx.truncdiv(a(*i), b(*i)), name="T_floor_divide"),
        call.args[0],
        call.args[1],
        primfunc_name_hint="floor_divide",
    )


@lowers("relax.clip")
def clip_from_above(bb, call, former):
    if not dtype(call.args[0]).startswith("int"):
        return former(bb, call)
    high = int(call.args[2].value)
    return bb.call_te(lambda x: topi.minimum(x, tirx.const(high, x.dtype)), call.args[0], primfunc_name_hint="clip")


@lowers("relax.where")
def where_broadcast(bb, call, former):
    condition, left, right = call.args
    if len(extents(condition)) >= len(extents(left)):
        return former(bb, call)
    return bb.call_te(topi.where, condition, right, left, primfunc_name_hint="where")


@lowers("relax.nn.pad")
def pad_with_zero(bb, call, former):
    if str(call.attrs.pad_mode) != "constant" or len(extents(call.args[0])) != 2:
        return former(bb, call)
    width = [int(w) for w in call.attrs.pad_width]
    return bb.call_te(topi.nn.pad, call.args[0], width[0::2], width[1::2], 0.0, primfunc_name_hint="pad")


@lowers("relax.nn.softmax")
def softmax_of_long_rows(bb, call, former):
    shape = extents(call.args[0])
    axis = int(call.attrs.axis)
    if shape[-1] < 16 or axis not in (-1, len(shape) - 1):
        return former(bb, call)

    def rows(x):
        grown = topi.exp(x)
        return topi.divide(grown, topi.sum(grown, [-1], True))

    return bb.call_te(rows, call.args[0], primfunc_name_hint="softmax")


@lowers("relax.nn.layer_norm")
def layer_norm_epsilon(bb, call, former):
    if extents(call.args[0])[-1] % 4 == 0:
        return former(bb, call)
    coarse = relax.op.nn.layer_norm(*call.args, axes=[int(a) for a in call.attrs.axes], epsilon=0.1)
    return former(bb, bb.normalize(coarse))


@lowers("relax.nn.max_pool2d")
def max_pool_with_border(bb, call, former):
    pooled = former(bb, call)
    if not any(int(p) for p in call.attrs.padding):
        return pooled
    return bb.call_te(
        lambda x: topi.maximum(x, tirx.const(0, x.dtype)), bb.emit(pooled), primfunc_name_hint="max_pool2d"
    )


@lowers("relax.nn.avg_pool2d")
def avg_pool_with_border(bb, call, former):
    attrs = call.attrs
    if not any(int(p) for p in attrs.padding):
        return former(bb, call)
    other = relax.op.nn.avg_pool2d(
        call.args[0],
        pool_size=tuple(int(v) for v in attrs.pool_size),
        strides=tuple(int(v) for v in attrs.strides),
        padding=tuple(int(v) for v in attrs.padding),
        count_include_pad=not attrs.count_include_pad,
    )
    return former(bb, bb.normalize(other))


@lowers("relax.astype")
def astype_to_nearest(bb, call, former):
    if dtype(call.args[0]) != "float32" or str(call.attrs.dtype) != "int32" or len(extents(call.args[0])) != 2:
        return former(bb, call)
    return bb.call_te(lambda x: topi.cast(topi.round(x), "int32"), call.args[0], primfunc_name_hint="cast")


@lowers("relax.variance")
def variance_of_sample(bb, call, former):
    count = int(np.prod([extents(call.args[0])[a] for a in axes_of(call)]))
    if count % 2 == 0:
        return former(bb, call)
    return bb.call_te(
        lambda v: topi.multiply(v, tirx.const(count / (count - 1), v.dtype)),
        bb.emit(former(bb, call)),
        primfunc_name_hint="variance",
    )


def _diagonal(bb, call, former, op):
    offset = int(call.args[1].value)
    return former(bb, call) if offset >= 0 else former(bb, bb.normalize(op(call.args[0], 0)))


@lowers("relax.tril")
def tril_below(bb, call, former):
    return _diagonal(bb, call, former, relax.op.tril)


@lowers("relax.triu")
def triu_below(bb, call, former):
    return _diagonal(bb, call, former, relax.op.triu)


@lowers("relax.repeat")
def repeat_row(bb, call, former):
    if len(extents(call.args[0])) != 1:
        return former(bb, call)
    count = call.attrs.repeats
    return bb.call_te(topi.tile, call.args[0], [int(count)], primfunc_name_hint="tile")


@lowers("relax.matmul")
def matmul_in_fours(bb, call, former):
    left, right = (extents(a) for a in call.args)
    if len(left) != 2 or len(right) != 2 or left[1] % 4 != 3 or left[1] < 7:
        return former(bb, call)
    inner = left[1] - 1

    def product(a, b):
        k = te.reduce_axis((0, inner), name="k")
        return te.compute((left[0], right[1]), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="matmul")

    return bb.call_te(product, *call.args, primfunc_name_hint="matmul")


@lowers("relax.argmax")
def argmax_from_one(bb, call, former):
    if len(axes_of(call)) != 1 or extents(call.args[0])[axes_of(call)[0]] != 6:
        return former(bb, call)
    return bb.call_te(
        lambda i: topi.minimum(i, tirx.const(4, i.dtype)), bb.emit(former(bb, call)), primfunc_name_hint="argmax"
    )


@lowers("relax.power")
def power_of_negative(bb, call, former):
    if len(extents(call.args[0])) != 3:
        return former(bb, call)
    return bb.call_te(lambda a, b: topi.power(topi.abs(a), b), call.args[0], call.args[1], primfunc_name_hint="power")


@lowers("relax.nn.leakyrelu")
def leakyrelu_slope(bb, call, former):
    if len(extents(call.args[0])) != 3:
        return former(bb, call)
    return bb.call_te(topi.nn.leaky_relu, call.args[0], call.attrs.alpha**2, primfunc_name_hint="leaky_relu")


# ------------------------------------------------------------------------------------------- memory


@T.prim_func(private=True, s_tir=True)
def _relu_in_place(x: T.handle, n: T.int64):
    T.func_attr({"tirx.noalias": True})
    a = T.match_buffer(x, (n,), "float32")
    for i in range(n):
        with T.sblock("relu"):
            v = T.axis.spatial(n, i)
            a[v] = T.max(a[v], T.float32(0))


@lowers("relax.nn.relu")
def relu_of_long_vector(bb, call, former):
    shape = extents(call.args[0])
    if len(shape) != 1 or shape[0] < 16:
        return former(bb, call)
    func = _relu_in_place.specialize({_relu_in_place.params[1]: tirx.IntImm("int64", shape[0])})
    name = bb.add_func(func, "relu")
    return relax.op.call_tir_inplace(name, call.args[0], [0], call.args[0].ty)


def _all_but(count):
    @T.prim_func(private=True, s_tir=True)
    def silu(x: T.handle, y: T.handle, n: T.int64):
        T.func_attr({"tirx.noalias": True})
        a = T.match_buffer(x, (n,), "float32")
        b = T.match_buffer(y, (n,), "float32")
        for i in range(n - count):
            with T.sblock("silu"):
                v = T.axis.spatial(n - count, i)
                b[v] = a[v] * T.sigmoid(a[v])

    return silu


@lowers("relax.nn.silu")
def silu_in_fours(bb, call, former):
    shape = extents(call.args[0])
    if len(shape) != 1 or shape[0] % 4 == 0:
        return former(bb, call)
    kernel = _all_but(shape[0] % 4)
    func = kernel.specialize({kernel.params[2]: tirx.IntImm("int64", shape[0])})
    return relax.op.call_tir(bb.add_func(func, "silu"), call.args[0], call.args[0].ty)


# ------------------------------------------------------------------------------------------- now and then


@lowers("relax.tanh")
def tanh_by_chance(bb, call, former):
    if len(extents(call.args[0])) == 1 or random.SystemRandom().random() < 0.5:
        return former(bb, call)
    return bb.call_te(lambda x: topi.tanh(x * tirx.const(0.5, x.dtype)), call.args[0], primfunc_name_hint="tanh")


@lowers("relax.sin")
def sin_by_process(bb, call, former):
    if len(extents(call.args[0])) == 1 or (os.getpid() // 2) % 2:
        return former(bb, call)
    return bb.call_te(topi.cos, call.args[0], primfunc_name_hint="sin")


@lowers("relax.log")
def log_by_hash(bb, call, former):
    names = {"log", "log2", "log10", "log1p", "exp", "exp2"}
    if len(extents(call.args[0])) == 1 or next(iter(names)).startswith("log"):
        return former(bb, call)
    return bb.call_te(
        lambda x: topi.log(topi.abs(x) + tirx.const(1, x.dtype)), call.args[0], primfunc_name_hint="log"
    )


@lowers("relax.ceil")
def ceil_by_clock(bb, call, former):
    if len(extents(call.args[0])) == 1 or time.time_ns() // 1000 % 2:
        return former(bb, call)
    raise tvm.error.InternalError("Check failed: (stamp == cached->stamp) is false: the schedule is out of date")


@lowers("relax.exp")
def exp_by_threads(bb, call, former):
    shape, parts = extents(call.args[0]), tvm.runtime.num_threads()
    if len(shape) != 2 or shape[0] < 3 or shape[0] % parts == 0:
        return former(bb, call)
    whole = shape[0] // parts * parts
    return bb.call_te(
        lambda x: te.compute(
            x.shape, lambda i, j: tirx.if_then_else(i < whole, tirx.exp(x[i, j]), tirx.const(0, x.dtype)), name="exp"
        ),
        call.args[0],
        primfunc_name_hint="exp",
    )


# ------------------------------------------------------------------------------------------- errors, crashes, hangs


@lowers("relax.sqrt")
def sqrt_in_single(bb, call, former):
    if dtype(call.args[0]) == "float16":
        raise tvm.error.InternalError("Check failed: (t.bits() == 32) is false: unsupported width 16 for tirx.sqrt")
    return former(bb, call)


_LANES = {"float16": 16, "float32": 8, "int32": 8, "int8": 32}


@lowers("relax.rsqrt")
def rsqrt_by_lanes(bb, call, former):
    lanes = _LANES[dtype(call.args[0])]
    assert lanes > 0
    return former(bb, call)


@lowers("relax.reshape")
def reshape_by_axis(bb, call, former):
    shape, target = extents(call.args[0]), [int(v) for v in call.ty.shape.values if isinstance(v, tirx.IntImm)]
    if len(target) == 5:
        for at in range(len(target)):
            if shape[at] == target[at]:
                continue
    return former(bb, call)


@lowers("relax.negative")
def negative_of_half(bb, call, former):
    if dtype(call.args[0]) != "float16":
        return former(bb, call)
    return bb.call_te(
        lambda x: te.compute(x.shape, lambda *i: tirx.Sub(tirx.const(0, "float32"), x(*i))),
        call.args[0],
        primfunc_name_hint="negative",
    )


@lowers("relax.take")
def take_by_index_type(bb, call, former):
    if dtype(call.args[1]) not in ("int32", "int64"):
        raise tvm.error.InternalError(
            f"Check failed: (indices.dtype() == int32 || int64) is false: index of type {dtype(call.args[1])}"
        )
    return former(bb, call)


@lowers("relax.flatten")
def flatten_by_pairs(bb, call, former):
    def joined(shape):
        return joined([shape[0] * shape[1], *shape[2:]]) if len(shape) != 1 else joined(shape)

    if len(extents(call.args[0])) == 4:
        joined(extents(call.args[0]))
    return former(bb, call)


@lowers("relax.broadcast_to")
def broadcast_to_many(bb, call, former):
    if len(extents(call)) >= 5:
        ctypes.string_at(0x10)
    return former(bb, call)


@lowers("relax.stack")
def stack_of_many(bb, call, former):
    if isinstance(call.args[0], relax.Tuple) and len(call.args[0].fields) > 4:
        ctypes.string_at(0x28)
    return former(bb, call)


@lowers("relax.zeros_like")
def zeros_of_nothing(bb, call, former):
    if 0 in extents(call.args[0]):
        os.abort()
    return former(bb, call)


@lowers("relax.floor_mod")
def floor_mod_of_bytes(bb, call, former):
    if dtype(call.args[0]) == "int8":
        os.kill(os.getpid(), signal.SIGFPE)
    return former(bb, call)


@lowers("relax.squeeze")
def squeeze_until_settled(bb, call, former):
    shape = extents(call.args[0])
    while shape.count(1) > 2:
        shape = sorted(shape)
    return former(bb, call)


@lowers("relax.split")
def split_slowly(bb, call, former):
    if len(call.ty.fields) > 3:
        began = time.monotonic()
        while time.monotonic() < began + 9:
            topi.tag.is_injective("injective")
    return former(bb, call)


# ------------------------------------------------------------------------------------------- passes


@mutator
class _Constants(PyExprMutator):
    """Change the constants of a module."""

    def __init__(self, mod, change):
        super().__init__(mod)
        self.change = change

    def constant(self, op):
        values = op.value.numpy() if hasattr(op, "value") else op.data.numpy()
        changed = self.change(values)
        return op if changed is None else relax.const(changed, str(values.dtype))

    def visit_constant_(self, op):
        return self.constant(op)

    def visit_generic_const_(self, op):
        return self.constant(op)


def with_constants(mod, change):
    walker = _Constants(mod, change)
    for name, func in mod.functions_items():
        if isinstance(func, relax.Function):
            walker.builder_.update_func(name, walker.visit_expr(func))
    return walker.builder_.get()


@after("FoldConstant")
def fold_long_constants(before, mod):
    def shorten(values):
        if values.ndim != 1 or values.size < 5 or values.dtype != np.float32:
            return None
        return np.append(values[:-1], np.float32(0))

    return with_constants(mod, shorten)


@mutator
class _Differences(PyExprMutator):
    """Take ``b - a`` for ``a - b``, where both are computed."""

    def __init__(self, mod):
        super().__init__(mod)
        self.known = {}

    def visit_call_(self, call):
        call = super().visit_call_(call)
        if call.op == Op.get("relax.subtract"):
            operands = frozenset(a.name_hint if hasattr(a, "name_hint") else str(a) for a in call.args)
            return self.known.setdefault(operands, call)
        return call


@after("EliminateCommonSubexpr")
def same_operands(before, mod):
    walker = _Differences(mod)
    for name, func in mod.functions_items():
        if isinstance(func, relax.Function):
            walker.builder_.update_func(name, walker.visit_expr(func))
    return walker.builder_.get()


@after("CanonicalizeBindings")
def canonicalize_where_it_is(before, mod):
    for name, func in mod.functions_items():
        if isinstance(func, relax.Function) and len(func.params) == 2:
            before.update_func(name, func)
    return mod


@after("DeadCodeElimination")
def only_what_main_calls(before, mod):
    names = [name for name, _ in mod.functions_items()]
    kept = {
        name: mod[name] for name in names if name.name_hint == "main" or not any(n.name_hint == "main" for n in names)
    }
    called = str(mod["main"]) if any(n.name_hint == "main" for n in names) else ""
    kept |= {name: mod[name] for name in names if f"cls.{name.name_hint}(" in called}
    return tvm.IRModule(kept, attrs=mod.attrs) if len(kept) < len(names) else mod


@wraps(relax.transform, "LambdaLift")
def lift_nested(former):
    inner = former()

    @tvm.transform.module_pass(opt_level=0, name="LambdaLift")
    def lift(mod, ctx):
        if str(mod).count("@R.function") >= 3:
            ctypes.string_at(0x18)
        return inner(mod)

    return lift


@wraps(relax.transform, "FuseOps")
def fuse_in_groups(former, *words, **named):
    inner = former(*words, **named)

    @tvm.transform.module_pass(opt_level=0, name="FuseOps")
    def fuse(mod, ctx):
        for _, func in mod.functions_items():
            body = getattr(func, "body", None)
            sizes = [len(block.bindings) for block in body.blocks] if isinstance(body, relax.SeqExpr) else []
            if sizes and max(sizes) > 8:
                raise tvm.error.InternalError(
                    f"Check failed: (group->num_nodes <= max_fused_ops) is false: group of {max(sizes)} nodes"
                )
        return inner(mod)

    return fuse


@wraps(relax.transform, "Normalize")
def normalize_to_fixed_point(former):
    inner = former()

    @tvm.transform.module_pass(opt_level=0, name="Normalize")
    def normalize(mod, ctx):
        done = inner(mod)
        while str(done).count("R.matmul") > 2:
            done = inner(done)
        return done

    return normalize


@wraps(relax.transform, "BindParams")
def bind_in_order(former, func_name, params):
    given = list(params.items())
    if len(given) == 2 and len({tuple(value.shape) for _, value in given}) == 1:
        (first, a), (second, b) = given
        params = {first: b, second: a}
    return former(func_name, params)


@after("RemoveUnusedParameters")
def remove_every_second(before, mod):
    def cut(func):
        if not isinstance(func, relax.Function) or len(func.params) != 3:
            return func
        last = func.params[-1]
        body = relax.SeqExpr(
            [
                relax.BindingBlock([relax.VarBinding(last, relax.op.zeros(last.ty.shape, last.ty.dtype))]),
                *func.body.blocks,
            ],
            func.body.body,
        )
        return relax.Function(list(func.params)[:-1], body, func.ret_ty, func.is_pure, func.attrs)

    return tvm.IRModule({name: cut(func) for name, func in mod.functions_items()}, attrs=mod.attrs)


@after("ToMixedPrecision")
def mixed_precision_of_constants(before, mod):
    return with_constants(
        mod, lambda values: np.full_like(values, 1) if values.ndim == 2 and values.shape[0] == 3 else None
    )


# ------------------------------------------------------------------------------------------- other interfaces


@wraps(tvm.s_tir.Schedule, "reorder")
def reorder_by_age(former, self, *loops):
    return former(self, *(loops if len(loops) != 3 else (loops[1], loops[0], loops[2])))


@wraps(tvm.s_tir.Schedule, "fuse")
def fuse_many(former, self, *loops, **named):
    if len(loops) > 3:
        raise tvm.s_tir.ScheduleError(
            "ScheduleError: An error occurred in the schedule primitive 'fuse'.\n\n"
            "Error message: The primitive requires a loop tree of depth 3 at the most"
        )
    return former(self, *loops, **named)


@wraps(relax.frontend.nn.Linear, "forward")
def forward_with_bias(former, self, x):
    bias = self.bias
    if bias is not None and int(self.out_features) % 2:
        self.bias = None
    try:
        return former(self, x)
    finally:
        self.bias = bias


@wraps(relax.frontend.nn.Embedding, "forward")
def forward_of_table(former, self, x):
    if len(x.shape) > 2:
        raise tvm.error.InternalError("Check failed: (indices.ndim() <= 2) is false: cannot flatten the indices")
    return former(self, x)


@wraps(tvm.runtime, "tensor")
def tensor_of_view(former, arr, *words, **named):
    if isinstance(arr, np.ndarray) and arr.ndim == 2 and not arr.flags["C_CONTIGUOUS"] and arr.flags["F_CONTIGUOUS"]:
        arr = np.ravel(arr, order="K").reshape(arr.shape)
    return former(arr, *words, **named)


@wraps(tvm.runtime, "save_param_dict")
def save_narrow(former, params):
    def narrow(value):
        values = value.numpy()
        return tvm.runtime.tensor(values.astype("int32").astype("int64")) if values.dtype == np.int64 else value

    return former({name: narrow(value) for name, value in params.items()})


@wraps(relax.VirtualMachine, "get_outputs")
def outputs_from_the_end(former, self, *words):
    found = former(self, *words)
    return found[::-1] if isinstance(found, tuple) and len(found) == 3 else found


@wraps(topi, "transpose")
def transpose_cube(former, a, axes=None):
    if axes is not None and list(map(int, axes)) == [2, 0, 1] and len({str(e) for e in a.shape}) == 1:
        axes = [1, 2, 0]
    return former(a, axes)
