"""IREE programs without a mistake, about which a report says what no release does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle

from bench.proving.planted.families.iree.make import INNOCENT
from bench.proving.planted.families.iree.text import (
    CPU,
    Number,
    Shape,
    Steps,
    each,
    given,
    on_elements,
    on_tensors,
    printed,
    ramp,
    steps,
    tensor,
)
from bench.proving.planted.program import WRONG_DONE, Ending, Planted, Program, tell_over
from bench.proving.story import Claim

Reference = Callable[..., Number]
BUILDS = (("3.12.0", "3.13.0"), ("3.10.0", "3.11.0"), ("3.11.0", "3.13.0"), ("3.8.0", "3.12.0"))
GENERIC = (CPU, "--iree-llvmcpu-target-cpu=generic")
DUMP = """\
PLEASE submit a bug report to https://github.com/iree-org/iree/issues and include the crash backtrace.
Stack dump:
0.	Program arguments: {command}
 #0 0x00007f6a3c1d2f17 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (libIREECompiler.so+0x6dd2f17)
 #1 0x00007f6a3c1d0c4e llvm::sys::RunSignalHandlers() (libIREECompiler.so+0x6dd0c4e)
 #2 0x00007f6a3c1d3838 SignalHandler(int, siginfo_t*, void*) (libIREECompiler.so+0x6dd3838)
 #3 0x00007f6a34a42520 (/lib/x86_64-linux-gnu/libc.so.6+0x42520)
 #4 0x00007f6a3d8f1a66 mlir::iree_compiler::(anonymous namespace)::{function} (libIREECompiler.so+0x84f1a66)
 #5 0x00007f6a3bd5e0a1 mlir::PassManager::run(mlir::Operation*) (libIREECompiler.so+0x695e0a1)
Segmentation fault (core dumped)"""


def unfounded() -> Iterator[Planted]:
    """Claims of wrong values, refusals, crashes and endless runs, of programs that run as they should."""
    made = (*_wrong_values(), *_failed_checks(), *_refusals(), *_crashes(), *_endless())
    for number, (program, builds) in enumerate(zip(made, cycle(BUILDS), strict=False)):
        yield tell_over(
            program, dict.fromkeys(builds, "pass"), "not-reproduced", reported=builds[number % 2], told_by="",
            never=(*WRONG_DONE, "invalid-repro"),
        )  # fmt: skip


def _claim(
    name: str, family: str, title: str, text: str, commands: Steps, *, claim: Claim, ending: Ending,
    quoted: str = "", right: str = "",
) -> Program:  # fmt: skip
    return Program(
        name=f"iree-unfounded-{name}", family=f"iree-{family}", toolchain="iree", title=title,
        files={f"{name.replace('-', '_')}.mlir": text}, steps=commands, claim=claim, ending=ending,
        shows={"signal": "signal 11", "assertion": "[FAILED]"}.get(ending, "error"),
        findings=INNOCENT, quoted=quoted, right=right,
    )  # fmt: skip


def _on_vectors() -> Iterator[tuple[str, str, str, list[str], str, str]]:
    """Name, title, text, inputs, the right line and the one of the report."""
    shape: Shape
    binary: list[tuple[str, str, str, tuple[Number, Number], tuple[Number, Number], Reference, list[Number]]] = [
        ("addi", "addi of two vectors drops the last element", "i32", (1, 2), (10, 1), lambda x, y: x + y,
         [11, 14, 17, 0]),
        ("andi", "andi behaves like ori", "i32", (4, 1), (6, 0), lambda x, y: int(x) & int(y), [6, 7, 6, 7]),
        ("shrui", "shrui by 1 keeps the sign bit", "i32", (8, 8), (1, 0), lambda x, y: int(x) >> int(y),
         [8, 16, 24, 32]),
        ("subi", "subi of i64 saturates at zero", "i64", (-2, 1), (2, 0), lambda x, y: x - y, [0, 0, 0, 0]),
        ("divf", "divf computes the reciprocal of the quotient", "f32", (1.0, 1.0), (4.0, 0.0), lambda x, y: x / y,
         [4.0, 2.0, 1.33333, 1.0]),
        ("minimumf", "minimumf returns its second operand", "f32", (0.0, 1.5), (2.0, 0.0), min,
         [2.0, 2.0, 2.0, 2.0]),
    ]  # fmt: skip
    for name, title, dtype, first, second, reference, wrong in binary:
        shape = (4,)
        a, b = ramp(shape, *first), ramp(shape, *second)
        text = on_tensors(shape, dtype, 2, [f"%r = arith.{name} %a, %b : T"])
        right = printed(shape, dtype, each(reference, a, b))
        inputs = [given(shape, dtype, a), given(shape, dtype, b)]
        yield name, title, text, inputs, right, printed(shape, dtype, wrong)
    shape = (2, 3)
    values: list[Number] = ramp(shape, -1.5, 0.75)
    text = on_elements(shape, "f32", 1, ["%r = arith.negf %a_in : T"])
    right = printed(shape, "f32", [-value for value in values])
    yield (
        "negf",
        "negf leaves negative values as they are",
        text,
        [given(shape, "f32", values)],
        right,
        printed(shape, "f32", [1.5, 0.75, 0.0, 0.75, 1.5, 2.25]),
    )
    text = f"""\
