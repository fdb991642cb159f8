"""The interpreter of TIR computes what the compiler computes, and votes on the calls of compiled kernels."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from runners.core.failure.oracle import ASSERTION
from runners.core.findings.kinds import Reference
from runners.core.protocol import Exited, Outcome, Signature, Testcase, TestcaseKind
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.tvm.diagnosis.reference import ask_reference
from tests.runners.guest.tvm.sweep import LAUNCHER, read_report, run_forked
from tests.support.means import make_means
from tests.support.observed import observe

pytestmark = pytest.mark.compilers

RELEASES = ("0.25.0", "0.27.0")
NEWEST = RELEASES[-1]
START = """\
import numpy as np
import tvm
from tvm import te
from tvm.script import ir as I, tirx as T

def tensor(values, dtype):
    return tvm.runtime.tensor(np.asarray(values, dtype))

"""
DIFFERS, AGREES, EXACT = ("differs", None), ("agrees", False), ("agrees", True)
UNDEFINED = ("undefined", None)


def ask(tmp_path: Path, program: str, version: str = NEWEST) -> list[dict[str, Any]]:
    """Return the lines that the guest writes about a program."""
    (tmp_path / "r.py").write_text(START + program)
    path = tmp_path / "findings"
    path.unlink(missing_ok=True)
    run_forked(version, (str(LAUNCHER), "tvm.reference.vote", "r.py"), tmp_path, REPROBOT_FINDINGS=str(path))
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def vote(tmp_path: Path, program: str, version: str = NEWEST) -> list[tuple[str, bool | None]]:
    """Return the votes on a program: what the interpreter says, and whether it says so exactly."""
    told = [line["evidence"] for line in ask(tmp_path, program, version) if line["kind"] == "reference"]
    assert all(one["by"] == "definitions" for one in told)
    return [(one["vote"], one.get("exact")) for one in told]


def ask_host(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the evidence of the host's findings from the lines that a guest wrote."""
    written = "".join(json.dumps(line) + "\n" for line in lines)
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": ""}, steps=(("python", "r.py"),))
    seen = observe("1.0", Outcome.MATCH, ended=Exited(code=1), signature=Signature(type=ASSERTION))
    means = make_means(hook=lambda _version, _testcase: written)
    return [dict(one.evidence) for one in ask_reference(Failure(testcase=testcase, seen=seen), means).findings]


@cache
def compare_kernels(version: str) -> dict[str, dict[str, Any]]:
    return read_report(version, "reference/kernels")


@pytest.mark.parametrize("version", RELEASES)
def test_every_operation_agrees_with_the_compiler(version: str) -> None:
    """One changed element of the result is a difference."""
    found = compare_kernels(version)
    assert len(found["votes"]) > 90
    assert {name: vote for name, vote in found["votes"].items() if vote != "agrees"} == {}
    assert {name: vote for name, vote in found["changed"].items() if vote != "differs"} == {}


@pytest.mark.parametrize("version", RELEASES)
def test_an_undefined_or_unknown_operation_has_no_value(version: str) -> None:
    refused = compare_kernels(version)["refused"]
    assert len(refused) > 15
    assert all(refused.values()), refused
    assert "outside its buffer" in refused["beyond"]


SCALAR_IN_LANES = """
@T.prim_func
def cube(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
    for i in {loop}(8):
        y = a[i]
        b[i] = y * y * y

b = tensor([0] * 8, "float32")
tvm.compile(cube, target="llvm")(tensor(range(8), "float32"), b)
print(b.numpy())
"""


@pytest.mark.parametrize("version", RELEASES)
def test_a_vectorized_loop_means_the_serial_loop(tmp_path: Path, version: str) -> None:
    assert vote(tmp_path, SCALAR_IN_LANES.format(loop="T.vectorized"), version) == [DIFFERS]
    assert vote(tmp_path, SCALAR_IN_LANES.format(loop="T.serial"), version) == [AGREES]


