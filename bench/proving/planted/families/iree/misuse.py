"""IREE command lines that are refused, and wrong expectations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.proving.planted.families.iree.make import Made, at_fault, lines
from bench.proving.planted.families.iree.text import CPU, Steps, given, on_elements, on_tensors, printed


def misused() -> Iterator[Made]:
    """Command lines and texts that are refused, and rightly."""
    double = on_tensors((4,), "f32", 1, ["%r = arith.addf %a, %a : T"])
    total = on_tensors((4,), "f32", 2, ["%r = arith.addf %a, %b : T"])

    def refused(name: str, title: str, text: str, commands: Steps, mended: Steps, shows: str, more: str = "") -> Made:
        return at_fault(
            name, name.rpartition("-")[0], title, text, commands, mended_commands=mended, mended=more, shows=shows,
            claim="error", ending="error",
        )  # fmt: skip

    one, two = ["4xf32=1,2,3,4"], ["4xf32=1,2,3,4", "4xf32=5,6,7,8"]
    good, both = lines("double", one), lines("total", two)
    yield refused(
        "input-missing-0",
        "iree-run-module: INVALID_ARGUMENT for an addition",
        total,
        lines("total", one),
        both,
        "INVALID_ARGUMENT",
    )
    yield refused(
        "input-missing-1",
        "invoking a function fails with a wrong number of inputs",
        double,
        lines("double", two),
        good,
        "INVALID_ARGUMENT",
    )
    for n, wrong in enumerate(["5xf32=1,2,3,4,5", "2x2xf32=1,2,3,4", "1x4xf32=1,2,3,4"]):
        yield refused(
            f"input-shape-{n}",
            f"a function of tensor<4xf32> does not take {wrong.partition('=')[0]}",
            double,
            lines("double", [wrong]),
            good,
            "INVALID_ARGUMENT",
        )
    for n, wrong in enumerate(["4xi32=1,2,3,4", "4xf64=1,2,3,4"]):
        yield refused(
            f"input-type-{n}",
            "element type mismatch at run time",
            double,
            lines("double", [wrong]),
            good,
            "INVALID_ARGUMENT",
        )
    for n, wrong in enumerate(["4xf32=1,2,3", "4xf32=1,2,3,4,5,6"]):
        yield refused(
            f"input-count-{n}",
            f"--input={wrong} cannot be parsed",
            double,
            lines("double", [wrong]),
            good,
            "INVALID_ARGUMENT|OUT_OF_RANGE",
        )
    for n, wrong in enumerate(["double", "forward"]):
        yield refused(
            f"function-name-{n}",
            f"function '{wrong}' is not in the module",
            double,
            lines("double", one, function=wrong),
            good,
            "NOT_FOUND",
        )
    for n, wrong in enumerate(["--iree-hal-target-backend=llvm-cpu", "--iree-llvmcpu-target-cpus=generic"]):
        commands = (("iree-compile", CPU, wrong, "double.mlir", "-o", "double.vmfb"), good[1])
        yield refused(
            f"flag-name-{n}",
            f"iree-compile does not know {wrong.partition('=')[0]}",
            double,
            commands,
            good,
            "Unknown command line argument",
        )
    for n, wrong in enumerate(["cpu", "llvm-cpu"]):
        yield refused(
            f"device-name-{n}",
            f"--device={wrong} is not registered",
            double,
            lines("double", one, device=wrong),
            good,
            "NOT_FOUND",
        )
    for n, (operation, wrong) in enumerate([("arith.addf", "i32"), ("arith.addi", "f32")]):
        bad = on_tensors((4,), wrong, 2, [f"%r = {operation} %a, %b : T"])
        fine = on_tensors((4,), "f32" if wrong == "i32" else "i32", 2, [f"%r = {operation} %a, %b : T"])
        compiled = (("iree-compile", CPU, "types.mlir", "-o", "types.vmfb"),)
        yield refused(f"operand-type-{n}", f"{operation} on {wrong} is rejected", bad, compiled, (), "must be", fine)
    for n, wrong in enumerate(["tensor<5xf32>", "tensor<4x1xf32>"]):
        bad = double.replace("return %r : tensor<4xf32>", f"return %r : {wrong}")
        compiled = (("iree-compile", CPU, "returns.mlir", "-o", "returns.vmfb"),)
        yield refused(
            f"return-type-{n}",
            "expects different type than prior uses",
            bad,
            compiled,
            (),
            "expects different type",
            double,
        )
    private = double.replace("func.func @main", "func.func private @main")
    yield refused("private-0", "a compiled function cannot be found", private, lines("hidden", one), (), "", double)
    spirv = ("iree-compile", "--iree-hal-target-backends=vulkan-spirv", "double.mlir", "-o", "double.vmfb")
    yield refused(
        "other-target-0",
        "a module compiled for Vulkan does not run on local-task",
        double,
        (spirv, good[1]),
        good,
        "",
    )


def misjudged() -> Iterator[Made]:
    """Expectations that are wrong, while what is computed is right."""

    def expects(name: str, family: str, title: str, text: str, inputs: Sequence[str], wrong: str, right: str) -> Made:
        file = name.rpartition("-")[0].replace("-", "_")
        return at_fault(
            name, family, title, text, lines(file, inputs, expected=wrong),
            mended_commands=lines(file, inputs, expected=right)
        )  # fmt: skip

    elementwise = [
        ("divsi", "i32", ["-7,7,-9"], ["2,2,4"], "-4 3 -3", "-3 3 -2", "divsi does not round down"),
        ("remsi", "i32", ["-7,7,8"], ["3,3,3"], "2 1 2", "-1 1 2", "remsi has the sign of the first operand"),
        ("maxui", "i32", ["-1,2,3"], ["1,1,1"], "1 2 3", "-1 2 3", "maxui of -1 and 1 is -1"),
        ("subi", "i32", ["1,2,3"], ["3,2,1"], "2 0 -2", "-2 0 2", "subi has the wrong sign"),
    ]
    for n, (op, dtype, a, b, wrong, right, title) in enumerate(elementwise):
        text = on_tensors((3,), dtype, 2, [f"%r = arith.{op} %a, %b : T"])
        yield expects(
            f"expects-{op}-{n}",
            "wrong-expectation",
            title,
            text,
            [f"3x{dtype}={a[0]}", f"3x{dtype}={b[0]}"],
            f"3x{dtype}={wrong}",
            f"3x{dtype}={right}",
        )
    for n, (op, values, wrong, right) in enumerate([
        ("math.roundeven", "0.5,1.5,2.5", "1 2 3", "0 2 2"), ("math.floor", "-0.5,0.5,1.5", "0 0 1", "-1 0 1"),
        ("math.rsqrt", "1,4,16", "1 2 4", "1 0.5 0.25"),
    ]):  # fmt: skip
        text = on_tensors((3,), "f32", 1, [f"%r = {op} %a : T"])
        yield expects(
            f"expects-unary-{n}",
            "wrong-expectation",
            f"{op} gives other values than expected",
            text,
            [f"3xf32={values}"],
            f"3xf32={wrong}",
            f"3xf32={right}",
        )
    for n, (op, dtype, first, second, most, wrapped) in enumerate([
        ("addi", "i8", 100, 100, 127, -56), ("muli", "i16", 300, 300, 32767, 24464),
        ("subi", "i8", -100, 100, -128, 56),
    ]):  # fmt: skip
        text = on_elements((2,), dtype, 2, [f"%r = arith.{op} %a_in, %b_in : T"])
        inputs = [given((2,), dtype, [first, first]), given((2,), dtype, [second, second])]
        yield expects(
            f"overflow-{n}",
            "overflow",
            f"arith.{op} on {dtype} wraps around",
            text,
            inputs,
            printed((2,), dtype, [most] * 2),
            printed((2,), dtype, [wrapped] * 2),
        )
    for n, predicate in enumerate(["oeq", "ole"]):
        text = on_elements(
            (2,),
            "f32",
            2,
            [f"%c = arith.cmpf {predicate}, %a_in, %b_in : T", "%r = arith.extui %c : i1 to i32"],
            "i32",
        )
        yield expects(
            f"nan-{n}",
            "nan-compared",
            f"{predicate} is false for two equal numbers, nan",
            text,
            ["2xf32=nan,1", "2xf32=nan,1"],
            "2xi32=1 1",
            "2xi32=0 1",
        )
