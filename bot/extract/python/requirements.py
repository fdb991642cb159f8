"""Map imports to the distributions to install, by an allow-list. Other modules are missing from the issue."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from bot.extract.python.names import is_stdlib, list_imports
from bot.extract.python.parse import walk
from bot.extract.vocabulary import list_vocabularies
from runners.toolchains import find_toolchain

DISTRIBUTIONS: Mapping[str, str] = {
    **{
        name: name
        for name in (
            *("onnx", "onnxruntime", "onnxscript", "onnxsim", "torch", "torchvision", "torchaudio", "numpy", "scipy"),
            *("keras", "transformers", "diffusers", "safetensors", "accelerate", "timm", "einops"),
            *("jax", "jaxlib", "flax", "optax", "equinox", "pandas", "tqdm", "matplotlib", "networkx", "sympy"),
            *("pytest", "hypothesis", "psutil", "packaging", "tabulate", "h5py", "numba", "triton", "tilelang"),
            *("bitblas", "tflite", "cloudpickle", "requests", "xgboost", "mxnet", "sentencepiece", "tokenizers"),
            *("tiktoken", "cffi", "decorator", "attrs", "mlir", "tornado"),
        )
    },
    "PIL": "pillow",
    "tensorflow": "tensorflow-cpu",  # the ordinary wheel is twice the size
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
    **{name: wheel for words in list_vocabularies() for name, wheel in words.python.distributions.items()},
}
"""Import name → distribution. Only these are ever installed. Settings may extend the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imports:
    """The needs of a program, by its imports."""

    requirements: tuple[str, ...]
    """Distributions that the environment needs beside the toolchain, in order of import."""
    unknown: tuple[str, ...]
    """Modules that are neither the standard library's, nor the toolchain's, nor on the list."""


def read_imports(tree: ast.AST, toolchain: str, extra: Mapping[str, str] | None = None) -> Imports:
    """Return the needs of ``tree``. ``extra`` extends the allow-list (import name → distribution)."""
    known = {**DISTRIBUTIONS, **(extra or {})}
    described = find_toolchain(toolchain)
    behind = described.REPORTS.python.submodule_requirements
    # A package that the compiler once shipped is not a file of the reporter: the run shows where it is gone.
    provided = described.PROVIDES | {entry.old for entry in described.DRIFT if entry.kind == "module"}
    needed: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for module, must_succeed in _list_modules(tree, behind):
        name = _find_known_prefix(module, known)
        top = module.partition(".")[0]
        if name is not None and "." in name:  # a distribution of its own inside a namespace of the toolchain
            needed[known[name]] = None
        elif not module.startswith(".") and (is_stdlib(module) or top in provided):
            inside = [names for inner, names in behind.items() if f"{module}.".startswith(f"{inner}.")]
            needed.update((name, None) for names in inside for name in names)
        elif name is not None:
            needed[known[name]] = None
        elif must_succeed:
            unknown[module] = None
    if "torch" in needed:
        needed.update((name, None) for name in _find_exporters(tree))
    bounds = dict(_find_bounds(tree, described.REPORTS.python.call_bounds))
    return Imports(requirements=tuple(f"{name}{bounds.get(name, '')}" for name in needed), unknown=tuple(unknown))


EXPORTERS = ("onnx", "onnxscript")
"""The distributions that ``torch.onnx.export`` imports when it is called. PyTorch 2.9 and later need both:
https://docs.pytorch.org/docs/stable/onnx_export.html"""


def _find_exporters(tree: ast.AST) -> tuple[str, ...]:
    """Return the distributions that PyTorch needs for the calls that export a model."""
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="export" | "dynamo_export", value=ast.Attribute(attr="onnx"))):
                return EXPORTERS
    return ()


def _find_bounds(tree: ast.AST, bounds: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the distributions whose versions a call limits, and the limit. Today's version may lack what it needs."""
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            yield from bounds.get(name, {}).items()


def _list_modules(tree: ast.AST, submodules: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Yield each imported module. ``from a import b`` yields ``a.b`` too if it is one of ``submodules``."""
    yield from list_imports(tree)
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from ((name, False) for name in inner if name in submodules)


def _find_known_prefix(module: str, known: Mapping[str, str]) -> str | None:
    """Return the longest known prefix: ``google.protobuf`` rather than ``google``."""
    parts = module.split(".")
    prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in prefixes if known.get(name)), None)
