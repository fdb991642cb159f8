"""Regenerate runners/toolchains/tvm/registered.json: names in TVM's registries that moved to another namespace.

Usage: python -m bench.surveys.registered [--check]

Programs write these names as strings: operators (``tir.exp``) and global functions. Every release and every fork at
hand lists them in the sandbox. A name moved if the next build lacks it and has the rest of it in exactly one of the
namespaces that may follow. ``--check`` writes nothing and exits 1 when the table differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from bench.surveys.names import list_builds
from runners.toolchains import tvm

TABLE = Path(tvm.__file__).parent / "registered.json"
FOLLOWING = {"tir": ("tirx", "s_tir", "prim"), "tirx": ("s_tir", "prim"), "arith": ("sym",)}
"""Namespace → the namespaces that took its names over."""

LIST_REGISTERED = r"""
import base64, importlib, json, zlib
import tvm

def find(*paths):
    for path in paths:
        module, _, name = path.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)()
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"none of {paths}")

def list_by_function(name):
    return tvm.get_global_func(name)()

def list_operators():
    return tvm.ir.Op.list_op_names() if hasattr(tvm.ir.Op, "list_op_names") else list_by_function("ir.ListOpNames")

functions = find("tvm._ffi.registry.list_global_func_names", "tvm_ffi.registry.list_global_func_names")
names = {str(name): None for one in (list_operators(), functions) for name in one}
text = base64.b64encode(zlib.compress(json.dumps(names, sort_keys=True).encode(), 9)).decode()
open("names.txt", "w").write(text)
"""

Move = tuple[str, str, str]
"""First build with the new name and without the old one, old name, new name."""


def find_moves(lists: Mapping[str, Collection[str]]) -> Iterator[Move]:
    """Yield the moves between neighbouring builds, oldest first."""
    for (_, before), (version, after) in pairwise(lists.items()):
        for name in sorted(set(before) - set(after)):
            space, _, rest = name.partition(".")
            found = [f"{new}.{rest}" for new in FOLLOWING.get(space, ()) if f"{new}.{rest}" in after]
            if len(found) == 1:
                yield version, name, found[0]


def render(moves: Collection[Move]) -> str:
    """One name a line, so that a new release makes a small difference."""
    return "[\n" + ",\n".join(f" {json.dumps(move)}" for move in moves) + "\n]\n"


def main() -> int:
    table = render(tuple(find_moves(list_builds(LIST_REGISTERED))))
    if "--check" in sys.argv[1:]:
        return int(table != TABLE.read_text(encoding="utf-8"))
    TABLE.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
