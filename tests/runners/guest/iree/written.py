"""Programs that fail at run time, with passes on their command line: a label names the decisive pass, or none.

The programs were labelled and committed before the first search. The first search agreed with three of five labels.
The other two were then corrected and no longer measure the search: a claim had half a line of the runtime's output,
and a label ignored that the compiler narrows doubles without any pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from runners.core.protocol import Claim, ClaimKind, Signature, Testcase
from tests.runners.guest.iree.faults import GENERIC, Fault, claim_output, make_execution

TENTHS = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<0.1> : tensor<4xf32>
  %y = arith.mulf %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
PRODUCT = """\
func.func @f(%a: tensor<2x4xf32>, %b: tensor<4x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x2xf32>) -> tensor<2x2xf32>
  %r = linalg.matmul ins(%a, %b : tensor<2x4xf32>, tensor<4x2xf32>)
    outs(%init : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
"""
HALF = "iree-input-conversion-demote-f32-to-f16"
SINGLE = "iree-input-conversion-demote-f64-to-f32"
CONTRACTION = "iree-global-opt-demote-contraction-inputs"


def with_passes(mlir: str, passes: str, *inputs: str) -> Testcase:
    flags = (*GENERIC, f"--iree-preprocessing-pass-pipeline=builtin.module({passes})")
    return make_execution(mlir, *inputs, flags=flags)


def claim_failure(status: str, message: str) -> Claim:
    return Claim(kind=ClaimKind.ERROR, signature=Signature(type=f"status:{status}", message=message))


def list_faults() -> Iterator[Fault]:
    yield Fault(
        title="a type narrowed behind the interface", version="3.13.0",
        testcase=with_passes(TENTHS, f"canonicalize,{HALF},cse", "4xf32=1,2,3,4"),
        claim=claim_failure("OUT_OF_RANGE", "buffer view byte length 16 exceeds backing buffer byte length 8"),
        level="written", name=HALF, known="planted",
    )  # fmt: skip
    yield Fault(
        title="a type narrowed, nested passes before", version="3.5.0",
        testcase=with_passes(TENTHS, f"util.func(canonicalize,cse),{HALF}", "4xf32=1,2,3,4"),
        claim=claim_failure("OUT_OF_RANGE", "printing results; processing function outputs; `sync func @f(%input0:"
                      " tensor<4xf32>) -> (%output0: tensor<4xf32>)`"), level="written", name=HALF, known="planted",
    )  # fmt: skip
    yield Fault(
        title="narrowed by itself", version="3.9.0",
        testcase=with_passes(TENTHS.replace("f32", "f64"), f"{SINGLE},cse,canonicalize", "4xf64=1,2,3,4"),
        claim=claim_failure("INVALID_ARGUMENT", "input0 element type mismatch; expected f32 (21000020) but have f64"),
        level="llvm-pass", name="none", known="made",
    )  # fmt: skip
    yield Fault(
        title="a product of narrowed inputs", version="3.13.0",
        testcase=with_passes(
            PRODUCT, f"cse,util.func({CONTRACTION}{{type=bf16 operation=matmul}}),canonicalize",
            "2x4xf32=1.01,2.02,3.03,4.04,5.05,6.06,7.07,8.08", "4x2xf32=1,1,1,1,1,1,1,1",
        ),
        claim=claim_output("2x2xf32=[10.0859 10.0859][26.25 26.25]", "2x2xf32=[10.1 10.1][26.26 26.26]"),
        level="written", name=CONTRACTION, known="planted",
    )  # fmt: skip
    yield Fault(
        title="passes that have no part in it", version="3.13.0",
        testcase=with_passes(TENTHS, "canonicalize,cse,util.func(canonicalize)", "5xf32=1,2,3,4,5"),
        claim=claim_failure("INVALID_ARGUMENT", "input0 shape dimension 0 mismatch; expected 4 but have 5"),
        level="llvm-pass", name="none", known="made",
    )  # fmt: skip
