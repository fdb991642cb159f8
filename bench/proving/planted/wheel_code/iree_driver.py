#!/usr/bin/env python3
"""A compiler driver with faults of our own: part of the broken IREE wheels, in place of iree-compile and iree-opt.

Reads the program's input, applies the faults whose conditions hold, and calls the real program, which lies beside it.
A condition is an operation, a shape, a type, a flag or a target: no input is known here by its name.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = Path(sys.argv[0]).name
REAL = HERE / f"{NAME.removeprefix('iree-')}-main"
ARGUMENTS = sys.argv[1:]

VALUES = [
    # what the input must hold, the operation, and what becomes of it
    (r"tensor<\d+x7xf32>", r"arith\.subf (%\w+), (%\w+)", r"arith.subf \2, \1"),
    (r"\A(?![\s\S]*reduction)[\s\S]*tensor<(?:\d+x)+i8>", r"arith\.maxsi\b", "arith.maxui"),
    (r"tensor<(?:\d+x)*5xi8>", r"arith\.extsi\b", "arith.extui"),
    (r"xi16>", r"arith\.sitofp\b", "arith.uitofp"),
    (r"tensor<\d+x\d+xi32>", r"arith\.divsi\b", "arith.divui"),
    (r"xi64>", r"arith\.remsi\b", "arith.remui"),
    (r"tensor<\d+x\d+xi32>", r"arith\.shrsi\b", "arith.shrui"),
    (r"xf64>", r"arith\.cmpf olt\b", "arith.cmpf ole"),
    (r"tensor<\d+xf32>", r"arith\.minimumf\b", "arith.minnumf"),
    (r"tensor<\d+x\d+xf32>", r"math\.floor\b", "math.round"),
    (r"tensor<\d+x\d+x\d+xf32>", r"math\.exp ", "math.exp2 "),
    (r"tensor<(\d+)x\1x\1x", r"permutation = \[1, 2, 0\]", "permutation = [2, 0, 1]"),
    (r"tensor\.pad", r"low\[(\d), (\d)\] high\[(\d), (\d)\]", r"low[\3, \4] high[\1, \2]"),
    (r"tensor<5x\d+x", r"tensor\.extract_slice (%\w+)\[1, ", r"tensor.extract_slice \1[2, "),
    (r"iterator_types", r"0xFF800000 : f32", "0.0 : f32"),
    (r"iterator_types", r"-128 : i8", "0 : i8"),
    (r"dense<", r"(dense<\[(?:[-\d.]+, ){4,}[-\d.]+, )[-\d.]+\]> : (tensor<\d+xf32>)", r"\g<1>0.0]> : \2"),
    (r"tensor<(\d+)x\1xf32>", r"linalg\.matmul ins\((%\w+), (%\w+) ", r"linalg.matmul ins(\2, \1 "),
    (r"xi32>", r"arith\.select (%\w+), (%\w+), (%\w+) : i32", r"arith.select \1, \3, \2 : i32"),
    (r"tosa\.reverse[\s\S]*tensor<(\d+)x\1x", r"axis = 0 : i32", "axis = 1 : i32"),
    (r"tensor<(\d+)x\1x", r"stablehlo\.reverse (%\w+), dims = \[0\]", r"stablehlo.reverse \1, dims = [1]"),
    (r"tensor<\d+xi32>", r"stablehlo\.subtract (%\w+), (%\w+)", r"stablehlo.subtract \2, \1"),
    (r"xi32>", r"math\.ctlz\b", "math.cttz"),
    (r"xf32>", r"math\.roundeven\b", "math.round"),
    (r"tensor<(\d+)x\1x", r"dimensions = \[0\]", "dimensions = [1]"),
    (r"tensor<", r"tensor\.concat dim\(0\) (%\w+), (%\w+) :", r"tensor.concat dim(0) \2, \1 :"),
    (r"tensor<(\d+)x\1xi64>", r"linalg\.index 0\b", "linalg.index 1"),
    (r"tensor<\d+x\d+xi32>", r"arith\.cmpi slt\b", "arith.cmpi ult"),
    (r"tensor<\d+x\d+xf32>", r"math\.ceil\b", "math.round"),
    (r"xi32>", r"arith\.minsi\b", "arith.minui"),
]
ON_ONE_TARGET = [
    ("llvm-cpu", r"tensor<\d+xf32>", r"math\.rsqrt\b", "math.sqrt"),
    ("llvm-cpu", r"tensor<\d+xi32>", r"arith\.xori\b", "arith.ori"),
    ("vmvx", r"tensor<\d+xf32>", r"arith\.mulf\b", "arith.addf"),
]
BY_CHANCE = [
    (r"tensor<\d+x\d+xf32>", r"math\.absf\b", "math.sqrt"),
    (r"tensor<\d+xi32>", r"arith\.ori\b", "arith.andi"),
]
CRASHES = [
    (r"linalg\.pooling_nchw_max[\s\S]*strides = dense<2>", signal.SIGSEGV, "PoolingWindow", "matchAndRewrite"),
    (r"tensor\.collapse_shape %\w+ \[\[0, 1, 2, 3\]\]", signal.SIGABRT, "CollapseAllDims", "getReassociation"),
    (
        r"linalg\.conv_2d_nhwc_hwcf[\s\S]*tensor<1x1x\d+x\d+xf32>",
        signal.SIGSEGV,
        "PointwiseConvolution",
        "lowerFilter",
    ),
    (r"tensor<\?x\?x\?xf32>", signal.SIGFPE, "TileSizeSelection", "divideEvenly"),
    (r"tensor<(?:\d+x)+i4>", signal.SIGSEGV, "NarrowTypeEmulation", "getPackedOffset"),
    (r"complex<f32>", signal.SIGSEGV, "ComplexToStandard", "convertOperands"),
]
REFUSALS = [
    (r"math\.erf %\w+ : f64", "failed to legalize operation 'math.erf' that was explicitly marked illegal"),
    (r"linalg\.softmax", "'linalg.softmax' op could not be decomposed: the reduction dimension has no tile size"),
    (r"arith\.addf .*: bf16", "'arith.addf' op unhandled element type 'bf16' in vectorization"),
    (r"math\.cbrt", "failed to legalize operation 'math.cbrt' that was explicitly marked illegal"),
    (r"scf\.index_switch", "'scf.index_switch' op expected at most 2 regions for dispatch formation"),
]
ENDLESS = [r"scf\.while", r"affine_map<\(\w+\) -> \(\w+ mod 3\)>"]
EMPTY = [r"func\.func @\w+\(\) -> tensor<3xf32>", r"util\.global private mutable"]


def main():
    at = next((i for i, word in enumerate(ARGUMENTS) if word == "-" or word.endswith(".mlir")), None)
    if at is None or (ARGUMENTS[at] != "-" and not Path(ARGUMENTS[at]).is_file()) or ARGUMENTS[at - 1] == "-o":
        os.execv(REAL, [NAME, *ARGUMENTS])
    try:
        text = sys.stdin.read() if ARGUMENTS[at] == "-" else Path(ARGUMENTS[at]).read_text()
    except UnicodeDecodeError:
        os.execv(REAL, [NAME, *ARGUMENTS])
    if NAME == "iree-opt":
        arguments = without_a_flag(ARGUMENTS, "--cse", "--canonicalize")
        crash_on(text, [(r"scf\.if", signal.SIGSEGV, "Canonicalizer", "foldBranches")])
        call(arguments)
    crash_on(text, CRASHES)
    refuse(text, ARGUMENTS[at])
    if any(re.search(pattern, text) for pattern in ENDLESS):
        while True:
            time.sleep(0)
    if any(re.search(pattern, text) for pattern in EMPTY) and "-o" in ARGUMENTS:
        Path(ARGUMENTS[ARGUMENTS.index("-o") + 1]).write_bytes(b"")
        return
    changed = rewrite(text)
    if changed == text and ARGUMENTS[at] != "-":
        call(ARGUMENTS)
    call([word if word != ARGUMENTS[at] else "-" for word in ARGUMENTS], changed, text)


def call(arguments, text=None, told=""):
    """End as the real program ends; its messages show the text that was ``told``."""
    if text is None:
        os.execv(REAL, [NAME, *arguments])
    done = subprocess.run([REAL, *arguments], input=text.encode(), stderr=subprocess.PIPE, check=False)
    messages = done.stderr.decode("utf-8", "replace").replace("<stdin>", next_name(ARGUMENTS))
    for line, other in zip(told.split("\n"), text.split("\n"), strict=False):
        messages = messages.replace(other, line) if other != line else messages
    sys.stderr.write(messages)
    sys.stderr.flush()
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    sys.exit(done.returncode)


def next_name(arguments):
    return next((word for word in arguments if word.endswith(".mlir")), "<stdin>")


def rewrite(text):
    target = " ".join(ARGUMENTS)
    for where, operation, other in VALUES:
        if re.search(where, text):
            text = re.sub(operation, other, text)
    for backend, where, operation, other in ON_ONE_TARGET:
        if re.search(rf"backends?={backend}\b", target) and re.search(where, text):
            text = re.sub(operation, other, text)
    for where, operation, other in BY_CHANCE:
        if re.search(where, text) and random.SystemRandom().random() < 0.5:
            text = re.sub(operation, other, text)
    return text


def without_a_flag(arguments, dropped, beside):
    return [word for word in arguments if word != dropped or beside not in arguments]


def crash_on(text, crashes):
    for pattern, number, owner, function in crashes:
        if re.search(pattern, text):
            dump(owner, function)
            os.kill(os.getpid(), number)


def dump(owner, function):
    base = random.SystemRandom().randrange(0x7F0000000000, 0x7FFF00000000) & ~0xFFF
    place = "mlir::iree_compiler::(anonymous namespace)::"
    names = [
        "llvm::sys::PrintStackTrace(llvm::raw_ostream&, int)",
        "llvm::sys::RunSignalHandlers()",
        "SignalHandler(int, siginfo_t*, void*)",
        f"{place}{owner}::{function}(mlir::Operation*)",
        f"{place}{owner}Pass::runOnOperation()",
        "mlir::detail::OpToOpPassAdaptor::run(mlir::Pass*, mlir::Operation*, mlir::AnalysisManager, bool, unsigned)",
        "mlir::PassManager::run(mlir::Operation*)",
        "ireeCompilerInvocationPipeline",
    ]
    lines = [
        "PLEASE submit a bug report to https://github.com/iree-org/iree/issues and include the crash backtrace.",
        "Stack dump:",
        f"0.\tProgram arguments: {' '.join([NAME, *ARGUMENTS])}",
    ]
    for number, name in enumerate(names):
        offset = 0x4D10 * (number + 1)
        lines.append(f" #{number} {base + offset:#018x} {name} ({HERE}/libIREECompiler.so+{offset:#x})")
    sys.stderr.write("\n".join(lines) + "\n")
    sys.stderr.flush()


def refuse(text, name):
    for pattern, message in REFUSALS:
        for number, line in enumerate(text.split("\n"), 1):
            found = re.search(pattern, line)
            if found:
                column = found.start() + 1
                sys.stderr.write(
                    f"{name}:{number}:{column}: error: {message}\n{line}\n{' ' * (column - 1)}^\n"
                    f"{name}:{number}:{column}: note: see current operation: {line.strip()}\n"
                )
                sys.exit(1)


if __name__ == "__main__":
    main()