@pytest.mark.parametrize("version", RELEASES)
def test_a_cast_to_fewer_values_wraps_around(tmp_path: Path, version: str) -> None:
    """The simplifier takes the cast of an unsigned number for a number of the same value."""
    program = """
@T.prim_func
def clamp(A: T.Buffer((6,), "uint8"), B: T.Buffer((6,), "int32")):
    for i in range(6):
        if T.Cast("int32", T.Cast("int8", A[i])) >= 0:
            B[i] = T.Cast("int32", A[i])
        else:
            B[i] = 0

b = tensor([0] * 6, "int32")
tvm.compile(clamp, target="llvm")["main"](tensor([0, 1, 127, 128, 200, 255], "uint8"), b)
print(b.numpy())
"""
    assert vote(tmp_path, program, version) == [DIFFERS]


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(("narrow", "votes"), [("float8_e4m3fn", [DIFFERS]), ("float64", [AGREES])])
def test_a_cast_that_the_program_asks_for_rounds(
    tmp_path: Path, version: str, narrow: str, votes: list[object]
) -> None:
    """Releases drop the cast to a narrow type and back. The wide evaluation would drop its rounding too."""
    program = f"""
@T.prim_func
def keep(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
    for i in range(3):
        B[i] = T.Cast("float32", T.Cast("{narrow}", A[i]))

b = tensor([0] * 3, "float32")
tvm.compile(keep, target="llvm")["main"](tensor([1.1, -0.3, 240.0], "float32"), b)
print(b.numpy())
"""
    assert vote(tmp_path, program, version) == votes


ACCUMULATES = """
@T.prim_func(s_tir=True)
def sums(A: T.Buffer((4, 3), "{dtype}"), B: T.Buffer((4,), "{dtype}")):
    for i, k in T.grid(4, 3):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            B[vi] = B[vi] + A[vi, vk]

built = tvm.compile(sums, target="llvm")
a, b = tensor(np.arange(12).reshape(4, 3), "{dtype}"), tensor([0] * 4, "{dtype}")
for _ in range(3):
    built(a, b)
    print(b.numpy())
{more}
"""


@pytest.mark.parametrize(
    ("dtype", "more", "votes"),
    [
        ("int32", "", [EXACT]),
        ("float32", "", [AGREES]),
        ("int32", "print(tvm.IRModule({'main': sums}).script())", [AGREES]),
        ("int32", "tvm.ir.assert_structural_equal(sums, sums)", []),
        ("int32", "built(a, tensor([2**31 - 1] * 4, 'int32'))", [UNDEFINED]),
    ],
    ids=["integers", "floats", "a claim about a module", "a claim about equality", "an undefined call"],
)
def test_a_block_without_a_start_adds_to_what_its_output_holds(
    tmp_path: Path, dtype: str, more: str, votes: list[tuple[str, bool | None]]
) -> None:
    """Integers have no rounding, so the values are exactly right, unless the claim may be about something else."""
    assert vote(tmp_path, ACCUMULATES.format(dtype=dtype, more=more)) == votes


JUMPS = """
@T.prim_func(s_tir=True)
def main(B: T.Buffer((12,), "int32")):
    for i in range(0, 12, {step}):
        for j in range(i, 12):
            if j > i + 1:
                break
            if j == 5:
                continue
            B[j] = B[j] + 1

b = tensor([0] * 12, "int32")
tvm.compile(main, target="llvm")(b)
print(b.numpy())
"""


@pytest.mark.parametrize("version", RELEASES)
def test_loops_may_end_early(tmp_path: Path, version: str) -> None:
    """The compiler does not rewrite the begin of a loop inside a loop with a step."""
    assert vote(tmp_path, JUMPS.format(step=4), version) == [DIFFERS]
    assert vote(tmp_path, JUMPS.format(step=1), version) == [EXACT]


OVERFLOWS = """
@T.prim_func
def main(A: T.Buffer((4,), "{dtype}"), B: T.Buffer((4,), "{dtype}")):
    for i in range(4):
        B[i] = (A[i] * {factor}) // 2

b = tensor([0] * 4, "{dtype}")
tvm.compile(main, target="llvm")(tensor([0, 3, {large}, 5], "{dtype}"), b)
print(b.numpy())
"""


@pytest.mark.parametrize(
    ("dtype", "large", "votes"), [("int32", 2**30, [UNDEFINED]), ("int32", 7, [EXACT]), ("int8", 100, [EXACT])]
)
def test_a_wrong_value_can_only_be_an_undefined_one(
    tmp_path: Path, dtype: str, large: int, votes: list[tuple[str, bool | None]]
) -> None:
    """A product that overflows int32 has no defined result, and all other elements agree. Short integers wrap."""
    factor = 4 if dtype == "int32" else "T.int8(4)"
    assert vote(tmp_path, OVERFLOWS.format(dtype=dtype, large=large, factor=factor)) == votes


