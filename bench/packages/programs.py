"""Ten PyTorch modules of our own through ``torch.export`` and two ONNX models, with their framework's results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import indent

from runners.core.protocol import Testcase, TestcaseKind

_EXPORT = """\
import numpy as np
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program


def export(module, args):
    module = module.eval()
    exported = torch.export.export(module, args)
    return from_exported_program(exported), args, exported.module()(*args).detach().numpy()
"""
_ONNX = """\
import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

rng = np.random.default_rng(0)


def describe(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def convert(x, nodes, constants, shape):
    graph = helper.make_graph(nodes, "main", [describe("x", list(x.shape))], [describe("y", shape)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return from_onnx(model), (x,), session.run(None, {"x": x})[0]
"""
_COMPARE = """

def check(imported, args, expected):
    executable = tvm.compile(imported, target="llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    result = machine["main"](*[tvm.runtime.tensor(np.asarray(arg)) for arg in args])
    result = result if hasattr(result, "numpy") else result[0]
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
    return "same"
"""
_IMPORT_ONLY = """

def check(imported, args, expected):
    assert imported.get_global_vars()
    return "imported"
"""
_TRY = """
try:
    print(NAME, "->", check(*make()))
except Exception as error:
    print(NAME, "->", type(error).__name__, str(error).strip().partition("\\n")[0][:120])
"""

MODULES: Mapping[str, str] = {
    "convolution": """\
module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.ReLU())
args = (torch.randn(1, 3, 16, 16),)
""",
    "linear": """\
module = nn.Sequential(nn.Linear(10, 7), nn.Tanh(), nn.Linear(7, 3))
args = (torch.randn(4, 10),)
""",
    "softmax": """\
class Weigh(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) + torch.log_softmax(x, dim=1)

module = Weigh()
args = (torch.randn(2, 5, 6),)
""",
    "layer_norm": """\
module = nn.Sequential(nn.LayerNorm(12), nn.GELU())
args = (torch.randn(2, 3, 12),)
""",
    "attention": """\
class Attend(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)

module = Attend()
args = tuple(torch.randn(1, 2, 8, 16) for _ in range(3))
""",
    "embedding": """\
class Look(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 6)

    def forward(self, ids):
        return self.table(ids).mean(dim=1)

module = Look()
args = (torch.tensor([[1, 5, 19], [0, 2, 2]]),)
""",
    "reshape_permute": """\
class Move(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        return x.permute(0, 2, 3, 1).reshape(b, h * w, c).transpose(1, 2)

module = Move()
args = (torch.randn(2, 3, 4, 5),)
""",
    "cumsum": """\
class Add(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1) * torch.arange(6, dtype=torch.float32)

module = Add()
args = (torch.randn(3, 6),)
""",
    "pooling": """\
class Pool(nn.Module):
    def forward(self, x):
        high = nn.functional.max_pool2d(x, 3, stride=2, padding=1)
        return nn.functional.adaptive_avg_pool2d(nn.functional.avg_pool2d(high, 2), 1).flatten(1)

module = Pool()
args = (torch.randn(1, 4, 16, 16),)
""",
    "gru": """\
class Recur(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(5, 4, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0]

module = Recur()
args = (torch.randn(2, 3, 5),)
""",
}
"""Bodies that define ``module`` and ``args``."""

MODELS: Mapping[str, str] = {
    "gemm": """\
x = rng.normal(size=(4, 10)).astype("float32")
constants = [
    numpy_helper.from_array(rng.normal(size=(7, 10)).astype("float32"), "w"),
    numpy_helper.from_array(rng.normal(size=(7,)).astype("float32"), "b"),
]
nodes = [
    helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
    helper.make_node("Softmax", ["h"], ["y"], axis=1),
]
shape = [4, 7]
""",
    "average_pool": """\
x = rng.normal(size=(1, 3, 9, 9)).astype("float32")
constants = [numpy_helper.from_array(np.array([0, 0, -1, 1], "int64"), "shape")]
nodes = [
    helper.make_node("AveragePool", ["x"], ["h"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    helper.make_node("Reshape", ["h", "shape"], ["y"]),
]
shape = [1, 3, 25, 1]
""",
}
"""Bodies that define ``x``, ``nodes``, ``constants`` and ``shape`` of a model with input ``x`` and output ``y``."""


def make_export_testcase(names: Iterable[str] = MODULES, *, compiles: bool = True) -> Testcase:
    """Return one program that prints a line for each module, because each import of PyTorch takes seconds.

    On a build that generates no code, the program ends each module with its import.
    """
    bodies = {name: f"torch.manual_seed(0)\n{MODULES[name]}return export(module, args)\n" for name in names}
    return _make_testcase("torch_export", _EXPORT, bodies, ("torch",), compiles=compiles)


def make_onnx_testcase(names: Iterable[str] = MODELS, *, compiles: bool = True) -> Testcase:
    """Return one program for ONNX models; see `make_export_testcase`."""
    bodies = {name: f"{MODELS[name]}return convert(x, nodes, constants, shape)\n" for name in names}
    return _make_testcase("onnx_models", _ONNX, bodies, ("onnx", "onnxruntime"), compiles=compiles)


def _make_testcase(
    name: str, frame: str, bodies: Mapping[str, str], requirements: tuple[str, ...], *, compiles: bool
) -> Testcase:
    parts = [frame, _COMPARE if compiles else _IMPORT_ONLY]
    for title, body in bodies.items():
        parts.append(f"\n\ndef make():\n{indent(body, '    ')}\n" + _TRY.replace("NAME", repr(title)))
    return Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={f"{name}.py": "".join(parts)},
        steps=(("python", f"{name}.py"),),
        requirements=requirements,
    )


def read_ends(output: str) -> dict[str, str]:
    """Return the end of each module or model that a program printed."""
    return dict(line.split(" -> ", 1) for line in output.splitlines() if " -> " in line)
