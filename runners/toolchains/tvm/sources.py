"""Find the paths of TVM's repository for a pass, a function or the files of a stack."""

from __future__ import annotations

import re

from runners.core.toolchain.reports import SourceWords

_PASSES = {
    "LegalizeOps": ("python/tvm/relax/transform/legalize_ops", "src/relax/transform/legalize_ops.cc"),
    "tirx.backend.cuda": ("src/backend/cuda",),
    "tirx.backend.trn": ("src/backend/trn",),
    "tirx": ("src/tirx/transform",),
    "s_tir": ("src/s_tir/transform",),
    "tir": ("src/tir/transforms", "src/tir/transform"),
}
"""A pass, or the first part of its name, to its folders. The names of Relax passes have one part."""
_RELAX = ("src/relax",)
_NAMESPACES = {
    "arith": "src/arith",
    "codegen": "src/target",
    "meta_schedule": "src/s_tir/meta_schedule",
    "relax": "src/relax",
    "s_tir": "src/s_tir",
    "te": "src/te",
    "tirx": "src/tirx",
    "topi": "include/tvm/topi",
}
_NAMESPACE = re.compile(r"\btvm::(?:[a-z_]+::)*?(?P<name>[a-z_]+)::", re.ASCII)
_FRAME = re.compile(
    r'^[ \t]{0,8}File "[^"\n]{0,300}?/(?:site-packages/(?P<python>tvm/[\w/]{1,200}\.py)'
    r'|(?P<native>(?:src|include)/[\w/]{1,200}\.(?:cc|h)))", line \d',
    re.MULTILINE | re.ASCII,
)
_CALLERS = re.compile(
    r"python/tvm/(?:base|error|driver|runtime|ir/(?:transform|utils|base)|script/parser/(?:core|ir)"
    r"|(?:\w+/)?(?:pipeline|build|vm_build|expr_functor|block_builder|utils|_ffi_api))\b"
    r"|src/(?:ir/transform|relax/ir/(?:expr_functor|block_builder))\b|include/tvm/(?:runtime|ffi)\b"
)
"""Files that any part of TVM is called through."""


def find_pass(name: str) -> tuple[str, ...]:
    """Return the paths of a pass."""
    words = name.split(".")
    starts = (".".join(words[:count]) for count in range(len(words), 0, -1))
    known = next((_PASSES[start] for start in starts if start in _PASSES), ())
    return known or (_RELAX if len(words) == 1 and name[:1].isupper() else ())


def find_function(name: str) -> tuple[str, ...]:
    """Return the folder of a C++ function, from its namespace."""
    found = _NAMESPACE.match(name)
    folder = _NAMESPACES.get(found["name"]) if found is not None else None
    return (folder,) if folder else ()


def list_files(output: str) -> tuple[str, ...]:
    """Return the files of the functions on a traceback, without those that all calls pass.

    The innermost file of each language comes first: an importer in Python makes a call that C++ rejects.
    """
    found = [f"python/{one['python']}" if one["python"] else one["native"] for one in _FRAME.finditer(output)]
    files = [path for path in dict.fromkeys(reversed(found)) if not _CALLERS.match(path)]
    first = {path.endswith(".py"): path for path in reversed(files)}
    return tuple(sorted(files, key=lambda path: path not in first.values()))


SOURCES = SourceWords(find_pass=find_pass, find_function=find_function, list_files=list_files)