@pytest.mark.parametrize("version", RELEASES)
def test_a_vote_names_the_functions_that_wrote_other_operations(tmp_path: Path, version: str) -> None:
    """``ceildiv`` writes a sum and a ``floordiv``. A function whose name or sign is in the kernel wrote that."""
    program = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = T.ceildiv(A[i], 3) + T.floordiv(A[i], 2) + T.truncmod(A[i], 5) + T.min(A[i], 7)

b = tensor([0] * 4, "int32")
tvm.compile(main, target="llvm")(tensor([0, 3, 4, 9], "int32"), b)
"""
    (told,) = [line["evidence"] for line in ask(tmp_path, program, version) if line["kind"] == "reference"]
    assert (told["vote"], told["helpers"]) == ("agrees", ["ceildiv"])


@pytest.mark.parametrize(("version", "votes"), [("0.26.0", [DIFFERS]), ("0.27.0", [EXACT])])
def test_a_kernel_is_compared_with_its_tensor_expressions(
    tmp_path: Path, version: str, votes: list[tuple[str, bool | None]]
) -> None:
    """The simplifier of 0.26 takes a product of small unsigned numbers for one that does not wrap around."""
    program = """
A = te.placeholder((8,), "uint8", "A")
c = lambda value: tvm.tirx.const(value, "uint8")
B = te.compute((8,), lambda i: te.floordiv(A[i] * c(50) + c(150), c(50)), "B")
b = tensor([0] * 8, "uint8")
tvm.compile(te.create_prim_func([A, B]), target="llvm")(tensor(range(8), "uint8"), b)
print(b.numpy())
"""
    assert vote(tmp_path, program, version) == votes


LIBRARY = """
from tvm import topi
A = te.placeholder((2, 3), "float32", "A")
B = {made}
b = tensor(np.zeros([int(one) for one in B.shape]), str(B.dtype))
tvm.compile(te.create_prim_func([A, B]), target="llvm")(tensor([[1, 2, 3], [{low}] * 3], "float32"), b)
print(b.numpy())
"""


@cache
def compare_library() -> dict[str, Any]:
    return read_report(NEWEST, "reference/library")


def test_every_function_of_the_library_agrees_with_numpy() -> None:
    """One changed element of the result is a difference."""
    found = compare_library()
    assert found["missing"] == []
    assert {name: vote for name, vote in found["votes"].items() if vote != "agrees"} == {}
    assert {name: vote for name, vote in found["changed"].items() if vote != "differs"} == {}


def test_a_call_of_the_library_without_a_defined_value_has_none() -> None:
    refused = compare_library()["refused"]
    assert len(refused) > 4
    assert all(refused.values()), refused


@pytest.mark.parametrize(
    "made", ["topi.max(A, axis=1)", "te.compute((2,), lambda i: topi.argmax(A, axis=1)[i], 'B')"]
)
def test_numpy_votes_in_place_of_the_library(tmp_path: Path, made: str) -> None:
    """The library begins a maximum with the lowest finite number: an interpreter would only repeat that."""
    lines = ask(tmp_path, LIBRARY.format(made=made, low="-np.inf"))
    told = [(one["evidence"]["by"], one["evidence"]["vote"]) for one in lines if one["kind"] == "reference"]
    assert told == [("library", "differs")]
    (known,) = ask_host(lines)
    assert known["name"] == Reference.LIBRARY
    lines = ask(tmp_path, LIBRARY.format(made=made, low="-4"))
    (known,) = ask_host(lines)
    assert (known["name"], known["vote"]) == (Reference.LIBRARY, "agrees")


@pytest.mark.parametrize("made", ["topi.fast_exp(A)", "topi.max(topi.fast_exp(A), axis=1)"])
def test_a_function_without_an_equivalent_cannot_agree(tmp_path: Path, made: str) -> None:
    assert ask_host(ask(tmp_path, LIBRARY.format(made=made, low="-4"))) == []


TINY = """
def run(function, values):
    A = te.placeholder((2,), "float64", "A")
    B = te.compute((2,), function(A), "B")
    b = tensor([0, 0], "float64")
    tvm.compile(te.create_prim_func([A, B]), target="llvm")(tensor(values, "float64"), b)
    print(b.numpy())

