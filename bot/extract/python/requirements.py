"""Imports → distributions to install, by an allow-list; what is on no list is a module the issue does not give."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.extract.python.names import imported_modules, is_stdlib
from runners.toolchains import find_toolchain

DISTRIBUTIONS: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("onnx", "onnxruntime", "onnxscript", "onnxsim", "torch", "torchvision", "torchaudio", "numpy", "scipy"),
            *("tensorflow", "keras", "transformers", "diffusers", "safetensors", "accelerate", "timm", "einops"),
            *("jax", "jaxlib", "flax", "optax", "equinox", "pandas", "tqdm", "matplotlib", "networkx", "sympy"),
            *("pytest", "hypothesis", "psutil", "packaging", "tabulate", "h5py", "numba", "triton", "tilelang"),
            *("bitblas", "tflite", "ml_dtypes", "typing_extensions", "cloudpickle", "requests", "xgboost", "mxnet"),
            *("sentencepiece", "tokenizers", "tiktoken", "cffi", "decorator", "attrs", "absl", "mlir", "tornado"),
        )
    },
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "attr": "attrs",
    "absl": "absl-py",
    "paddle": "paddlepaddle",
    "tensorflow_hub": "tensorflow-hub",
    "huggingface_hub": "huggingface-hub",
    "typing_extensions": "typing-extensions",
    "ml_dtypes": "ml-dtypes",
    "tvm_ffi": "apache-tvm-ffi",
    "iree.turbine": "iree-turbine",
    "shark_turbine": "iree-turbine",
    "google.protobuf": "protobuf",
}
"""Import name → distribution. Only these are ever installed; settings may extend it."""


BEHIND: Mapping[str, str] = {
    "tvm.testing": "pytest",
    "tvm.topi.testing": "scipy",
    "tvm.relax.frontend.onnx": "onnx",
    "tvm.relax.frontend.torch": "torch",
    "tvm.relax.frontend.stablehlo": "jaxlib",
}
"""Submodules of a toolchain that import a distribution its wheel does not bring (tried on 0.25 to 0.27)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imports:
    requirements: tuple[str, ...]
    """Distributions, in order of import, that the environment needs on top of the toolchain."""
    unknown: tuple[str, ...]
    """Modules that are neither the standard library's, the toolchain's nor on the list."""


def read_imports(tree: ast.AST, toolchain: str, extra: Mapping[str, str] | None = None) -> Imports:
    """What the imports of ``tree`` ask for. ``extra`` extends the allow-list (import name → distribution)."""
    known = {**DISTRIBUTIONS, **(extra or {})}
    provided = find_toolchain(toolchain).PROVIDES
    needed: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for module, must in _with_submodules(tree):
        distribution = _distribution(module, known)
        top = module.partition(".")[0]
        if distribution is not None and (module == "iree.turbine" or module.startswith("iree.turbine.")):
            needed[distribution] = None
        elif not module.startswith(".") and (is_stdlib(module) or top in provided):
            needed.update((need, None) for inner, need in BEHIND.items() if f"{module}.".startswith(f"{inner}."))
        elif distribution is not None:
            needed[distribution] = None
        elif must:
            unknown[module] = None
    return Imports(requirements=tuple(needed), unknown=tuple(unknown))


def _with_submodules(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each module imported; ``from tvm import testing`` counts for ``tvm.testing`` as well."""
    yield from imported_modules(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((f"{node.module}.{a.name}", False) for a in node.names if f"{node.module}.{a.name}" in BEHIND)


def _distribution(module: str, known: Mapping[str, str]) -> str | None:
    """The longest known prefix decides: ``google.protobuf`` before ``google``."""
    parts = module.split(".")
    return next((d for n in range(len(parts), 0, -1) if (d := known.get(".".join(parts[:n])))), None)
