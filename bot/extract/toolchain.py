"""Which toolchain a text is about."""

from __future__ import annotations

import re

_REPOSITORIES = (
    ("tvm", re.compile(r"(?:^|/)(?:tvm|relax|tvm-\w+|tvm-ffi)$", re.I)),
    ("iree", re.compile(r"(?:^|/)(?:iree|iree-turbine|shark\S*)$", re.I)),
)
_MARKS = (
    (
        "iree",
        re.compile(
            r"\biree-(?:compile|opt|run-module|benchmark-module|base-\w+)\b|\bimport iree\b|\bfrom iree\b"
            r"|\bimport iree\.|--iree-[\w-]+"
            r"|\biree\.(?:compiler|runtime|turbine)\b|\bIREE\b|\biree_\w+\.\w+|\bflow\.dispatch\b"
            r"|\bhal\.\w+|\bllvm-cpu\b|\bvmvx\b|\bvulkan-spirv\b|\bfunc\.func\b"
        ),
    ),
    (
        "tvm",
        re.compile(
            r"\bimport tvm\b|\bfrom tvm\b|\btvm\.\w+|\bapache-tvm\b|\bTVM(?:\b|_)|\bTVMScript\b|\bT\.prim_func\b"
            r"|\bR\.function\b"
            r"|\bI\.ir_module\b|\brelax\.\w+|\btir\.\w+|\brelay\.\w+"
        ),
    ),
)


def find_toolchain(repository: str, text: str) -> str | None:
    """``tvm`` or ``iree``: by the repository, else by what the text names most; None when it names neither."""
    for name, pattern in _REPOSITORIES:
        if pattern.search(repository):
            return name
    counts = {name: sum(1 for _ in pattern.finditer(text)) for name, pattern in _MARKS}
    if not any(counts.values()):
        counts = {name: len(re.findall(rf"\b{name}\b", text, re.I)) for name in counts}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None
