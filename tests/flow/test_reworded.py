"""A diagnostic of IREE that other releases print in other words, from the report to the verdict, on real releases."""

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

BODY = """With IREE 3.5.0, `iree-compile --iree-hal-target-backends=vulkan-spirv rem.mlir -o rem.vmfb` fails:

```mlir
func.func @rem(%a: tensor<64xi64>, %b: tensor<64xi64>) -> tensor<64xi64> {
  %0 = arith.remsi %a, %b : tensor<64xi64>
  return %0 : tensor<64xi64>
}
```

```
rem.mlir:2:8: error: failed to legalize operation 'vector.insert' that was explicitly marked illegal
```
"""


def test_the_same_operation_that_another_release_refuses_in_other_words_is_the_same_failure() -> None:
    """3.13.0 says the same of ``vector.broadcast``, into which it makes the program's only operation."""
    catalogue = load_catalogue()
    report = verbs.reproduce_issue(
        Issue(title="Remainder of i64", body=BODY, created=date(2025, 6, 25), source="rem.md", sha256="0"),
        toolchain="iree",
        options=RunOptions(versions="3.5.0,3.13.0"),
        catalogue=catalogue,
        open_bench=lambda: open_workbench("auto", catalogue, Silent()),
    )
    assert report.verdict.kind is VerdictKind.CONFIRMED
    assert "with another message" in report.verdict.headline
    assert report.verdict.confidence < 0.9
