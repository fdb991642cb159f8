"""Texts of IREE programs, as people write them, and the values that they print."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

Shape = tuple[int, ...]
Number = float | int
Steps = tuple[tuple[str, ...], ...]
CPU = "--iree-hal-target-backends=llvm-cpu"
VMVX = "--iree-hal-target-backends=vmvx"


def tensor(shape: Shape, dtype: str) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{dtype}>"


def function(arguments: str, result: str, *body: str) -> str:
    """A function ``main`` whose body binds ``%r``."""
    lines = "".join(f"  {line}\n" for line in body)
    return f"func.func @main({arguments}) -> {result} {{\n{lines}  return %r : {result}\n}}\n"


def on_tensors(shape: Shape, dtype: str, count: int, body: Sequence[str], out: str = "") -> str:
    """A function of ``count`` tensors whose lines work on whole tensors; the last line binds ``%r``.

    ``T`` in a line stands for the type of the arguments.
    """
    kind = tensor(shape, dtype)
    arguments = ", ".join(f"%{name}: {kind}" for name in "abc"[:count])
    return function(arguments, out or kind, *(line.replace(": T", f": {kind}") for line in body))


def on_elements(shape: Shape, dtype: str, count: int, body: Sequence[str], out: str = "") -> str:
    """The same as a ``linalg.generic`` over the elements; ``T`` stands for the type of an element."""
    kind, made = tensor(shape, dtype), tensor(shape, out or dtype)
    names = "abc"[:count]
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    maps = ", ".join(["#id"] * (count + 1))
    loops = ", ".join(['"parallel"'] * len(shape))
    lines = "\n".join(f"    {line.replace(': T', f': {dtype}')}" for line in body)
    return f"""\
#id = affine_map<({dims}) -> ({dims})>
func.func @main({", ".join(f"%{n}: {kind}" for n in names)}) -> {made} {{
  %empty = tensor.empty() : {made}
  %result = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
      ins({", ".join(f"%{n}" for n in names)} : {", ".join([kind] * count)}) outs(%empty : {made}) {{
  ^bb0({", ".join(f"%{n}_in: {dtype}" for n in names)}, %out: {out or dtype}):
{lines}
    linalg.yield %r : {out or dtype}
  }} -> {made}
  return %result : {made}
}}
"""


def steps(
    name: str, inputs: Sequence[str], *, flags: Sequence[str] = (CPU,), device: str = "local-task", **more: str
) -> Steps:
    """Compile a file and run its function ``main``; ``expected``, as printed, adds the check of iree-run-module."""
    kind, _, values = more.get("expected", "").partition("=")
    expected = [f"--expected_output={kind}={','.join(re.findall(r'[^][ ]+', values))}"] if kind else []
    return (
        ("iree-compile", *flags, f"{name}.mlir", "-o", f"{name}.vmfb"),
        (
            "iree-run-module", f"--device={device}", f"--module={name}.vmfb",
            f"--function={more.get('function', 'main')}",
            *(f"--input={text}" for text in inputs), *expected,
        ),
    )  # fmt: skip


def given(shape: Shape, dtype: str, values: Sequence[Number]) -> str:
    """A value on the command line."""
    kind = "".join(f"{extent}x" for extent in shape) + dtype
    return f"{kind}={','.join(_number(value) for value in values)}"


def printed(shape: Shape, dtype: str, values: Sequence[Number]) -> str:
    """The line that iree-run-module prints."""
    kind = "".join(f"{extent}x" for extent in shape) + dtype
    return f"{kind}={_rows(shape, [_number(v) for v in values])}"


def _rows(shape: Shape, words: Sequence[str]) -> str:
    if len(shape) <= 1:
        return " ".join(words)
    size = math.prod(shape[1:])
    return "".join(f"[{_rows(shape[1:], words[at : at + size])}]" for at in range(0, len(words), size))


def _number(value: Number) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def ramp(shape: Shape, start: Number = 0, step: Number = 1) -> list[Number]:
    return [start + step * at for at in range(math.prod(shape))]


def each(function: Callable[..., Number], *values: Sequence[Number]) -> list[Number]:
    return [function(*numbers) for numbers in zip(*values, strict=True)]
