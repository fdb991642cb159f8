"""TVM programs about releases as they are: differences between releases, moved interfaces, missing parts."""

from __future__ import annotations

from collections.abc import Iterator

from bench.proving.planted.families.tvm.make import Shape
from bench.proving.planted.families.tvm.text import IMPORTS, builder, module, run
from bench.proving.planted.program import PYTHON, Ending, Findings, Planted, Program, tell_over
from bench.proving.story import Claim

REAL = Findings(may=("guilty-pass", "nondeterministic", "uninitialized-read", "nan-inequality", "values-replaced"))


def planted() -> Iterator[Planted]:
    yield from differences()
    yield from on_every_release()
    yield from moved()
    yield from without_device()
    yield from incomplete()


def program(
    name: str,
    family: str,
    title: str,
    text: str,
    shows: str = "",
    *,
    claim: Claim = "error",
    ending: Ending = "error",
    findings: Findings = REAL,
    device: str = "",
    quoted: str = "",
) -> Program:
    return Program(
        name=f"tvm-{name}", family=f"tvm-{family}", toolchain="tvm", title=title, files={"repro.py": text},
        steps=PYTHON,
        claim=claim, ending=ending, shows=shows, findings=findings, device=device, quoted=quoted,
    )  # fmt: skip


UNEQUAL = """\
AssertionError:
Not equal to tolerance rtol=1e-05, atol=0

Mismatched elements: {} / {} ({}%)"""


FIXED = {"0.25.0": "match", "0.26.0": "pass", "0.27.0.post1": "pass"}


EVERY = {"0.25.0": "match", "0.26.0": "match", "0.27.0.post1": "match"}


def differences() -> Iterator[Planted]:
    """What 0.25.0 does wrong and 0.26.0 does right."""
    for n, shape in enumerate([(2, 0), (3, 0), (4, 0, 2)]):
        text = (
            IMPORTS
            + module([("x", shape, "float32")], ["gv = R.prod(x, axis=[1])"])
            + run({"x": f'np.zeros({shape}, "float32")'})
        )
        text += "np.testing.assert_array_equal(got, np.prod(x, axis=1))\n"
        made = program(
            f"empty-prod-{n}",
            "difference-empty",
            f"the product over an empty axis of {shape} is not 1",
            text,
            "AssertionError",
            claim="wrong-result",
            ending="assertion",
        )
        yield fixed(made)
    for n, (values, edges) in enumerate([("[0.5, 2.5, 9.0]", "[1.0, 2.0]"), ("[-1.0, 0.0]", "[-0.5, 0.5, 3.0]")]):
        text = (
            IMPORTS
            + builder(
                [("x", (values.count(",") + 1,), "float32"), ("edges", (edges.count(",") + 1,), "float32")],
                ["gv = R.bucketize(x, edges)"],
            )
            + run({"x": f'np.array({values}, "float32")', "edges": f'np.array({edges}, "float32")'})
        )
        text += "np.testing.assert_array_equal(got, np.digitize(x, edges, right=True))\n"
        yield fixed(
            program(
                f"bucketize-{n}",
                "difference-bucketize",
                "bucketize of floats does not compile",
                text,
                "Expected integer a",
            )
        )
    for n, shape in enumerate([(2, 3), (5,)]):
        text = (
            IMPORTS
            + f"""
bb = relax.BlockBuilder()
x = relax.Var("x", R.Tensor({shape}, "float32"))
with bb.function("main", [x]):
    both = bb.emit(relax.op.nn.dropout(x, 0.3))
    bb.emit_func_output(both)
tvm.compile(bb.get(), target="llvm")
"""
        )
        text = text.replace("from tvm.script import ir as I\n", "")
        yield fixed(
            program(
                f"dropout-{n}",
                "difference-dropout",
                "a graph with dropout cannot be compiled",
                text,
                "relax.nn.dropout",
            )
        )


def fixed(made: Program) -> Planted:
    return tell_over(made, FIXED, "fixed", reported="0.25.0", never=("invalid-repro", "confirmed", "regression"))


def on_every_release() -> Iterator[Planted]:
    """What every release does wrong."""
    shape: Shape
    for n, (shape, factor) in enumerate([((1, 4, 2, 2), 2), ((1, 9, 1, 1), 3)]):
        text = (
            IMPORTS
            + builder([("x", shape, "float32")], [f"gv = R.nn.pixel_shuffle(x, {factor})"])
            + '\ntvm.compile(Module, target="llvm")\n'
        )
        yield every(
            program(
                f"pixel-shuffle-{n}",
                "every-pixel-shuffle",
                "R.nn.pixel_shuffle has no lowering",
                text,
                "pixel_shuffle",
            )
        )
    values = [
        ("log-add-exp", "[90.0, 1.0]", "[90.0, 2.0]", "log_add_exp of 90 and 90 is inf"),
        ("log-add-exp-large", "[100.0]", "[99.0]", "log_add_exp overflows"),
    ]
    for name, a, b, title in values:
        size = a.count(",") + 1
        text = IMPORTS + builder([("a", (size,), "float32"), ("b", (size,), "float32")], ["gv = R.log_add_exp(a, b)"])
        text += run({"a": f'np.array({a}, "float32")', "b": f'np.array({b}, "float32")'})
        text += "np.testing.assert_allclose(got, np.logaddexp(a, b), rtol=1e-5)\n"
        yield every(
            program(
                name,
                "every-log-add-exp",
                title,
                text,
                "AssertionError",
                claim="wrong-result",
                ending="assertion",
            )
        )


def every(made: Program) -> Planted:
    return tell_over(
        made,
        EVERY,
        "confirmed",
        reported="0.27.0.post1",
        never=("invalid-repro", "fixed", "regression", "not-reproduced"),
    )


