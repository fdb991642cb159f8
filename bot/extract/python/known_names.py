"""Names that everybody in the field binds the same way: the only imports ever added to a report's code."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.extract.python.names import is_stdlib


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
_TVM = {
    "tvm": "import tvm",
    "relax": "from tvm import relax",
    "relay": "from tvm import relay",
    "tir": "from tvm import tir",
    "tirx": "from tvm import tirx",
    "te": "from tvm import te",
    "topi": "from tvm import topi",
    "autotvm": "from tvm import autotvm",
    "auto_scheduler": "from tvm import auto_scheduler",
    "ms": "from tvm import meta_schedule as ms",
    "meta_schedule": "from tvm import meta_schedule",
    "dl": "from tvm import dlight as dl",
    "dlight": "from tvm import dlight",
    "graph_executor": "from tvm.contrib import graph_executor",
    "from_onnx": "from tvm.relax.frontend.onnx import from_onnx",
    "from_exported_program": "from tvm.relax.frontend.torch import from_exported_program",
    "I": "from tvm.script import ir as I",
    "R": "from tvm.script import relax as R",
    "T": "from tvm.script import tir as T",
}
_IREE = {
    "rt": "import iree.runtime as rt",
    "ireert": "import iree.runtime as ireert",
    "iree_runtime": "import iree.runtime as iree_runtime",
    "ireec": "import iree.compiler as ireec",
    "aot": "from iree.turbine import aot",
}
_TABLES = {"tvm": {**_COMMON, **_TVM}, "iree": {**_COMMON, **_IREE}}
_ORDER = {name: order for order, name in enumerate({**_COMMON, **_TVM, **_IREE})}


def _commented_import(name: str, code: str) -> str | None:
    found = re.search(rf"^#[ \t]*((?:from [\w.]+ )?import [\w.]+ as {re.escape(name)})[ \t]*$", code, re.M)
    return found[1] if found else None


def well_known(name: str, toolchain: str, code: str = "", modern: bool = False) -> WellKnown | None:
    """How ``name`` is bound by convention in a text about ``toolchain``, or None.

    A printed module names its imports in comments: those are taken. ``modern``: written for TVM 0.24 or later, where
    ``tvm.script.tir`` is called ``tirx``.
    """
    table = _TABLES.get(toolchain, _COMMON)
    line = table.get(name)
    if line and (said := _commented_import(name, code)) and toolchain in said:
        line = said
    elif name == "T" and ("T.sblock" in code or "tirx" in code or (modern and "T.block(" not in code)):
        line = "from tvm.script import tirx as T"
    elif name == "nn":
        line = (
            "from torch import nn" if "torch" in code or toolchain != "tvm" else "from tvm.relax.frontend import nn"
        )
    elif name == "iree" and toolchain == "iree":
        line = "import iree.compiler, iree.runtime" if "iree.runtime" in code else "import iree.compiler"
        if "iree.compiler" not in code:
            line = "import iree.runtime"
    elif line is None and is_stdlib(name) and len(name) > 1 and not name.startswith("_") and name not in _NOT_MODULES:
        line = f"import {name}"
    if line is None:
        return None
    return WellKnown(line=line, order=_ORDER.get(name, -1))


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
