"""A claim on the number of dispatches is answered by counting them, on real releases of IREE."""

from __future__ import annotations

from datetime import date

import pytest

from bot.cli import verbs
from bot.extract.extract import extract
from bot.extract.types import NoRepro, Repro
from bot.issue import Issue
from bot.plan import RunOptions
from bot.verdict.verdict import Report, VerdictKind
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import ClaimKind
from runners.workbench import open_workbench

SCALE = """
util.func public @scale(%row: tensor<8xi64>, %table: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %f = tensor.empty() : tensor<8x32xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]} ins(%row : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: i64, %out: f32):
    %2 = arith.sitofp %in : i64 to f32
    linalg.yield %2 : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>,
      affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%table, %0 : tensor<8x32xf32>, tensor<8xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %2 = arith.mulf %a, %b : f32
    linalg.yield %2 : f32
  } -> tensor<8x32xf32>
  util.return %1 : tensor<8x32xf32>
}
"""


def make_issue(said: str, command: str = "", title: str = "Conversion of the row is not fused") -> Issue:
    body = f"{said}\n\n```mlir{SCALE}```\n{command}"
    return Issue(title=title, body=body, created=date(2025, 9, 1), source="fusion.md", sha256="0")


def reproduce(said: str, command: str = "") -> Report:
    catalogue = load_catalogue()
    return verbs.reproduce_issue(
        make_issue(said, command),
        toolchain="iree",
        options=RunOptions(versions="3.6.0,3.13.0"),
        catalogue=catalogue,
        open_bench=lambda: open_workbench("auto", catalogue, Silent()),
    )


COMMAND = "\n```\niree-compile --iree-hal-target-backends=llvm-cpu scale.mlir -o scale.vmfb\n```\n"


@pytest.mark.sandbox
@pytest.mark.compilers
def test_a_number_of_dispatches_is_counted_on_each_release() -> None:
    """3.6.0 fuses the conversion, and 3.13.0 does not. A command of the report is run up to the dispatches."""
    assert reproduce("It has two dispatches when one is enough.").verdict.kind is VerdictKind.REGRESSION
    assert reproduce("There are 2 dispatches instead of 1.", COMMAND).verdict.kind is VerdictKind.REGRESSION


@pytest.mark.sandbox
@pytest.mark.compilers
def test_another_number_than_the_report_speaks_of_leaves_the_question_open() -> None:
    """Every release compiles the program, and that is no answer."""
    verdict = reproduce("There are seven dispatches instead of five.").verdict
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "`1 dispatch` on 3.6.0" in verdict.headline


def test_a_claim_on_fusion_without_a_number_is_no_error() -> None:
    """Words such as "fails" in the prose do not make it one: a compilation that ends well would then be clean."""
    found = extract(make_issue("This pattern fails to match here."), toolchain="iree")
    assert isinstance(found, NoRepro)
    assert found.claim.kind is ClaimKind.WRONG_RESULT
    crash = extract(make_issue("It has 2 dispatches. The compiler crashes.", title="Segfault"), toolchain="iree")
    assert isinstance(crash, Repro)
    assert crash.claim.kind is ClaimKind.CRASH