run({function}, {values})
"""


@pytest.mark.parametrize(
    ("function", "values", "votes"),
    [
        # The compiler expands the function into a quotient of differences, which cancel near zero.
        ("lambda A: lambda i: tvm.tirx.tanh(A[i])", [1e-12, 1.0], [DIFFERS]),
        ("lambda A: lambda i: tvm.tirx.sinh(A[i])", [1e-12, 1.0], [AGREES]),
        # The program itself cancels.
        ("lambda A: lambda i: (A[i] + 1.0) - 1.0", [1e-12, 1.0], [AGREES]),
    ],
)
def test_an_element_that_is_no_sum_is_compared_by_its_own_size(
    tmp_path: Path, function: str, values: list[float], votes: list[tuple[str, bool | None]]
) -> None:
    assert vote(tmp_path, TINY.format(function=function, values=values)) == votes


MATMUL = """
@T.prim_func(s_tir=True)
def matmul(A: T.Buffer((6, 10), "float32"), B: T.Buffer((10, 4), "float32"), C: T.Buffer((6, 4), "float32")):
    for i, j, k in T.grid(6, 4, 10):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

{module}
rng = np.random.default_rng(0)
a, b = (tensor(rng.standard_normal(shape), "float32") for shape in ((6, 10), (10, 4)))
c = tensor(np.zeros((6, 4)), "float32")
tvm.compile(module, target="llvm")(a, b, c)
print(c.numpy())
"""
SPLIT = """\
schedule = tvm.s_tir.Schedule(matmul)
i, j, k = schedule.get_loops(schedule.get_sblock("C"))
schedule.split({split})
module = schedule.mod
"""
UNGUARDED = "k, [None, 4], disable_predication=True"


@pytest.mark.parametrize("version", RELEASES)
def test_a_kernel_that_the_testcase_wrote_may_agree(tmp_path: Path, version: str) -> None:
    """A schedule keeps the meaning of a kernel, unless the testcase asks it not to."""
    assert vote(tmp_path, MATMUL.format(module="module = matmul"), version) == [AGREES]
    assert vote(tmp_path, MATMUL.format(module="module = tvm.IRModule({'main': matmul})"), version) == [AGREES]
    assert vote(tmp_path, MATMUL.format(module=SPLIT.format(split="k, [None, 4]")), version) == [AGREES]
    assert vote(tmp_path, MATMUL.format(module=SPLIT.format(split=UNGUARDED)), version) == []


EXPRESSIONS = """
n = te.var("n")
A = te.placeholder((n, 6), "int32", "A")
k = te.reduce_axis((0, 6), "k")
pad = te.compute((n, 8), lambda i, j: te.if_then_else(j < 6, A[i, te.min(j, 5)], 0), "pad")
largest = te.comm_reducer(
    lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
    lambda t0, t1: (tvm.tirx.const(-1, t0), te.min_value(t1)),
    "largest",
)
at, top = te.compute((n,), lambda i: largest((k, pad[i, k]), axis=k), "top")
B = te.compute((n,), lambda i: at[i] * 100 + top[i], "B")
kernel = te.create_prim_func([A, B])
schedule = tvm.s_tir.Schedule(kernel)
schedule.compute_inline("pad")
a, b = tensor([[4, 9, 2, 9, 1, 0], [-3, -2, -8, -4, -5, -6], [7, 7, 7, 7, 7, 8]], "int32"), tensor([0] * 3, "int32")
tvm.compile({built}, target="llvm")(a, b)
assert b.numpy().tolist() == [109, 98, 508], b
"""


@pytest.mark.parametrize("version", RELEASES)
def test_tensor_expressions_of_all_kinds_are_evaluated(tmp_path: Path, version: str) -> None:
    """Variable shapes, guarded reads, reductions of tuples and several results, with and without a schedule."""
    for built in ("kernel", "schedule.mod"):
        assert vote(tmp_path, EXPRESSIONS.replace("{built}", built), version) == [EXACT]


@pytest.mark.parametrize("version", RELEASES)
def test_a_dropped_condition_of_a_reduction_is_a_difference(tmp_path: Path, version: str) -> None:
    """``create_prim_func`` reads no ``where``, on every release so far: a sum of odd numbers sums all."""
    program = """
