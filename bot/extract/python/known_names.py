"""Names that everybody in the field binds the same way: the only imports ever added to a report's code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.extract.python.names import is_stdlib
from bot.extract.vocabulary import vocabulary_of
from runners.core.toolchain.reports import PythonNames, Written
from runners.toolchains import TOOLCHAINS


@dataclass(frozen=True, slots=True, kw_only=True)
class WellKnown:
    line: str
    order: int
    """Where the line stands among added imports."""


_COMMON = {
    "np": "import numpy as np",
    "numpy": "import numpy",
    "torch": "import torch",
    "onnx": "import onnx",
    "helper": "from onnx import helper",
    "TensorProto": "from onnx import TensorProto",
    "numpy_helper": "from onnx import numpy_helper",
    "ort": "import onnxruntime as ort",
    "onnxruntime": "import onnxruntime",
    "tf": "import tensorflow as tf",
    "keras": "import keras",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "F": "import torch.nn.functional as F",
    "pytest": "import pytest",
    "Path": "from pathlib import Path",
    "partial": "from functools import partial",
}
_NOT_WRITTEN = Written()


def well_known(name: str, toolchain: str, code: str = "", written: Written = _NOT_WRITTEN) -> WellKnown | None:
    """How ``name`` is bound by convention in a text about ``toolchain``, or None.

    A printed module names its imports in comments: those are taken.
    """
    names = vocabulary_of(toolchain).python
    usual = {**_COMMON, **names.imports}
    line = _import_line(name, usual.get(name), names, code, written)
    if line is None:
        return None
    return WellKnown(line=line, order=list(usual).index(name) if name in usual else -1)


def _import_line(name: str, usual: str | None, names: PythonNames, code: str, written: Written) -> str | None:
    if usual and (said := _commented_import(name, code)) and any(package in said for package in names.packages):
        return said
    if chosen := names.choose_import(name, code, written) or usual:
        return chosen
    if name == "nn":
        return "from torch import nn"
    if is_stdlib(name) and len(name) > 1 and not name.startswith("_") and name not in _NOT_MODULES:
        return f"import {name}"
    return None


def is_well_known(name: str) -> bool:
    """Whether some toolchain's testcases bind ``name`` by convention."""
    return any(well_known(name, toolchain) for toolchain in TOOLCHAINS)


def _commented_import(name: str, code: str) -> str | None:
    found = re.search(rf"^#[ \t]*((?:from [\w.]+ )?import [\w.]+ as {re.escape(name)})[ \t]*$", code, re.M)
    return found[1] if found else None


_NOT_MODULES = {
    "code",
    "this",
    "test",
    "types",
    "token",
    "parser",
    "symbol",
    "array",
    "select",
    "queue",
    "bisect",
} | {
    *("calendar", "cmd", "profile", "signal", "statistics", "string", "resource", "site", "graphlib", "numbers"),
    *("operator", "random_", "keyword", "mailbox", "trace", "secrets", "sched", "shelve", "turtle", "platform_"),
}
"""Modules whose names people also give to variables: not binding them is an omission we cannot mend."""
