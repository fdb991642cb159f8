"""List the names of TVM's Python API in testcases."""

from __future__ import annotations

import re
from datetime import date

from runners.core.toolchain.reports import PythonNames, ReportAge, TextProgram

_RELEASED_0_24 = date(2026, 5, 2)
"""The release of 0.24, which renamed ``tvm.tir`` to ``tvm.tirx``."""


def _choose_import(name: str, code: str, age: ReportAge) -> str | None:
    if name == "T" and ("T.sblock" in code or "tirx" in code or (_is_modern(age) and "T.block(" not in code)):
        return "from tvm.script import tirx as T"
    if name == "nn" and "torch" not in code:
        return "from tvm.relax.frontend import nn"
    return None


def _is_modern(age: ReportAge) -> bool:
    """True for 0.24 or later, by the versions that the report names, else by its date."""
    minors = [int(found[1]) for version in age.versions if (found := re.match(r"0\.(\d{1,3})(?:\.|$)", version))]
    return max(minors) >= 24 if minors else age.day >= _RELEASED_0_24


_DEFAULTS = {"target": '"llvm"', "dev": "tvm.cpu()", "ctx": "tvm.cpu()"}
_ACCELERATOR = re.compile(
    r"\b(?:[ct]?gpus?|cuda|nvidia|nvptx|rocm|hip|amd|opencl|vulkan|metal|webgpu|hexagon|adreno|mali|fpga|vta|npu|micro"
    r"|android|ios|sm_?\d{2}|gfx\d{3,4}\w?|[AHVB]\d00|RTX)\b|\barm\b|\baarch64\b|\brisc",
    re.I,
)
"""Words of a report that may be about a target other than the host's processor."""


def _choose_default(name: str, text: str) -> str | None:
    default = _DEFAULTS.get(name)  # first: a program has thousands of names, and the search reads all of the text
    return None if default is None or _ACCELERATOR.search(text) else default


RELAY_HEADER = re.compile(r"\s{0,80}#\[version = \"[\d.]{1,20}\"\]\s{1,80}(?:def|type) ")


def is_relay_program(text: str) -> bool:
    """True for one whole module in Relay's text format. A module without its constants is not whole."""
    balanced = text.count("{") == text.count("}") and text.rstrip().endswith("}")
    plain = "meta[" not in text and '"""' not in text and "\\" not in text
    return balanced and plain and "def @main" in text and RELAY_HEADER.match(text) is not None


_HYBRID_NAMES = frozenset(
    {
        *("allocate", "output_tensor", "const_range", "unroll", "vectorize", "parallel", "bind", "likely"),
        *("max_num_threads", "ceil_div", "popcount", "sigmoid", "sqrt", "rsqrt", "log", "tanh", "power", "exp"),
        *("float16", "float32", "float64", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    }
)
"""Names of the hybrid script of 2018 to 2024 (TVM 0.19, python/tvm/te/hybrid/runtime.py, ``HYBRID_GLOBALS``)."""


PYTHON = PythonNames(
    packages=frozenset({"tvm"}),
    products={"tilelang": "TileLang", "bitblas": "BitBLAS", "mlc_llm": "MLC LLM", "hidet": "Hidet"},
    drivers={"tvmc": "tvm.driver.tvmc"},
    text_program=TextProgram(
        is_whole=is_relay_program,
        read='from tvm import relay\n\nTEXT = """\\\n{text}\n"""\nmodule = relay.fromtext(TEXT)\n',
        compile='relay.build(module, target="llvm")\n',
    ),
    namespaces=("tvm", "relax", "relay", "tir", "te"),
    imports={
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
        "schedule_to_module": "from tvm.driver.build_module import schedule_to_module",
        "graph_executor": "from tvm.contrib import graph_executor",
        "from_onnx": "from tvm.relax.frontend.onnx import from_onnx",
        "from_exported_program": "from tvm.relax.frontend.torch import from_exported_program",
        "IRModule": "from tvm import IRModule",
        "I": "from tvm.script import ir as I",
        "R": "from tvm.script import relax as R",
        "T": "from tvm.script import tir as T",
    },
    choose_default=_choose_default,
    choose_import=_choose_import,
    distributions={"tvm_ffi": "apache-tvm-ffi"},
    # Tried on 0.25 to 0.27.
    submodule_requirements={
        "tvm.testing": ("pytest",),
        "tvm.topi.testing": ("scipy",),
        "tvm.relax.frontend.onnx": ("onnx",),
        "tvm.relax.frontend.torch": ("torch",),
        "tvm.relax.frontend.stablehlo": ("jaxlib",),
        # The search counts cores and sends functions to workers. Its cost model needs XGBoost, which is too large for
        # the many reports without tuning.
        "tvm.meta_schedule": ("psutil", "cloudpickle"),
        "tvm.s_tir.meta_schedule": ("psutil", "cloudpickle"),
    },
    call_bounds={"from_keras": {"tensorflow-cpu": "<2.16", "keras": "<3"}},  # it only reads models of Keras 2
    readers=frozenset(
        {
            *("tvm.runtime.load_module", "runtime.load_module", "tvm.module.load", "relax.vm.load_exec"),
            "tvm.ir.load_json_file",
        }
    ),
    writers=frozenset({"export_library", "create_shared"}),
    definition_pattern=r".*(?:ir_module|R\.function|prim_func|script\.tir)|[RTI]\..*",
    language_names={"hybrid.script": _HYBRID_NAMES},
    omitted_constants=frozenset({"metadata"}),
    common_words=frozenset({"relax"}),
)
