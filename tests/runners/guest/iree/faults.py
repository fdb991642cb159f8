"""IREE programs with a known fault, its location, and the devices or releases without the fault.

Each label is known before any search. ``planted``: the command line itself adds the pass, which cannot succeed.
``message``: only that pass of the compiler's source raises the error. ``stack``: the stack of the crash names the
pass. ``made``: the fault is in the operation of that name, and the other operations have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runners.core.protocol import Claim, ClaimKind, Signature, Testcase, TestcaseKind

GENERIC = ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic")
VMVX = ("--iree-hal-target-backends=vmvx",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One program. The finding's name must contain ``name``. ``right`` is a release without the fault."""

    title: str
    version: str
    testcase: Testcase
    claim: Claim
    level: str
    name: str
    known: str
    right: str = ""
    device: str = "llvm-cpu"
    retargeted: tuple[str, ...] = ()


def claim_crash(signal: str) -> Claim:
    return Claim(kind=ClaimKind.CRASH, signature=Signature(type=signal))


def claim_error(message: str) -> Claim:
    return Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message=message))


def claim_output(actual: str, expected: str = "") -> Claim:
    return Claim(kind=ClaimKind.WRONG_RESULT, actual=actual, expected=expected)


def make_compilation(mlir: str, flags: tuple[str, ...] = GENERIC) -> Testcase:
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"m.mlir": mlir},
        steps=(("iree-compile", *flags, "m.mlir", "-o", "m.vmfb"),),
    )


def make_execution(mlir: str, *inputs: str, flags: tuple[str, ...] = GENERIC) -> Testcase:
    words = (f"--input={text}" for text in inputs)
    step = ("iree-run-module", "--module=m.vmfb", "--device=local-sync", "--function=f", *words)
    once = make_compilation(mlir, flags)
    return Testcase(kind=once.kind, toolchain="iree", files=once.files, steps=(*once.steps, step))


