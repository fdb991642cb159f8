"""Define canaries of the large packages that testcases require. Each shows that its package works here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.requirements import Requirement

_CANARIES: Mapping[str, str] = {
    "torch": """\
import torch
import torch.export

module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU()).eval()
result = module(torch.ones(1, 1, 4, 4))
assert tuple(result.shape) == (1, 2, 2, 2), result
assert torch.equal(torch.ones(2, 3) @ torch.ones(3, 2), torch.full((2, 2), 3.0))
print("canary ok torch", torch.__version__)
""",
    "onnx": """\
import onnx
from onnx import TensorProto, helper

names = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "canary", names[:1], names[1:])
model = helper.make_model(graph)
onnx.checker.check_model(model)
assert onnx.load_model_from_string(model.SerializeToString()).graph.node[0].op_type == "Relu"
print("canary ok onnx", onnx.__version__)
""",
    "onnxruntime": """\
import onnxruntime

assert "CPUExecutionProvider" in onnxruntime.get_available_providers()
print("canary ok onnxruntime", onnxruntime.__version__)
""",
    "jax": """\
import jax
import jax.numpy as jnp

result = jax.jit(lambda x: x + x)(jnp.arange(4.0))
assert result.tolist() == [0.0, 2.0, 4.0, 6.0], result
print("canary ok jax", jax.__version__)
""",
    "tensorflow-cpu": """\
import tensorflow

result = tensorflow.function(lambda x: x + x)(tensorflow.constant([1.0, 2.0]))
assert result.numpy().tolist() == [2.0, 4.0], result
print("canary ok tensorflow", tensorflow.__version__)
""",
}


def list_package_canaries(requirements: Iterable[str]) -> dict[str, str]:
    """Return the canaries of the required packages: file name → program."""
    names = [Requirement(text).name for text in requirements]
    return {f"canary_{name.replace('-', '_')}.py": _CANARIES[name] for name in names if name in _CANARIES}
