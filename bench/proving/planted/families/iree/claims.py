"""IREE programs about releases as they are: differences between releases, moved flags, missing parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.proving.planted.families.iree.text import (
    CPU,
    VMVX,
    Steps,
    function,
    given,
    on_tensors,
    printed,
    steps,
    tensor,
)
from bench.proving.planted.program import Ending, Findings, Planted, Program, tell_over
from bench.proving.story import Claim

REAL = Findings(may=("guilty-pass", "nondeterministic", "device-specific"), never=("out-of-bounds-access",))


NOT_THE_COMPILER = ("confirmed", "regression", "fixed", "invalid-repro", "not-reproduced")


def planted() -> Iterator[Planted]:
    yield from differences()
    yield from moved()
    yield from without_device()
    yield from incomplete()


def program(
    name: str,
    family: str,
    title: str,
    text: str,
    commands: Steps,
    shows: str,
    *,
    claim: Claim = "error",
    ending: Ending = "error",
    findings: Findings = REAL,
    device: str = "",
    quoted: str = "",
    right: str = "",
) -> Program:
    file = next(word for word in commands[0] if word.endswith(".mlir"))
    return Program(
        name=f"iree-{name}", family=f"iree-{family}", toolchain="iree", title=title, files={file: text},
        steps=commands,
        claim=claim, ending=ending, shows=shows, findings=findings, device=device, quoted=quoted, right=right,
    )  # fmt: skip


def differences() -> Iterator[Planted]:
    """What some releases do wrong and others right, or all of them."""

    def differs(made: Program, outcomes: Mapping[str, str], verdict: str, reported: str) -> Planted:
        never = {
            "fixed": ("invalid-repro", "confirmed", "regression"),
            "regression": ("invalid-repro", "fixed", "not-reproduced"),
            "confirmed": ("invalid-repro", "fixed", "regression", "not-reproduced"),
        }[verdict]
        return tell_over(made, outcomes, verdict, reported=reported, never=never)

    for n, (size, op) in enumerate([(3, "arith.addf"), (6, "arith.mulf"), (5, "arith.subf")]):
        kind = f"tensor<{size}xf32>"
        text = function(f"%mask: {kind}, %x: {kind}", kind, f"%r = {op} %x, %x : {kind}")
        values = f"{size}xf32={','.join(str(i + 1) for i in range(size))}"
        made = program(
            f"unused-{n}",
            "difference-unused",
            f"segfault at run time when the first of two {kind} is not used",
            text,
            steps("masked", [values, values]),
            "signal 11",
            claim="crash",
            ending="signal",
        )
        yield differs(made, {"3.8.0": "match", "3.10.0": "pass", "3.13.0": "pass"}, "fixed", "3.8.0")
    for n, (rows, count, value) in enumerate([(2, 4096, 0.1), (1, 8192, 0.05)]):
        text = f"""\
