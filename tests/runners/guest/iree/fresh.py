"""Ten more faulty IREE programs, labelled and committed before the first search of them.

Labels are known as in ``faults.py``. The compiler and the runtime alone showed that each program fails as claimed.
"""

from __future__ import annotations

from collections.abc import Iterator

from runners.core.protocol import Claim, ClaimKind, Signature, Testcase, TestcaseKind
from tests.runners.guest.iree.faults import (
    DOUBLE,
    GENERIC,
    PATTERNS,
    VMVX,
    Fault,
    claim_error,
    claim_output,
    make_compilation,
    make_execution,
)

TOSA = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tosa.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
TRUNCATES = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.trunc %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
OVERFLOWS = """\
func.func @f(%x: tensor<4xi32>) -> tensor<4xi1> {
  %c = arith.constant dense<1> : tensor<4xi32>
  %y = arith.addi %x, %c overflow<nsw> : tensor<4xi32>
  %b = arith.cmpi sgt, %y, %x : tensor<4xi32>
  return %b : tensor<4xi1>
}
"""
ZEROS = """\
func.func @f(%x: tensor<4xi8>) -> tensor<4xi8> {
  %one = arith.constant dense<1> : tensor<4xi8>
  %a = arith.addi %x, %one : tensor<4xi8>
  %wall = util.optimization_barrier %a : tensor<4xi8>
  %z = math.ctlz %wall : tensor<4xi8>
  %next = util.optimization_barrier %z : tensor<4xi8>
  %r = arith.subi %next, %wall : tensor<4xi8>
  return %r : tensor<4xi8>
}
"""
POWERS = """\
func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = arith.subf %x, %y : tensor<4xf32>
  %wall = util.optimization_barrier %a : tensor<4xf32>
  %p = math.powf %wall, %y : tensor<4xf32>
  %next = util.optimization_barrier %p : tensor<4xf32>
  %r = arith.addf %next, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
OLD_TYPE = """\
func.func @f(%x: !flow.dispatch.tensor<readonly:tensor<4xf32>>) -> tensor<4xf32> {
  %y = flow.dispatch.tensor.load %x, offsets = [0], sizes = [4], strides = [1]
    : !flow.dispatch.tensor<readonly:tensor<4xf32>> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


def make_optimization(mlir: str, pipeline: str) -> Testcase:
    """Return a testcase of ``iree-opt`` with the reporter's own pipeline."""
    step = ("iree-opt", f"--pass-pipeline={pipeline}", "m.mlir")
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": mlir}, steps=(step,))


def list_faults() -> Iterator[Fault]:
    yield Fault(
        title="patterns by a flag", version="3.7.0",
        testcase=make_compilation(DOUBLE, (*GENERIC, "--iree-preprocessing-pdl-spec-filename=none.mlir")),
        claim=claim_error("failed to open pattern module file: cannot open input file 'none.mlir': No such file or"
                    " directory"),
        level="pass", name=PATTERNS, known="message",
    )  # fmt: skip
    yield Fault(
        title="transforms by a flag", version="3.12.0",
        testcase=make_compilation(DOUBLE, (*GENERIC, "--iree-preprocessing-transform-spec-filename=none.mlir")),
        claim=claim_error("'none.mlir' is neither a file nor a directory"),
        level="pass", name="iree-preprocessing-transform-interpreter", known="message",
    )  # fmt: skip
    pipeline = "builtin.module(func.func(cse),transform-preload-library{transform-library-paths=none.mlir})"
    yield Fault(
        title="iree-opt, a library that is not there", version="3.10.0", testcase=make_optimization(DOUBLE, pipeline),
        claim=claim_error("'none.mlir' is neither a file nor a directory"),
        level="pass", name="transform-preload-library", known="planted",
    )  # fmt: skip
    yield Fault(
        title="iree-opt, an illegal operation", version="3.4.0",
        testcase=make_optimization(TOSA, "builtin.module(canonicalize,iree-verify-input-legality)"),
        claim=claim_error("'tosa.add' op : illegal op still exists"),
        level="pass", name="iree-verify-input-legality", known="planted",
    )  # fmt: skip
    yield Fault(
        title="truncation needs a library", version="3.13.0", testcase=make_compilation(TRUNCATES),
        claim=claim_error("failed to link executable and generate target dylib (check above for more specific error"
                    " messages)"),
        level="pass", name="iree-hal-serialize-target-executables", known="message",
    )  # fmt: skip
    yield Fault(
        title="overflow that must not be",
        version="3.6.0",
        testcase=make_execution(OVERFLOWS, "4xi32=1,2,2147483647,4"),
        claim=claim_output("4xi1=01 01 01 01", "4xi1=01 01 00 01"),
        level="llvm-pass",
        name="",
        known="made",
    )
    yield Fault(
        title="leading zeros of bytes", version="3.7.0", device="vmvx", retargeted=("llvm-cpu",),
        testcase=make_execution(ZEROS, "4xi8=0,1,3,15", flags=VMVX),
        claim=claim_output("4xi8=30 28 25 11", "4xi8=6 4 1 -13"), level="dispatch", name="dispatch_1_", known="made",
    )  # fmt: skip
    yield Fault(
        title="powers of negative numbers",
        version="3.13.0",
        retargeted=("vmvx",),
        testcase=make_execution(POWERS, "4xf32=1,1,5,4", "4xf32=2,3,2,2"),
        claim=claim_output("4xf32=NAN NAN 14 8", "4xf32=2 -7 14 8"),
        level="dispatch",
        name="dispatch_1_",
        known="made",
    )
    yield Fault(
        title="one element too many", version="3.9.0", testcase=make_execution(DOUBLE, "5xf32=1,1,5,4,3"),
        claim=Claim(kind=ClaimKind.ERROR, signature=Signature(
            type="status:INVALID_ARGUMENT", message="input0 shape dimension 0 mismatch; expected 4 but have 5")),
        level="llvm-pass", name="none", known="made",
    )  # fmt: skip
    yield Fault(
        title="type of an older release", version="3.6.0", testcase=make_compilation(OLD_TYPE),
        claim=claim_error("unknown Flow type: dispatch.tensor"), level="parsing", name="parsing", known="made",
    )  # fmt: skip