def moved() -> Iterator[Planted]:
    """Programs for interfaces that none of these releases has any more."""
    texts = {
        "relay": ("relay.nn.softmax over the first axis is wrong", """\
import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

x = relay.var("x", shape=(3, 2), dtype="float32")
mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x, axis=0)))
lib = relay.build(mod, target="llvm")
m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
m.set_input("x", np.ones((3, 2), "float32"))
m.run()
np.testing.assert_allclose(m.get_output(0).numpy(), np.full((3, 2), 1 / 3), rtol=1e-5)
"""),
        "create-schedule": ("te schedule with compute_at computes garbage", """\
import numpy as np
import tvm
from tvm import te

a = te.placeholder((16,), name="a")
b = te.compute((16,), lambda i: a[i] + 1, name="b")
c = te.compute((16,), lambda i: b[i] * 2, name="c")
s = te.create_schedule(c.op)
s[b].compute_at(s[c], c.op.axis[0])
f = tvm.build(s, [a, c], "llvm")
out = tvm.nd.array(np.zeros(16, "float32"))
f(tvm.nd.array(np.arange(16, dtype="float32")), out)
np.testing.assert_allclose(out.asnumpy(), (np.arange(16) + 1) * 2)
"""),
        "auto-scheduler": ("auto_scheduler reports a wrong number of states", """\
import tvm
from tvm import auto_scheduler, te


@auto_scheduler.register_workload
def scale(n):
    x = te.placeholder((n,), name="x")
    return [x, te.compute((n,), lambda i: x[i] * 3, name="y")]


task = auto_scheduler.SearchTask(func=scale, args=(32,), target="llvm")
assert len(task.compute_dag.init_state.stages) == 3
"""),
        "autotvm": ("autotvm finds an empty space for a matmul", """\
from tvm import autotvm, te


@autotvm.template("user/matmul")
def matmul(n):
    a = te.placeholder((n, n), name="a")
    cfg = autotvm.get_config()
    cfg.define_split("tile", n, num_outputs=2)
    return None, [a]


task = autotvm.task.create("user/matmul", args=(8,), target="llvm")
assert len(task.config_space) == 1
"""),
    }  # fmt: skip
    for name, (title, text) in texts.items():
        made = program(
            name,
            "moved",
            title,
            text,
            "AssertionError",
            claim="wrong-result",
            ending="assertion",
            findings=Findings(may=("api-moved", "missing")),
            quoted=UNEQUAL.format(2, 6, 33.3),
        )
        yield tell_over(
            made, {"0.26.0": "incompatible", "0.27.0.post1": "incompatible"}, "untestable", reported="0.26.0",
            told_by="",
            accepted=("inconclusive",), never=("confirmed", "regression", "fixed", "invalid-repro", "not-reproduced"),
        )  # fmt: skip


def without_device() -> Iterator[Planted]:
    """Programs for devices that the wheels have no runtime of, or the machine does not have."""
    for n, (target, device) in enumerate(
        [("cuda", "cuda"), ("opencl", "opencl"), ("vulkan", "vulkan"), ("rocm", "rocm")]
    ):
        text = (
            IMPORTS
            + module([("x", (32,), "float32")], ["gv = R.multiply(x, x)"])
            + f"""
target = tvm.target.Target("{target}")
with target:
    mod = relax.transform.LegalizeOps()(Module)
    mod = tvm.s_tir.dlight.ApplyDefaultSchedule(tvm.s_tir.dlight.gpu.Fallback())(mod)
ex = tvm.compile(mod, target=target)
dev = tvm.{device}(0)
vm = relax.VirtualMachine(ex, dev)
x = np.arange(32, dtype="float32")
np.testing.assert_allclose(vm["main"](tvm.runtime.tensor(x, dev)).numpy(), x * x)
"""
        )
        made = program(
            f"device-{n}",
            "no-device",
            f"square of a vector is wrong on {device}",
            text,
            "AssertionError",
            claim="wrong-result",
            ending="assertion",
            device=device,
            quoted=UNEQUAL.format(8, 32, 25),
        )
        yield tell_over(
            made, {"0.26.0": "unavailable", "0.27.0.post1": "unavailable"}, "untestable", reported="0.27.0.post1",
            told_by="",
            accepted=("inconclusive",), never=("confirmed", "regression", "fixed", "invalid-repro", "not-reproduced"),
        )  # fmt: skip


def incomplete() -> Iterator[Planted]:
    """Programs that read a file which the report does not give."""
    reads = [
        ("weights", 'np.load("weights.npy")', "weights.npy"),
        ("checkpoint", 'np.loadtxt("checkpoint/layer0.txt", dtype="float32")', "layer0.txt"),
        ("params", 'tvm.runtime.load_param_dict(open("model.params", "rb").read())["w"].numpy()', "model.params"),
        ("table", 'np.fromfile("table.bin", dtype="float32")', "table.bin"),
    ]
    for name, read, file in reads:
        text = (
            IMPORTS
            + builder([("x", (8,), "float32")], ["gv = R.exp(x)"])
            + run({"x": read})
            + "np.testing.assert_allclose(got, np.exp(x), rtol=1e-5)\n"
        )
        made = program(
            f"file-{name}",
            "missing-file",
            f"exp of the values in {file} is wrong",
            text,
            "AssertionError",
            claim="wrong-result",
            ending="assertion",
            findings=Findings(may=("missing",)),
            quoted=UNEQUAL.format(8, 8, 100),
        )
        yield tell_over(
            made, {"0.27.0.post1": "incompatible"}, "incomplete", reported="0.27.0.post1", told_by="",
            accepted=("inconclusive",),
            never=("confirmed", "regression", "fixed", "invalid-repro", "not-reproduced"),
        )  # fmt: skip
