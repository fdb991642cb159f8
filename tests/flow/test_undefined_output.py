"""A wrong value that no output shows: the testcase is at fault if its output depends on an undefined value."""

from __future__ import annotations

from datetime import date

import pytest

from bot.cli import verbs
from bot.issue import Issue
from bot.plan import RunOptions
from bot.verdict.verdict import Report, VerdictKind
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import FindingKind
from runners.workbench import open_workbench

PRODUCT = """func.func @product(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {{
  %e = tensor.empty() : tensor<4x4xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs({to} : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}}
"""
IREE = """Some rows are wrong in a long-running process, and other ones for each call.

```mlir
{text}```

```
iree-compile --iree-hal-target-backends=llvm-cpu product.mlir -o product.vmfb
iree-run-module --device=local-task --module=product.vmfb --function=product --input=4x8xf32=1 --input=8x4xf32=2
```
"""
SUM = """import numpy as np
import tvm
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def total(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    C = T.sblock_alloc_buffer((4,), "float32")
    for i, k in T.grid(4, 8):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            {init}
            C[vi] = C[vi] + A[vi, vk]
    for i in range(4):
        with T.sblock("copy"):
            vi = T.axis.remap("S", [i])
            B[vi] = C[vi]

f = tvm.compile(total, target="llvm")
a = tvm.runtime.tensor(np.ones((4, 8), "float32"))
b = tvm.runtime.tensor(np.zeros((4,), "float32"))
f(a, b)
print(b.numpy())
"""
SETS = "with T.init():\n                C[vi] = T.float32(0)"
TVM = "The sums are wrong in a long-running process, and other ones for each call.\n\n```python\n{text}```\n"


def reproduce(toolchain: str, body: str, versions: str) -> Report:
    catalogue = load_catalogue()
    issue = Issue(title="Wrong values", body=body, created=date(2026, 9, 28), source="values.md", sha256="0")
    return verbs.reproduce_issue(
        issue,
        toolchain=toolchain,
        options=RunOptions(versions=versions),
        catalogue=catalogue,
        open_bench=lambda: open_workbench("auto", catalogue, Silent()),
    )


@pytest.mark.sandbox
@pytest.mark.compilers
@pytest.mark.parametrize(
    ("toolchain", "body", "versions", "is_undefined"),
    [
        ("iree", IREE.format(text=PRODUCT.format(to="%e")), "3.12.0,3.13.0", True),
        ("iree", IREE.format(text=PRODUCT.format(to="%f")), "3.12.0,3.13.0", False),
        ("tvm", TVM.format(text=SUM.format(init="pass")), "0.26.0,0.27.0", True),
        ("tvm", TVM.format(text=SUM.format(init=SETS)), "0.26.0,0.27.0", False),
    ],
    ids=["empty tensor", "filled tensor", "new buffer", "buffer that is set first"],
)
def test_an_output_that_depends_on_unwritten_memory_is_the_testcases_fault(
    toolchain: str, body: str, versions: str, is_undefined: bool
) -> None:
    """With that memory filled, the program prints one output or another. A defined output is the same each time."""
    report = reproduce(toolchain, body, versions)
    assert (report.verdict.kind is VerdictKind.INVALID_REPRO) is is_undefined
    assert any(one.kind is FindingKind.UNINITIALIZED_READ for one in report.findings) is is_undefined


CAST = """The bytes are wrong: the lower bits are lost.

```mlir
func.func @bytes(%a: tensor<3xf32>) -> tensor<3xi8> {{
  %r = arith.fptosi %a : tensor<3xf32> to tensor<3xi8>
  return %r : tensor<3xi8>
}}
```

```
iree-compile --iree-hal-target-backends=llvm-cpu bytes.mlir -o bytes.vmfb
iree-run-module --device=local-task --module=bytes.vmfb --function=bytes --input=3xf32={values}
```
"""


@pytest.mark.sandbox
@pytest.mark.compilers
@pytest.mark.parametrize(("values", "is_undefined"), [("1.5,300,-300", True), ("1.5,30,-30", False)])
def test_an_output_that_depends_on_a_broken_rule_is_the_testcases_fault(values: str, is_undefined: bool) -> None:
    """With zeros in the place of the values that no byte can hold, the program prints another output."""
    report = reproduce("iree", CAST.format(values=values), "3.12.0,3.13.0")
    assert (report.verdict.kind is VerdictKind.INVALID_REPRO) is is_undefined
    assert any(one.kind is FindingKind.BROKEN_RULE for one in report.findings) is is_undefined