#in = affine_map<(r, c) -> (r, c)>
#out = affine_map<(r, c) -> (r)>
func.func @main(%x: tensor<{rows}x{count}xf16>) -> tensor<{rows}xf16> {{
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<{rows}xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<{rows}xf16>) -> tensor<{rows}xf16>
  %sum = linalg.generic {{indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<{rows}x{count}xf16>) outs(%init : tensor<{rows}xf16>) {{
  ^bb0(%v: f16, %acc: f16):
    %next = arith.addf %acc, %v : f16
    linalg.yield %next : f16
  }} -> tensor<{rows}xf16>
  return %sum : tensor<{rows}xf16>
}}
"""
        made = program(
            f"halves-{n}",
            "difference-halves",
            f"the sum of {count} halves is much too small",
            text,
            steps("halves", [f"{rows}x{count}xf16={value}"], flags=(CPU, "--iree-llvmcpu-target-cpu=generic")),
            "",
            claim="wrong-result",
            ending="printed",
        )
        yield differs(made, {"3.10.0": "pass", "3.12.0": "match", "3.13.0": "match"}, "regression", "3.12.0")
    for n, (flags, column) in enumerate([((CPU,), 0), ((VMVX,), 1), ((CPU,), 2)]):
        text = f"""\
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%pairs: tensor<?x2xi32>, %table: tensor<?x8xi32>) -> tensor<?x8xi32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %pairs, %c0 : tensor<?x2xi32>
  %rows = tensor.dim %table, %c0 : tensor<?x8xi32>
  %out = flow.dispatch.region -> (tensor<?x8xi32>{{%rows}}) {{
    %init = tensor.empty(%n) : tensor<?x2xi32>
    %more = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
        ins(%pairs : tensor<?x2xi32>) outs(%init : tensor<?x2xi32>) {{
    ^bb0(%in: i32, %o: i32):
      %0 = arith.addi %in, %in : i32
      linalg.yield %0 : i32
    }} -> tensor<?x2xi32>
    %flat = tensor.collapse_shape %more [[0, 1]] : tensor<?x2xi32> into tensor<?xi32>
    %w = tensor.insert_slice %flat into %table[0, {column}] [%rows, 1] [1, 1] : tensor<?xi32> into tensor<?x8xi32>
    flow.return %w : tensor<?x8xi32>
  }}
  return %out : tensor<?x8xi32>
}}
"""
        first = [0] * 8
        second = [0] * 8
        first[column], second[column] = 2, 4
        right = f"2x8xi32=[{' '.join(map(str, first))}][{' '.join(map(str, second))}]"
        made = program(
            f"column-{n}",
            "difference-column",
            f"insert_slice into column {column} writes a row",
            text,
            steps("column", ["1x2xi32=1,2", "2x8xi32=0"], flags=flags, expected=right),
            "[FAILED]",
            claim="wrong-result",
            ending="assertion",
        )
        yield differs(made, {"3.4.0": "match", "3.5.0": "match", "3.6.0": "pass", "3.13.0": "pass"}, "fixed", "3.5.0")
    for n, (rows, columns) in enumerate([(2, 5), (3, 9), (1, 7), (4, 6), (2, 11)]):
        text = row_maximum(rows, columns)
        numbers = [float(at - 40) for at in range(rows * columns)]
        right = printed((rows,), "f32", [max(numbers[i * columns : (i + 1) * columns]) for i in range(rows)])
        commands = steps(
            "row_max", [given((rows, columns), "f32", numbers)], **({"expected": right} if n % 2 else {})
        )
        made = program(
            f"negative-rows-{n}", "difference-row-max", f"the maximum of {columns} negative numbers is -0", text,
            commands,
            "[FAILED]" if n % 2 else "", claim="wrong-result", ending="assertion" if n % 2 else "printed",
            right="" if n % 2 else right,
        )  # fmt: skip
        if n < 3:
            yield differs(made, {"3.8.0": "match", "3.12.0": "match", "3.13.0": "pass"}, "fixed", "3.12.0")
        else:
            yield differs(made, {"3.8.0": "match", "3.10.0": "match", "3.12.0": "match"}, "confirmed", "3.12.0")
    for n, size in enumerate([4, 6]):
        text = on_tensors((size,), "f32", 1, ["%r = math.trunc %a : T"])
        made = program(
            f"trunc-{n}",
            "every-trunc",
            f"math.trunc on tensor<{size}xf32> does not link",
            text,
            (("iree-compile", CPU, "--iree-llvmcpu-target-cpu=generic", "trunc.mlir", "-o", "trunc.vmfb"),),
            "failed to link executable",
        )
        yield differs(made, {"3.11.0": "match", "3.13.0": "match"}, "confirmed", "3.13.0")
    for n, (rows, columns) in enumerate([(3, 5), (1, 7)]):
        text = on_tensors(
            (rows, columns),
            "i4",
            1,
            [f"%r = arith.extui %a : T to tensor<{rows}x{columns}xi32>"],
            f"tensor<{rows}x{columns}xi32>",
        )
        made = program(
            f"odd-nibbles-{n}",
            "every-odd-nibbles",
            f"an odd number of i4 ({rows}x{columns}) cannot be compiled",
            text,
            (("iree-compile", CPU, "odd.mlir", "-o", "odd.vmfb"),),
            "integral number of total bytes",
        )
        yield differs(made, {"3.11.0": "match", "3.13.0": "match"}, "confirmed", "3.13.0")


def row_maximum(rows: int, columns: int) -> str:
    """The text of a maximum over the rows of a matrix."""
    kind, out = tensor((rows, columns), "f32"), tensor((rows,), "f32")
    return f"""\
