"""Imports → distributions to install, by an allow-list; what is on no list is a module the issue does not give."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from bot.extract.python.names import imported_modules, is_stdlib
from bot.extract.vocabulary import vocabularies
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
    "google.protobuf": "protobuf",
    **{name: distribution for words in vocabularies() for name, distribution in words.python.distributions.items()},
}
"""Import name → distribution. Only these are ever installed; settings may extend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imports:
    requirements: tuple[str, ...]
    """Distributions, in order of import, that the environment needs on top of the toolchain."""
    unknown: tuple[str, ...]
    """Modules that are neither the standard library's, the toolchain's nor on the list."""


def read_imports(tree: ast.AST, toolchain: str, extra: Mapping[str, str] | None = None) -> Imports:
    """What the imports of ``tree`` ask for. ``extra`` extends the allow-list (import name → distribution)."""
    known = {**DISTRIBUTIONS, **(extra or {})}
    described = find_toolchain(toolchain)
    provided, behind = described.PROVIDES, described.REPORTS.python.submodule_requirements
    needed: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for module, must in _with_submodules(tree, behind):
        name = _known_name(module, known)
        top = module.partition(".")[0]
        if name is not None and "." in name:  # a distribution of its own inside a namespace of the toolchain's
            needed[known[name]] = None
        elif not module.startswith(".") and (is_stdlib(module) or top in provided):
            needed.update((need, None) for inner, need in behind.items() if f"{module}.".startswith(f"{inner}."))
        elif name is not None:
            needed[known[name]] = None
        elif must:
            unknown[module] = None
    return Imports(requirements=tuple(needed), unknown=tuple(unknown))


def _with_submodules(tree: ast.AST, submodules: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Each module imported; ``from a import b`` counts for ``a.b`` as well where that is one of ``submodules``."""
    yield from imported_modules(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from ((name, False) for name in inner if name in submodules)


def _known_name(module: str, known: Mapping[str, str]) -> str | None:
    """The longest known prefix decides: ``google.protobuf`` before ``google``."""
    parts = module.split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in prefixes if known.get(name)), None)
