"""A Python program of IREE whose own reference is wrong, from the report to the verdict, on real releases."""

from __future__ import annotations

from datetime import date

import pytest

from bot.cli import verbs
from bot.issue import Issue
from bot.plan import RunOptions
from bot.verdict.verdict import VerdictKind
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.workbench import open_workbench

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]

BODY = '''Quotients of negative numbers are wrong with IREE 3.13.0:

```python
import numpy as np
import iree.compiler as ireec
import iree.runtime as rt

TEXT = """
func.func @div(%a: tensor<4xi32>, %b: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %q = arith.divsi %a, %b : tensor<4xi32>
  %r = arith.remsi %a, %b : tensor<4xi32>
  return %q, %r : tensor<4xi32>, tensor<4xi32>
}
"""
m = rt.load_vm_flatbuffer(ireec.compile_str(TEXT, target_backends=["llvm-cpu"]), driver="local-task")
a, b = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
q, r = m.div(a, b)
np.testing.assert_array_equal(q.to_host(), a // b)
```

It ends with an AssertionError.
'''


def test_a_reference_that_rounds_in_another_way_is_the_testcases_fault() -> None:
    """NumPy rounds quotients down, and the operation rounds them towards zero."""
    catalogue = load_catalogue()
    report = verbs.reproduce_issue(
        Issue(title="Wrong quotients", body=BODY, created=date(2026, 10, 25), source="div.md", sha256="0"),
        toolchain="iree",
        options=RunOptions(versions="3.11.0,3.13.0"),
        catalogue=catalogue,
        open_bench=lambda: open_workbench("auto", catalogue, Silent()),
    )
    assert report.verdict.kind is VerdictKind.INVALID_REPRO
    assert "what the definitions of its operations give" in report.verdict.headline
