"""Twelve complete programs of our own: PyTorch modules through ``torch.export``, and ONNX models, each compared with
the framework's own result."""

from __future__ import annotations

from collections.abc import Mapping

from runners.core.protocol import Testcase, TestcaseKind

_EXPORT = """\
import numpy as np
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

torch.manual_seed(0)

{body}

module = module.eval()
exported = torch.export.export(module, args)
expected = exported.module()(*args).detach().numpy()
imported = from_exported_program(exported)
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

{body}

def describe(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

graph = helper.make_graph(nodes, "main", [describe("x", list(x.shape))], [describe("y", None)], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
expected = session.run(None, {{"x": x}})[0]
args = (x,)
imported = from_onnx(model)
"""
_COMPARE = """
executable = tvm.compile(imported, target="llvm")
machine = relax.VirtualMachine(executable, tvm.cpu())
tensors = [tvm.runtime.tensor(np.asarray(arg)) for arg in args]
result = machine["main"](*tensors)
result = result if hasattr(result, "numpy") else result[0]
np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
print("same result", expected.shape)
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
""",
    "average_pool": """\
x = rng.normal(size=(1, 3, 9, 9)).astype("float32")
constants = [numpy_helper.from_array(np.array([0, 0, -1, 1], "int64"), "shape")]
nodes = [
    helper.make_node("AveragePool", ["x"], ["h"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    helper.make_node("Reshape", ["h", "shape"], ["y"]),
]
""",
}
"""Bodies that define ``x``, ``nodes`` and ``constants`` of a model with input ``x`` and output ``y``."""


def make_export_testcase(name: str, *, compiles: bool = True) -> Testcase:
    """Return the program of a module. On a build that generates no code, the program ends with the import."""
    return _make_testcase(name, _EXPORT, MODULES[name], ("torch",), compiles=compiles)


def make_onnx_testcase(name: str, *, compiles: bool = True) -> Testcase:
    """Return the program of an ONNX model; see `make_export_testcase`."""
    return _make_testcase(name, _ONNX, MODELS[name], ("onnx", "onnxruntime"), compiles=compiles)


def _make_testcase(name: str, frame: str, body: str, requirements: tuple[str, ...], *, compiles: bool) -> Testcase:
    code = frame.format(body=body.strip()) + (_COMPARE if compiles else '\nprint("same result: imported only")\n')
    return Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={f"{name}.py": code},
        steps=(("python", f"{name}.py"),),
        requirements=requirements,
    )
