"""Passes, schedules and the arithmetic analyzer are compared with evaluations, and only a difference is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.core.findings.kinds import Reference
from tests.runners.guest.tvm.sweep import read_report
from tests.runners.guest.tvm.test_kernel_reference import NEWEST, RELEASES, ask, ask_host

pytestmark = pytest.mark.compilers

HOME = "arith = getattr(tvm, 'arith', None) or tvm.sym\nfrom tvm import tirx\n"
PARTITIONED = """
A = te.placeholder((16,), "float32", "A")
k = te.reduce_axis((0, 16), "k")
B = te.compute((1,), lambda i: te.sum(A[k], axis=k), "B")
schedule = tvm.s_tir.Schedule(te.create_prim_func([A, B]))
loop = schedule.get_loops(schedule.get_sblock("B"))[1]
schedule.{primitive}
print(schedule.mod.script())
"""


@pytest.mark.parametrize("version", RELEASES)
def test_a_schedule_that_changes_a_sum_is_told(tmp_path: Path, version: str) -> None:
    """``loop_partition`` copies the initial value of a sum into both parts. Nothing runs the kernel."""
    lines = ask(tmp_path, PARTITIONED.format(primitive="loop_partition(loop, [None, 12])"), version)
    (told,) = ask_host(lines)
    assert (told["name"], told["vote"], told["function"]) == (Reference.REWRITE, "differs", "main after the schedule")
    assert ask(tmp_path, PARTITIONED.format(primitive="split(loop, [4, 4])"), version) == []


CALLED = """
a, b = tensor(np.ones(16), "float32"), tensor([0], "float32")
tvm.compile({given}, target="llvm")(a, b)
"""


def test_a_call_tells_more_than_generated_arguments(tmp_path: Path) -> None:
    """A call that differs replaces the vote; a call of the kernel as it was written does not take the vote back."""
    program = PARTITIONED.format(primitive="loop_partition(loop, [None, 12])") + CALLED
    (differs,) = ask_host(ask(tmp_path, program.format(given="schedule.mod")))
    assert (differs["name"], differs["returned"], differs["expected"]) == ("definition", "12.0", "16.0")
    (kept,) = ask_host(ask(tmp_path, program.format(given="te.create_prim_func([A, B])")))
    assert kept["name"] == Reference.REWRITE


@pytest.mark.parametrize(
    ("version", "program"), [(RELEASES[0], "kernels"), (NEWEST, "kernels"), (NEWEST, "functions")]
)
def test_passes_that_keep_the_meaning_are_not_told(version: str, program: str) -> None:
    """Every pass of the compiler that needs no argument, between the steps of a lowering, on valid programs."""
    found = read_report(version, f"reference/rewritten_{program}")
    assert found["compared"] > 100
    assert found["differences"] == []


@pytest.mark.parametrize(
    ("question", "returned", "value", "point"),
    [
        ("int_set(tirx.truncmod(x, 4), {x: arith.IntervalSet(-6, -1)})", "[0, 3]", "-1", "x = -1"),
        ("can_prove(tirx.truncmod(x, 4) < y * 4)", None, None, None),
        ("simplify((x * 8 + 3) % 8)", None, None, None),
        ("const_int_bound(x * 3 - 7)", None, None, None),
        ("modular_set(x * 6 + 2)", None, None, None),
    ],
)
def test_an_answer_of_the_analyzer_that_a_point_contradicts_is_told(
    tmp_path: Path, question: str, returned: str | None, value: str | None, point: str | None
) -> None:
    program = f"{HOME}x, y = tirx.Var('x', 'int32'), tirx.Var('y', 'int32')\nprint(arith.Analyzer().{question})\n"
    told = ask_host(ask(tmp_path, program))
    if returned is None:
        assert told == []
    else:
        assert [(one["name"], one["returned"], one["expected"], one["at"]) for one in told] == [
            (Reference.POINTS, returned, value, point)
        ]


def test_the_watch_leaves_the_calls_as_they_are(tmp_path: Path) -> None:
    """Arguments may be given by name."""
    (tmp_path / "told").write_text("")
    told = "analyzer.bind(var=x, expr=tvm.ir.Range(0, 4))\nwith analyzer.constraint_scope(constraint=x > 1):\n"
    asked = f"    print(analyzer.simplify(expr=tirx.truncmod(x, 4)), file=open({str(tmp_path / 'told')!r}, 'w'))\n"
    made = "x, analyzer = tirx.Var('x', 'int32'), arith.Analyzer()\n"
    assert ask(tmp_path, HOME + made + told + asked) == []
    assert (tmp_path / "told").read_text() == "x\n"


def test_a_copy_of_an_analyzer_knows_what_the_analyzer_was_told(tmp_path: Path) -> None:
    """From 0 to 3 the remainder is x itself. A negative x would contradict that."""
    made = "x, analyzer = tirx.Var('x', 'int32'), arith.Analyzer()\nanalyzer.bind(x, tvm.ir.Range(0, 4))\n"
    assert ask(tmp_path, HOME + made + "print(analyzer.clone().simplify(tirx.truncmod(x, 4)))\n") == []


@pytest.mark.parametrize("by", [Reference.POINTS, Reference.REWRITE])
def test_a_claim_that_nothing_was_found_is_no_vote(by: str) -> None:
    line = {"kind": "reference", "summary": "s", "evidence": {"by": by, "vote": "agrees"}}
    assert ask_host([line]) == []
    assert len(ask_host([{**line, "evidence": {"by": by, "vote": "differs"}}])) == 1


def test_points_contradict_false_answers_within_the_domain() -> None:
    found = read_report(NEWEST, "reference/points")
    told = {name: tuple(one) for name, one in found.items() if one[0] is not None}
    assert told == {
        "a value, anywhere": ("102", "x = 51"),
        "a value, in a range with the point": ("102", "x = 51"),
        "a value, in a set": ("102", "x = 51"),
        "a value, of a known number": ("102", "x = 51"),
        "a bound that is too narrow": ("3", "x = -1"),
        "a wrong remainder": ("1", "x = 0"),
        "a set with a variable": ("4", "x = 4, n = 0"),
        "a wrong proof": ("False", "x = 1"),
        "a wrong equality": ("0 and 3", "x = 0"),
    }


MIXED = """
from tvm import relax
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor((1, 4, 1, 8), "float32"), k: R.Tensor((1, 4, 1, 8), "float32")):
        with R.dataflow():
            out = R.nn.attention(q, k, k{mask})
            R.output(out)
        return out

print(relax.transform.ToMixedPrecision(out_dtype="float32")(Module))
"""


@pytest.mark.parametrize(("mask", "told"), [("", 0), (', causal_mask="TopLeft"', 1)])
def test_half_precision_is_compared_coarsely(tmp_path: Path, mask: str, told: int) -> None:
    """The pass may round, and drops the mask of an attention."""
    assert len(ask_host(ask(tmp_path, MIXED.format(mask=mask)))) == told
