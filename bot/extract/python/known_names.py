"""Names that testcases bind by convention. Their imports are the only imports ever added to a report's code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.extract.python.names import is_stdlib
from bot.extract.vocabulary import vocabulary_of
from runners.core.toolchain.reports import PythonNames, ReportAge
from runners.toolchains import TOOLCHAINS


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownImport:
    line: str
    order: int
    """The position of the line among added imports."""


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
_UNKNOWN_AGE = ReportAge()


def find_known_import(name: str, toolchain: str, code: str = "", age: ReportAge = _UNKNOWN_AGE) -> KnownImport | None:
    """Return the import that binds ``name`` by convention in a text about ``toolchain``, or None.

    An import that ``code`` names in a comment, as a printed module does, takes precedence.
    """
    names = vocabulary_of(toolchain).python
    usual = {**_COMMON, **names.imports}
    line = _choose_line(name, usual.get(name), names, code, age)
    if line is None:
        return None
    return KnownImport(line=line, order=list(usual).index(name) if name in usual else -1)


def _choose_line(name: str, usual: str | None, names: PythonNames, code: str, age: ReportAge) -> str | None:
    if usual and (found := _find_commented_import(name, code)) and any(p in found for p in names.packages):
        return found
    if chosen := names.choose_import(name, code, age) or usual:
        return chosen
    if name == "nn":
        return "from torch import nn"
    if is_stdlib(name) and len(name) > 1 and not name.startswith("_") and name not in _NOT_MODULES:
        return f"import {name}"
    return None


def has_known_import(name: str) -> bool:
    """True if testcases of some toolchain bind ``name`` by convention."""
    return any(find_known_import(name, toolchain) for toolchain in TOOLCHAINS)


def _find_commented_import(name: str, code: str) -> str | None:
    found = re.search(rf"^#[ \t]*((?:from [\w.]+ )?import [\w.]+ as {re.escape(name)})[ \t]*$", code, re.M)
    return found[1] if found else None


_NOT_MODULES = {
    *("code", "this", "test", "types", "token", "parser", "symbol", "array", "select", "queue", "bisect"),
    *("calendar", "cmd", "profile", "signal", "statistics", "string", "resource", "site", "graphlib", "numbers"),
    *("operator", "keyword", "mailbox", "trace", "secrets", "sched", "shelve", "turtle"),
}
"""Modules of the standard library whose names are also names of variables: such a name is reported as missing."""