RESOURCE = """\
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<1xi64>) {
  %one = arith.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %step = arith.constant dense_resource<count> : tensor<1xi64>
  %y = arith.addf %one, %x : tensor<4xf32>
  return %y, %step : tensor<4xf32>, tensor<1xi64>
}
{-# dialect_resources: { builtin: { count: "0x080000000700000000000000" } } #-}
"""
CROP = """\
func.func @f(%image: tensor<6x7x1x1x3xf32>) -> tensor<3x2x7xf32> {
  %e = tensor.empty() : tensor<1x3x6x7x1xf32>
  %t = linalg.transpose ins(%image : tensor<6x7x1x1x3xf32>) outs(%e : tensor<1x3x6x7x1xf32>)
    permutation = [3, 4, 0, 1, 2]
  %s = tensor.extract_slice %t[0, 0, 0, 0, 0] [1, 3, 2, 7, 1] [1, 1, 1, 1, 1]
    : tensor<1x3x6x7x1xf32> to tensor<3x2x7xf32>
  return %s : tensor<3x2x7xf32>
}
"""
NIBBLES = """\
#same = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<3x5xi4>) -> tensor<3x5xi32> {
  %e = tensor.empty() : tensor<3x5xi32>
  %r = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x5xi4>) outs(%e : tensor<3x5xi32>) {
  ^bb0(%a: i4, %o: i32):
    %b = arith.extui %a : i4 to i32
    linalg.yield %b : i32
  } -> tensor<3x5xi32>
  return %r : tensor<3x5xi32>
}
"""
COLUMN = """\
func.func @f(%pairs: tensor<?x2xi32>, %table: tensor<?x8xi32>) -> tensor<?x8xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %pairs, %c0 : tensor<?x2xi32>
  %rows = tensor.dim %table, %c0 : tensor<?x8xi32>
  %out = flow.dispatch.region -> (tensor<?x8xi32>{%rows}) {
    %init = tensor.empty(%n) : tensor<?x2xi32>
    %more = linalg.generic {
        indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}
        ins(%pairs : tensor<?x2xi32>) outs(%init : tensor<?x2xi32>) {
    ^bb0(%in: i32, %o: i32):
      %0 = arith.addi %in, %in : i32
      linalg.yield %0 : i32
    } -> tensor<?x2xi32>
    %flat = tensor.collapse_shape %more [[0, 1]] : tensor<?x2xi32> into tensor<?xi32>
    %w = tensor.insert_slice %flat into %table[0, 0] [%rows, 1] [1, 1] : tensor<?xi32> into tensor<?x8xi32>
    flow.return %w : tensor<?x8xi32>
  }
RETURN}
"""
RETURN = "  return %out : tensor<?x8xi32>\n"
TWICE = """\
  %e = tensor.empty(%rows) : tensor<?x8xi32>
  %twice = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%out : tensor<?x8xi32>) outs(%e : tensor<?x8xi32>) {
  ^bb0(%in: i32, %o: i32):
    %0 = arith.muli %in, %in : i32
    linalg.yield %0 : i32
  } -> tensor<?x8xi32>
  return %twice : tensor<?x8xi32>
"""
HALVES = """\
#in = affine_map<(r, c) -> (r, c)>
#out = affine_map<(r, c) -> (r)>
func.func @f(%x: tensor<2x4096xf16>) -> tensor<2xf16> {
  %zero = arith.constant 0.0 : f16
  %init = tensor.empty() : tensor<2xf16>
  %acc = linalg.fill ins(%zero : f16) outs(%init : tensor<2xf16>) -> tensor<2xf16>
  %sum = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x4096xf16>) outs(%acc : tensor<2xf16>) {
  ^bb0(%v: f16, %so_far: f16):
    %next = arith.addf %so_far, %v : f16
    linalg.yield %next : f16
  } -> tensor<2xf16>
  return %sum : tensor<2xf16>
}
"""
REMAINDER = """\
func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<f32> {
  %sum = arith.addf %a, %b : tensor<4xf32>
  %wall = util.optimization_barrier %sum : tensor<4xf32>
  %r = arith.remf %wall, %b : tensor<4xf32>
  %next = util.optimization_barrier %r : tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %s = linalg.reduce { arith.addf } ins(%next : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]
  return %s : tensor<f32>
}
"""
SHIFT = """\
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  %c = arith.constant dense<AMOUNT> : tensor<4xi32>
  %y = arith.OP %x, %c : tensor<4xi32>
  return %y : tensor<4xi32>
}
"""
ALLOCATES = """\
func.func @f(%n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %r = flow.dispatch.region -> (tensor<?xf32>{%n}) {
    %e = tensor.empty(%n) : tensor<?xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%e : tensor<?xf32>) {
    ^bb0(%o: f32):
      %m = memref.alloca(%n) : memref<?xf32>
      memref.store %z, %m[%c0] : memref<?xf32>
      %v = memref.load %m[%c0] : memref<?xf32>
      linalg.yield %v : f32
    } -> tensor<?xf32>
    flow.return %s : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
"""
DOUBLE = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
UNUSED = """\
func.func @f(%unused: tensor<3xf32>, %v: tensor<3xf32>) -> tensor<3xf32> {
  %twice = arith.addf %v, %v : tensor<3xf32>
  return %twice : tensor<3xf32>
}
"""


def make_preprocessing(passes: str) -> Testcase:
    return make_compilation(DOUBLE, (*GENERIC, f"--iree-preprocessing-pass-pipeline=builtin.module({passes})"))


PATTERNS = "iree-preprocessing-apply-pdl-patterns"
NO_PATTERNS = f"{PATTERNS}{{patterns-file=none.mlir}}"
LINES = "[1 2 3 4 0 0 0 0]"


def list_faults() -> Iterator[Fault]:
    yield from _compilations()
    yield from _before_passes()
    yield from _llvm()
    yield from _dispatches()