func.func @main(%a: {kind}) -> {out} {{
  %least = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : {out}
  %init = linalg.fill ins(%least : f32) outs(%empty : {out}) -> {out}
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}} ins(%a : {kind}) outs(%init : {out}) {{
  ^bb0(%in: f32, %acc: f32):
    %m = arith.maximumf %in, %acc : f32
    linalg.yield %m : f32
  }} -> {out}
  return %r : {out}
}}
"""


def moved() -> Iterator[Planted]:
    """Command lines and operations that these releases do not have any more."""
    text = on_tensors((4,), "f32", 1, ["%r = arith.mulf %a, %a : T"])
    run = (
        "iree-run-module",
        "--device=local-task",
        "--module=square.vmfb",
        "--function=main",
        "--input=4xf32=1,2,3,4",
    )
    cases = [
        (
            "prefetch",
            ("iree-compile", CPU, "--iree-llvmgpu-enable-prefetch=true", "square.mlir", "-o", "square.vmfb"),
            "Unknown command line argument",
        ),
        (
            "translate",
            ("iree-translate", "--iree-mlir-to-vm-bytecode-module", CPU, "square.mlir", "-o", "square.vmfb"),
            "command not found",
        ),
        (
            "hip-chip",
            ("iree-compile", CPU, "--iree-hip-target=gfx942", "square.mlir", "-o", "square.vmfb"),
            "Unknown command line argument",
        ),
    ]
    for name, compiled, shows in cases:
        made = program(
            f"moved-{name}",
            "moved",
            "the square of 3 is printed as 0",
            text,
            (compiled, run),
            shows,
            claim="wrong-result",
            ending="printed",
            findings=Findings(may=("api-moved", "missing")),
            quoted="4xf32=0 0 0 0",
        )
        yield tell_over(
            made, {"3.12.0": "incompatible", "3.13.0": "incompatible"}, "untestable", reported="3.13.0", told_by="",
            accepted=("inconclusive", "not-reproduced"), never=("confirmed", "regression", "fixed", "invalid-repro"),
        )  # fmt: skip


def without_device() -> Iterator[Planted]:
    """Programs for devices that the machine does not have."""
    for n, (backend, device, more) in enumerate([
        ("cuda", "cuda", ("--iree-cuda-target=sm_80",)), ("rocm", "hip", ("--iree-rocm-target=gfx942",)),
        ("metal-spirv", "metal", ()), ("cuda", "cuda", ("--iree-cuda-target=sm_60",)),
    ]):  # fmt: skip
        op = ["arith.addf", "arith.mulf", "arith.subf", "arith.maximumf"][n]
        text = on_tensors((8,), "f32", 2, [f"%r = {op} %a, %b : T"])
        commands = steps(
            "pair", ["8xf32=1", "8xf32=2"], flags=(f"--iree-hal-target-backends={backend}", *more), device=device
        )
        made = program(
            f"device-{n}",
            "no-device",
            f"{op} returns zeros on {device}",
            text,
            commands,
            "",
            claim="wrong-result",
            ending="printed",
            device=device,
            quoted="8xf32=0 0 0 0 0 0 0 0",
        )
        yield tell_over(
            made, {"3.12.0": "unavailable", "3.13.0": "unavailable"}, "untestable", reported="3.13.0", told_by="",
            accepted=("inconclusive",), never=NOT_THE_COMPILER,
        )  # fmt: skip


def incomplete() -> Iterator[Planted]:
    """Command lines that name a file which the report does not give."""
    text = on_tensors((2, 2), "f32", 1, ["%r = arith.addf %a, %a : T"])
    compiled = ("iree-compile", CPU, "twice.mlir", "-o", "twice.vmfb")
    run = ("iree-run-module", "--device=local-task", "--module=twice.vmfb", "--function=main")
    for name, more, file in [
        ("input-npy", ("--input=@activations.npy",), "activations.npy"),
        ("input-bin", ("--input=2x2xf32=@activations.bin",), "activations.bin"),
    ]:
        made = program(
            name,
            "missing-file",
            f"wrong sum for the values in {file}",
            text,
            (compiled, (*run, *more)),
            file,
            claim="wrong-result",
            ending="printed",
            findings=Findings(may=("missing",)),
            quoted="2x2xf32=[0 0][0 0]",
        )
        yield lacking(made)
    text = """\
util.global private @weight = #flow.parameter.named<"model"::"weight"> : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = util.global.load @weight : tensor<4xf32>
  %r = arith.mulf %x, %w : tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
    for name, file in [("parameters-irpa", "model=weights.irpa"), ("parameters-gguf", "model=weights.gguf")]:
        commands = steps("weighted", ["4xf32=1,2,3,4"])
        commands = (commands[0], (*commands[1], f"--parameters={file}"))
        made = program(
            name,
            "missing-file",
            "weights from a parameter file are applied twice",
            text,
            commands,
            "",
            claim="wrong-result",
            ending="printed",
            findings=Findings(may=("missing",)),
            quoted="4xf32=1 4 9 16",
        )
        yield lacking(made)


def lacking(made: Program) -> Planted:
    return tell_over(
        made, {"3.13.0": "incompatible"}, "incomplete", reported="3.13.0", told_by="", accepted=("inconclusive",),
        never=NOT_THE_COMPILER,
    )  # fmt: skip