A = te.placeholder((6,), "int32", "A")
k = te.reduce_axis((0, 6), "k")
B = te.compute((1,), lambda i: te.sum(A[k], axis=k, where=te.floormod(k, 2) == 1), "B")
b = tensor([0], "int32")
tvm.compile(te.create_prim_func([A, B]), target="llvm")(tensor(range(6), "int32"), b)
print(b.numpy())
"""
    assert vote(tmp_path, program, version) == [DIFFERS]


@pytest.mark.parametrize("version", RELEASES)
def test_a_schedule_that_makes_a_kernel_undefined_is_a_difference(tmp_path: Path, version: str) -> None:
    """The copy of whole rows, on every release so far, reads elements of the cache that nothing has written yet."""
    program = """
A = te.placeholder((4, 6, 3), "int32", "A")
k = te.reduce_axis((0, 3), "k")
B = te.compute((4, 6), lambda i, j: te.sum(A[i, j, k], axis=k), "B")
schedule = tvm.s_tir.Schedule(te.create_prim_func([A, B]))
block = schedule.get_sblock("B")
outer, _ = schedule.split(schedule.fuse(*schedule.get_loops(block)[:2]), [None, {tile}])
schedule.reverse_compute_at(schedule.cache_write(block, 0, "global"), outer)
a, b = tensor(np.arange(72).reshape(4, 6, 3), "int32"), tensor([[0] * 6] * 4, "int32")
tvm.compile(schedule.mod, target="llvm")(a, b)
print(b.numpy())
"""
    assert vote(tmp_path, program.format(tile=4), version) == [DIFFERS]
    assert vote(tmp_path, program.format(tile=6), version) == [EXACT]


@pytest.mark.parametrize(("declared", "votes"), [("", [DIFFERS]), ("T.reads(A[0:6, 0:7])", [])])
def test_a_schedule_of_a_script_is_checked_unless_its_blocks_declare_their_accesses(
    tmp_path: Path, declared: str, votes: list[tuple[str, bool | None]]
) -> None:
    """The parser lists the accesses of a block that declares none. A wrong declaration is the testcase's fault."""
    program = f"""
@T.prim_func(s_tir=True)
def two(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    B = T.sblock_alloc_buffer((6, 7), "float32")
    for i, j in T.grid(6, 7):
        with T.sblock("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            {declared}
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(6, 7):
        with T.sblock("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)

schedule = tvm.s_tir.Schedule(two)
outer, _ = schedule.split(schedule.fuse(*schedule.get_loops(schedule.get_sblock("b"))), [None, 5])
schedule.reverse_compute_at(schedule.get_sblock("c"), outer)
a, c = tensor(np.arange(42).reshape(6, 7), "float32"), tensor([[0] * 7] * 6, "float32")
tvm.compile(schedule.mod, target="llvm")(a, c)
print(c.numpy())
"""
    assert vote(tmp_path, program, "0.27.0") == votes


LITERAL = """
@T.prim_func
def scale(a: T.Buffer((1,), "float32"), b: T.Buffer((1,), "float32")):
    b[0] = a[0] {operation}

a, b = tensor([1], "float32"), tensor([0], "float32")
tvm.compile(scale, target="c")(a, b)
print(b.numpy())
"""


@pytest.mark.parametrize(
    ("operation", "votes"),
    [("* T.float32(16777216.0)", [DIFFERS]), ("* T.float32(0.5)", [AGREES]), ("/ T.float32(16777216.0)", [AGREES])],
)
def test_a_value_that_needs_no_rounding_is_compared_exactly(
    tmp_path: Path, operation: str, votes: list[tuple[str, bool | None]]
) -> None:
    """The target ``c`` writes seven digits of a constant. A division may be computed in another way."""
    assert vote(tmp_path, LITERAL.format(operation=operation)) == votes


def test_the_host_reports_a_vote_by_definition(tmp_path: Path) -> None:
    (differs,) = ask_host(ask(tmp_path, SCALAR_IN_LANES.format(loop="T.vectorized")))
    assert (differs["name"], differs["vote"], differs["at"]) == (Reference.DEFINITION, "differs", "arguments[1][0]")
    (agrees,) = ask_host(ask(tmp_path, ACCUMULATES.format(dtype="int32", more="")))
    assert (agrees["name"], agrees["vote"], agrees["exact"]) == (Reference.DEFINITION, "agrees", True)


