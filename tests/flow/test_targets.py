"""A report that gives MLIR and names no target, from its text to the verdict, on real releases of IREE."""

from __future__ import annotations

from datetime import date

import pytest

from bot.cli import verbs
from bot.issue import Issue
from bot.plan import RunOptions
from bot.report.sections.run_again import list_shell_lines
from bot.verdict.grounds import Ground
from bot.verdict.verdict import Report, VerdictKind
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import Outcome
from runners.workbench import open_workbench

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]

EXTEND = """
func.func @extend(%a: tensor<64x33xi4>) -> tensor<64x33xi32> {
  %0 = arith.extsi %a : tensor<64x33xi4> to tensor<64x33xi32>
  return %0 : tensor<64x33xi32>
}
"""
UNRESOLVED = "error: failed to legalize unresolved materialization from"
BODY = """This small function fails:

```mlir{text}```

```
extend.mlir:2:8: {error} ('memref<2112xi4>') to ('memref<1056xi8>') that remained live after conversion
```
"""


def reproduce(error: str, title: str = "Extension of i4 does not compile") -> Report:
    body = BODY.format(text=EXTEND, error=error)
    issue = Issue(title=title, body=body, created=date(2025, 6, 25), source="i4.md", sha256="0")
    catalogue = load_catalogue()
    return verbs.reproduce_issue(
        issue,
        toolchain="iree",
        options=RunOptions(versions="3.2.0,3.5.0,3.6.0"),
        catalogue=catalogue,
        open_bench=lambda: open_workbench("auto", catalogue, Silent()),
    )


def test_a_failure_of_another_target_than_the_usual_one_is_found() -> None:
    """Only AMD GPUs show it, on 3.3.0 to 3.5.0. The commands to repeat it are those of this target."""
    report = reproduce(UNRESOLVED)
    assert report.verdict.kind is VerdictKind.FIXED
    assert "This is for `hip`" in report.verdict.headline
    assert Ground.DEVICE_NOT_NAMED in report.verdict.grounds
    assert "--iree-hal-target-backends=rocm" in list_shell_lines(report)
    assert {seen.device for seen in report.observations} == {"llvm-cpu", "hip"}


def test_another_failure_of_a_target_leaves_the_question_open() -> None:
    """The words are not those of the report, and may hide its failure."""
    report = reproduce("error: no memory space for")
    assert report.verdict.kind is VerdictKind.INCONCLUSIVE
    assert "compiled for `hip`, 3.5.0 ends with" in report.verdict.headline
    assert Outcome.COMPILED in {seen.outcome for seen in report.observations}


def test_a_report_about_an_amd_gpu_is_compiled_for_its_chip() -> None:
    """The compiler refuses AMD without a chip: that refusal would be our own."""
    report = reproduce(UNRESOLVED, "[ROCm] Extension of i4 does not compile on gfx1100")
    assert report.verdict.kind is VerdictKind.FIXED
    assert "--iree-hip-target=gfx1100" in list_shell_lines(report)
    assert {seen.device for seen in report.observations} == {"hip"}