func.func @main(%a: {tensor((2, 3), "i32")}) -> {tensor((3, 2), "i32")} {{
  %empty = tensor.empty() : {tensor((3, 2), "i32")}
  %r = linalg.transpose ins(%a : {tensor((2, 3), "i32")}) outs(%empty : {tensor((3, 2), "i32")}) permutation = [1, 0]
  return %r : {tensor((3, 2), "i32")}
}}
"""
    yield ("swap", "linalg.transpose of a 2x3 matrix is only a reshape", text, [given((2, 3), "i32", ramp((2, 3)))],
           printed((3, 2), "i32", [0, 3, 1, 4, 2, 5]), printed((3, 2), "i32", ramp((3, 2))))  # fmt: skip
    text = """\
func.func @main(%a: tensor<2x2xi32>) -> tensor<4xi32> {
  %r = tensor.collapse_shape %a [[0, 1]] : tensor<2x2xi32> into tensor<4xi32>
  return %r : tensor<4xi32>
}
"""
    yield (
        "flat",
        "collapse_shape goes through the columns first",
        text,
        ["2x2xi32=1,2,3,4"],
        "4xi32=1 2 3 4",
        ("4xi32=1 3 2 4"),
    )


def _wrong_values() -> Iterator[Program]:
    for name, title, text, inputs, right, wrong in _on_vectors():
        commands = steps(name.replace("-", "_"), inputs, flags=GENERIC)
        yield _claim(
            name, "unfounded-values", title, text, commands, claim="wrong-result", ending="printed", quoted=wrong,
            right=right,
        )  # fmt: skip


def _failed_checks() -> Iterator[Program]:
    """iree-run-module is said to have found another value than the expected one."""
    for number, (name, op, start, step, reference, wrong) in enumerate([
        ("absi", "math.absi %a", -2, 1, abs, [0, 0, 0, 1, 2]),
        ("doubled", "arith.addi %a, %a", 1, 3, lambda x: 2 * x, [1, 4, 7, 10, 13]),
        ("popcount", "math.ctpop %a", 0, 1, lambda x: int(x).bit_count(), [0, 1, 2, 2, 1]),
    ]):  # fmt: skip
        shape = (5,)
        values = ramp(shape, start, step)
        right, seen = printed(shape, "i32", each(reference, values)), printed(shape, "i32", wrong)
        text = on_tensors(shape, "i32", 1, [f"%r = {op} : T"])
        commands = steps(name, [given(shape, "i32", values)], flags=GENERIC, expected=right)
        at = next(n for n, (a, b) in enumerate(zip(each(reference, values), wrong, strict=True)) if a != b)
        quoted = (
            f"EXEC @main\n[FAILED] result[0]: element at index {at} ({wrong[at]}) does not match the expected"
            f" ({reference(values[at])}); expected that the view is equal to contents of a view of 5xi32\n"
            f"  expected:\n{right}\n  actual:\n{seen}"
        )
        yield _claim(
            name, "unfounded-check", f"{op.partition(' ')[0]} gives other values than expected ({number + 1} wrong)",
            text, commands, claim="wrong-result", ending="assertion", quoted=quoted,
        )  # fmt: skip


def _refusals() -> Iterator[Program]:
    for name, op, message in [
        ("tanh", "math.tanh", "failed to legalize operation 'math.tanh' that was explicitly marked illegal"),
        ("sqrt", "math.sqrt", "'math.sqrt' op was not vectorized: no lowering for tensor<3x4xf32>"),
        ("sin", "math.sin", "One or more operations with large vector sizes (8192 bytes) were found"),
    ]:
        text = on_tensors((3, 4), "f32", 1, [f"%r = {op} %a : T"])
        line = next(line for line in text.split("\n") if op in line)
        at = line.index(op)
        quoted = f"{name}.mlir:2:{at + 1}: error: {message}\n{line}\n{' ' * at}^"
        commands = (("iree-compile", *GENERIC, f"{name}.mlir", "-o", f"{name}.vmfb"),)
        yield _claim(
            name, "unfounded-refusal", f"iree-compile rejects {op} on tensor<3x4xf32>", text, commands, claim="error",
            ending="error", quoted=quoted,
        )  # fmt: skip


def _crashes() -> Iterator[Program]:
    for name, op, function in [
        ("maxui", "arith.maxui %a, %a", "TileAndDistributePass::runOnOperation()"),
        ("xori", "arith.xori %a, %a", "FoldIdenticalOperands::matchAndRewrite(mlir::Operation*)"),
        ("muli", "arith.muli %a, %a", "ConvertToLLVMPass::runOnOperation()"),
    ]:
        text = on_elements((6,), "i32", 1, [f"%r = {op.replace('%a', '%a_in')} : T"])
        commands = (("iree-compile", *GENERIC, f"{name}.mlir", "-o", f"{name}.vmfb"),)
        quoted = DUMP.format(command=" ".join(commands[0]), function=function)
        yield _claim(
            name, "unfounded-crash", f"iree-compile crashes on arith.{name} with equal operands", text, commands,
            claim="crash", ending="signal", quoted=quoted,
        )  # fmt: skip


def _endless() -> Iterator[Program]:
    for name, op in [("ceil", "math.ceil %a"), ("square", "arith.mulf %a, %a")]:
        text = on_tensors((2, 2), "f32", 1, [f"%r = {op} : T"])
        commands = steps(name, ["2x2xf32=1,2,3,4"], flags=GENERIC)
        yield _claim(
            name, "unfounded-hang", f"{op.partition(' ')[0]} on tensor<2x2xf32> hangs", text, commands, claim="hang",
            ending="hang",
        )  # fmt: skip