def _compilations() -> Iterator[Fault]:
    patterns = claim_error(
        "failed to open pattern module file: cannot open input file 'none.mlir': No such file or directory"
    )
    for version, passes in (
        ("3.13.0", NO_PATTERNS),
        ("3.8.0", f"canonicalize,cse,{NO_PATTERNS},canonicalize"),
        ("3.5.0", f"util.func(canonicalize,cse),{NO_PATTERNS}"),
    ):
        yield Fault(
            title=f"planted behind {passes.partition(PATTERNS)[0] or 'nothing'}", version=version,
            testcase=make_preprocessing(passes), claim=patterns, level="pass", name=PATTERNS, known="planted",
        )  # fmt: skip
    yield Fault(
        title="planted, of another kind",
        version="3.13.0",
        testcase=make_preprocessing("cse,iree-hal-verify-devices"),
        claim=claim_error(
            'unregistered target device "local"; ensure it is linked into the compiler (available = [ ])'
        ),
        level="pass",
        name="iree-hal-verify-devices",
        known="planted",
    )
    for version in ("3.10.0", "3.11.0"):
        yield Fault(
            title="resource constant",
            version=version,
            testcase=make_compilation(RESOURCE),
            claim=claim_crash("SIGSEGV"),
            level="pass",
            name="canonicalize",
            known="stack",
        )
    yield Fault(
        title="crop behind a transpose", version="3.9.0", testcase=make_compilation(CROP),
        claim=claim_error("expected type to be 'tensor<2x7x1x1x3xf32>' or a rank-reduced version. (size mismatch)"),
        level="pass", name="iree-global-opt-propagate-linalg-transpose", known="message",
    )  # fmt: skip
    yield Fault(
        title="odd number of nibbles",
        version="3.13.0",
        testcase=make_compilation(NIBBLES),
        claim=claim_error(
            "'stream.tensor.sizeof' op failed to calculate total byte count: 'tensor<15xi4>' does not have"
            " integral number of total bytes"
        ),
        level="pass",
        name="iree-stream-encode-host-tensors",
        known="message",
    )
    yield Fault(
        title="allocates inside",
        version="3.13.0",
        testcase=make_compilation(ALLOCATES),
        claim=claim_error(
            "'memref.alloca' op all stack allocations need to be hoisted to the entry block of the function"
        ),
        level="pass",
        name="iree-llvmcpu-check-ir-before-llvm-conversion",
        known="message",
    )
    yield Fault(
        title="unbounded column",
        version="2.9.0",
        testcase=make_compilation(COLUMN.replace("RETURN", RETURN)),
        claim=claim_error("'memref.alloca' op expected no unbounded stack allocations"),
        level="pass",
        name="iree-llvmcpu-check-ir-before-llvm-conversion",
        known="message",
    )


def _before_passes() -> Iterator[Fault]:
    yield Fault(
        title="types that do not fit",
        version="3.6.0",
        testcase=make_compilation(DOUBLE.replace("return %y : tensor<4", "return %y : tensor<5")),
        claim=claim_error(
            "use of value '%y' expects different type than prior uses: 'tensor<5xf32>' vs 'tensor<4xf32>'"
        ),
        level="parsing",
        name="parsing",
        known="made",
    )


def _llvm() -> Iterator[Fault]:
    for version, op, amount in (("3.5.0", "shli", "40"), ("3.13.0", "shli", "33"), ("3.9.0", "shrui", "64")):
        yield Fault(
            title=f"{op} by {amount}", version=version, device="llvm-cpu",
            testcase=make_execution(SHIFT.replace("AMOUNT", amount).replace("OP", op), "4xi32=1,2,3,4"),
            claim=claim_output("4xi32=0 0 0 0"), level="llvm-pass", name="", known="made",
        )  # fmt: skip
    yield Fault(
        title="unused argument", version="3.8.0", testcase=make_execution(UNUSED, "3xf32=1,2,3", "3xf32=1,2,3"),
        claim=claim_crash("SIGSEGV"), level="llvm-pass", name="none", known="stack",
    )  # fmt: skip


