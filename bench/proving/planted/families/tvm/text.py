"""Texts of TVM programs, as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

IMPORTS = """\
import numpy as np
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
"""
TIRX = "from tvm.script import tirx as T\n"
Parameters = Sequence[tuple[str, tuple[int | str, ...], str]]
"""Name, shape and type of each."""


def module(parameters: Parameters, body: Sequence[str], out: str = "gv", name: str = "Module") -> str:
    """A module with one function in TVMScript; each line of the body binds a name to an operator of ``R``."""
    arguments = ", ".join(f'{p}: R.Tensor({shape!r}, dtype="{dtype}")' for p, shape, dtype in parameters)
    lines = "\n".join(f"            {line}" for line in body)
    return f"""
@I.ir_module
class {name}:
    @R.function
    def main({arguments}):
        with R.dataflow():
{lines}
            R.output({out})
        return {out}

"""


def builder(parameters: Parameters, body: Sequence[str], out: str = "gv", name: str = "Module") -> str:
    """The same made by a block builder."""
    made = "\n".join(f'{p} = relax.Var("{p}", R.Tensor({shape!r}, "{dtype}"))' for p, shape, dtype in parameters)
    lines = []
    for line in body:
        bound, _, operator = line.partition(" = ")
        operator = re.sub(r"\bR\.const\b", "relax.const", operator)
        operator = re.sub(r"\bR\.", "relax.op.", operator)
        emit = "emit_output" if bound == out else "emit"
        lines.append(f"        {bound} = bb.{emit}({operator})")
    names = ", ".join(p for p, _, _ in parameters)
    text = "\n".join(lines)
    return f"""
bb = relax.BlockBuilder()
{made}
with bb.function("main", [{names}]):
    with bb.dataflow():
{text}
    bb.emit_func_output({out})
{name} = bb.get()
"""


def run(values: Mapping[str, str], module_name: str = "Module") -> str:
    """Compile a module and call its main function with these values."""
    given = "\n".join(f"{name} = {text}" for name, text in values.items())
    arguments = ", ".join(f"tvm.runtime.tensor({name})" for name in values)
    return f"""
{given}
ex = tvm.compile({module_name}, target="llvm")
vm = relax.VirtualMachine(ex, tvm.cpu())
got = vm["main"]({arguments}).numpy()
"""


def ramp(shape: tuple[int, ...], dtype: str = "float32", start: str = "") -> str:
    """Values that differ from each other: 0, 1, 2 …, from ``start`` on."""
    count = math.prod(shape)
    reshaped = f".reshape({', '.join(map(str, shape))})" if len(shape) != 1 else ""
    row = f'np.arange({count}, dtype="{dtype}")'
    return (f"({row} {start})" if start else row) + reshaped


def noise(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> str:
    """Random values, the same in every run."""
    return f'np.random.default_rng({seed}).normal(size={shape!r}).astype("{dtype}")'