def test_an_index_outside_a_buffer_is_noted(tmp_path: Path) -> None:
    """The factor does not divide the extent, and the schedule leaves the predicate out."""
    (note,) = ask(tmp_path, MATMUL.format(module=SPLIT.format(split=UNGUARDED)))
    assert (note["kind"], note["summary"]) == ("note", "an index is outside its buffer")


PASSES = """
@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            b[i] = a[i] * {factor}

{passes}
b = tensor([0] * 8, "int32")
tvm.compile(apply(Module), target="llvm")["main"](tensor(range(8), "int32"), b)
print(b.numpy())
"""
OTHER = PASSES.partition("@I.ir_module")[2].partition("{passes}")[0].replace("Module", "Other").format(factor=3)


@pytest.mark.parametrize(
    ("passes", "votes"),
    [
        ("apply = tvm.tirx.transform.StmtSimplify()", [AGREES]),
        (
            f"@I.ir_module{OTHER}\n@tvm.transform.module_pass(opt_level=0)\n"
            "def apply(module, context):\n    return Other",
            [AGREES],
        ),
    ],
    ids=["a pass of the compiler", "a pass of the testcase's own"],
)
def test_the_module_before_the_compilers_passes_is_evaluated(
    tmp_path: Path, passes: str, votes: list[tuple[str, bool | None]]
) -> None:
    """A pass of the testcase's own may change the meaning, so that what it returns is evaluated."""
    assert vote(tmp_path, PASSES.format(factor=2, passes=passes)) == votes


def test_the_arguments_stay_those_of_the_testcase(tmp_path: Path) -> None:
    """Scalars, symbolic shapes, a returned number, and one tensor given twice."""
    program = """
@T.prim_func
def scale(a: T.handle, b: T.handle, c: T.handle, factor: T.int32):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n,), "int32")
    C = T.match_buffer(c, (n + 1,), "int32")
    for i in T.parallel(n):
        C[i] = (A[i] + B[i]) * factor

built = tvm.compile(scale, target="llvm")
for n in (3, 5):
    a, c = tensor(range(n), "int32"), tensor([7] * (n + 1), "int32")
    built(a, a, c, n)
    print(c.numpy())
    np.testing.assert_array_equal(c.numpy()[:-1], np.arange(n) * 2 * n)
"""
    assert vote(tmp_path, program) == [EXACT]
    assert vote(tmp_path, program.replace("built(a, a, c, n)", "built(a, a, a, n)")) == []


REVERSES = """
@T.prim_func
def reverse(A: T.Buffer(({n},), "int32"), B: T.Buffer(({n},), "int32")):{says}
    for i in range({n}):
        B[i] = {value}

x = tensor(range({n}), "int32")
tvm.compile(reverse, target="llvm")(x, x)
print(x.numpy())
"""
NO_OVERLAP = "\n    T.func_attr({'tirx.noalias': True})"


@pytest.mark.parametrize("version", RELEASES)
def test_one_memory_for_two_arguments_is_the_fault_of_the_call(tmp_path: Path, version: str) -> None:
    """With a memory for each argument, the same function leaves what it means."""
    program = REVERSES.format(n=10, says=NO_OVERLAP, value="A[9 - i]")
    assert vote(tmp_path, program, version) == [UNDEFINED]


@pytest.mark.parametrize(
    ("says", "value"),
    [(NO_OVERLAP, "A[i] + 1"), ("", "A[9 - i]")],
    ids=["the values are right", "nothing says that arguments do not overlap"],
)
def test_one_memory_for_two_arguments_may_be_right(tmp_path: Path, says: str, value: str) -> None:
    assert vote(tmp_path, REVERSES.format(n=10, says=says, value=value)) == []


LOADED = """
import os, tempfile

@T.prim_func
def twice(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
    for i in range(8):
        b[i] = a[i] * 2

path = os.path.join(tempfile.mkdtemp(), "lib.so")
tvm.compile(twice, target="{target}").export_library(path)
b = tensor([0] * 8, "int32")
tvm.runtime.load_module(path)["twice"](tensor(range(8), "int32"), b)
print(b.numpy())
"""


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_kernel_is_followed_through_a_file(tmp_path: Path, target: str) -> None:
    assert vote(tmp_path, LOADED.format(target=target)) == [EXACT]
