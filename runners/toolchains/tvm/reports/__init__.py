"""Define the vocabulary of bug reports about TVM."""

from __future__ import annotations

import re

from runners.core.toolchain.reports import CommitWords, FailureWords, ReportVocabulary, TrackerDefaults, VersionWords
from runners.toolchains.tvm.reports.devices import read_devices
from runners.toolchains.tvm.reports.python_names import PYTHON
from runners.toolchains.tvm.sources import SOURCES


def _is_plausible(version: str) -> bool:
    major, _, rest = version.partition(".")
    minor = re.match(r"\d+", rest)
    number = int(minor[0]) if minor else 0
    return major == "0" and 3 <= number <= 99 and ("." in rest or "dev" in rest or len(rest) <= 2)


_VERSIONS = VersionWords(
    prefixes=("tvm-",),
    leading=("tvm", "apache-tvm"),
    named_by_patterns=("tvm", "relax", "wheel", "__version__"),
    wheel_patterns=("apache[-_]tvm", "tvm", r"tlcpack[\w-]*", r"mlc[-_]ai[-_]\w+"),
    wheel_file_patterns=("apache_tvm",),
    installed_patterns=("(?:apache_)?tvm",),
    line_patterns=("apache-tvm", r"tvm.{0,12}(?:version|==)"),
    branches=("unity",),
    short_pattern=r"0\.\d\d",
    is_plausible=_is_plausible,
)

_FAILURES = FailureWords(
    definition_errors=frozenset({"DiagnosticError", "ParserError"}),
    definition_frames=("script.parser", "ir_module", "prim_func"),
    comparisons=frozenset({"assert_structural_equal"}),
    comparison_messages={"StructuralEqual check failed": "assert_structural_equal"},
    unnamed_patterns=(r"\bCheck failed: ", r"\bCHECK failed"),
)

_VARIABLES = {
    "TVM_LOG_DEBUG": r"[\w./*=,:-]{1,200}",
    "TVM_BACKTRACE": "[01]",
    "TVM_NUM_THREADS": r"\d{1,3}",
    "TVM_BIND_THREADS": "[01]",
}

REPORTS = ReportVocabulary(
    called=("tvm",),
    repositories=re.compile(r"(?:^|/)(?:tvm|relax|tvm-\w+|tvm-ffi)$", re.I),
    marks=re.compile(
        r"\bimport tvm\b|\bfrom tvm\b|\btvm\.\w+|\bapache-tvm\b|\bTVM(?:\b|_)|\bTVMScript\b|\bT\.prim_func\b"
        r"|\bR\.function\b|\bI\.ir_module\b|\brelax\.\w+|\btir\.\w+|\brelay\.\w+"
    ),
    read_devices=read_devices,
    versions=_VERSIONS,
    python=PYTHON,
    failures=_FAILURES,
    native_marks=("TVM_REGISTER",),
    source_folders=("tests/python", "tutorials", "gallery", "apps", "vta", "topi/tests", "nnvm", "web/tests"),
    variables=_VARIABLES,
    commits=CommitWords(
        name_patterns=(r"\b(?:transform|frontend|op|tirx?|topi|dlight)\.\w{4,60}",),
        related={"fromexportedprogram": "pytorch torch", "fromonnx": "onnx"},
        sources=SOURCES,
    ),
    tracker=TrackerDefaults(skip_labels=("type: doc", "type:ci", "type:rfc-tracking")),
)