def _dispatches() -> Iterator[Fault]:
    column = COLUMN.replace("RETURN", RETURN)
    first_row = claim_output(
        "2x8xi32=[2 4 0 0 0 0 0 0][0 0 0 0 0 0 0 0]", "2x8xi32=[2 0 0 0 0 0 0 0][4 0 0 0 0 0 0 0]"
    )
    squares = claim_output(
        "2x8xi32=[4 16 0 0 0 0 0 0][0 0 0 0 0 0 0 0]", "2x8xi32=[4 0 0 0 0 0 0 0][16 0 0 0 0 0 0 0]"
    )
    for version, flags, device in (("3.5.0", GENERIC, "llvm-cpu"), ("3.4.0", VMVX, "vmvx")):
        yield Fault(
            title=f"column, {device}", version=version, right="3.6.0", device=device,
            testcase=make_execution(column, "1x2xi32=1,2", "2x8xi32=0", flags=flags),
            claim=first_row, level="dispatch", name="elementwise_Dx2_i32", known="made",
        )  # fmt: skip
    yield Fault(
        title="column, and squares of it", version="3.5.0", right="3.6.0",
        testcase=make_execution(COLUMN.replace("RETURN", TWICE), "1x2xi32=1,2", "2x8xi32=0"),
        claim=squares, level="dispatch", name="elementwise_Dx2_i32", known="made",
    )  # fmt: skip
    yield Fault(
        title="sums of halves", version="3.12.0", right="3.10.0", testcase=make_execution(HALVES, "2x4096xf16=0.1"),
        claim=claim_output("2xf16=256 256", "2xf16=393.25 393.25"), level="dispatch", name="2x4096_f16", known="made",
    )  # fmt: skip
    yield Fault(
        title="remainder, between others", version="3.13.0", device="vmvx", retargeted=("llvm-cpu",),
        testcase=make_execution(REMAINDER, "4xf32=3.5,1,1,3.5", "4xf32=2,2,2,4", flags=VMVX),
        claim=claim_output("f32=-3", "f32=7"), level="dispatch", name="dispatch_1_", known="made",
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------- nothing at fault

OPERATIONS = (
    "addf", "subf", "mulf", "maximumf", "minimumf", "addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minui",
)  # fmt: skip
CHAIN = """\
func.func @f(%a: TYPE, %b: TYPE) -> TYPE {
  %0 = arith.FIRST %a, %b : TYPE
  %1 = util.optimization_barrier %0 : TYPE
  %2 = arith.SECOND %1, %b : TYPE
  %3 = util.optimization_barrier %2 : TYPE
  %4 = arith.FIRST %3, %2 : TYPE
  return %4 : TYPE
}
"""
MATMUL = """\
func.func @f(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) -> tensor<8xf32> {
  %z = arith.constant dense<0.0> : tensor<8x4xf32>
  %m = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%z : tensor<8x4xf32>) -> tensor<8x4xf32>
  %w = util.optimization_barrier %m : tensor<8x4xf32>
  %n = arith.constant dense<0.0> : tensor<8xf32>
  %s = linalg.reduce { arith.addf } ins(%w : tensor<8x4xf32>) outs(%n : tensor<8xf32>) dimensions = [1]
  return %s : tensor<8xf32>
}
"""


def list_valid_programs() -> Iterator[tuple[str, Testcase]]:
    """Yield programs of several dispatches with equal values on all devices and releases."""
    for first, second in zip(OPERATIONS, (*OPERATIONS[1:], OPERATIONS[0]), strict=True):
        if first[-1] != "f" or second[-1] != "f":
            kind, values = "tensor<6xi32>", ("6xi32=1,-2,3,-4,5,600", "6xi32=7,8,-9,10,11,12")
            first, second = (op if op[-1] != "f" else "addi" for op in (first, second))
        else:
            kind, values = "tensor<6xf32>", ("6xf32=1,-2.5,3e5,-4,0.1,600", "6xf32=7,8,-9,1.25,11,12e-3")
        mlir = CHAIN.replace("TYPE", kind).replace("FIRST", first).replace("SECOND", second)
        yield f"{first}, then {second}", make_execution(mlir, *values)
    yield "matmul and sum", make_execution(MATMUL, "8x16xf32=0.3", "16x4xf32=0.7")
    yield "squares of a table", make_execution(SQUARES, "3x4xf32=1,2,3,4,5,6,7,8,9,10,11,12")


SQUARES = """\
func.func @f(%x: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %q = arith.mulf %x, %x : tensor<3x4xf32>
  %w = util.optimization_barrier %q : tensor<3x4xf32>
  %e = tensor.empty() : tensor<4x3xf32>
  %t = linalg.transpose ins(%w : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
  return %t : tensor<4x3xf32>
}
"""
