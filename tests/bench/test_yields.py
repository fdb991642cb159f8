"""The yield of a mechanism counts the reports in which it left a trace."""

from bench.proving.grades import Answer, Graded, Label, grade_answer
from bench.proving.mechanisms import Mechanism, list_mechanisms, parse_mechanism
from bench.proving.yields import tabulate

DOCUMENT = {
    "findings": [{"kind": "broken-rule", "evidence": {"rule": "a tensor.extract index is in range"}}],
    "repro": {"repairs": [{"kind": "assume-value"}]},
    "observations": [{"changes": ["name: tvm.tir moved"]}],
}


def grade(verdict: str) -> Graded:
    label = Label(verdict="confirmed", accepted=(), never=(), classes=(), decidable=True)
    answer = Answer(verdict=verdict, confidence=0.9, headline="", grounds=(), leaning="")
    return Graded(name="", label=label, answer=answer, grade=grade_answer(label, answer))


def test_a_mechanism_is_read_back_from_its_text() -> None:
    found = list(list_mechanisms(DOCUMENT))
    assert [parse_mechanism(str(one)) for one in found] == found
    assert Mechanism("rule", "a tensor.extract index is in range") in found


def test_reports_are_counted_and_right_ones_beside_them() -> None:
    broken = Mechanism("finding", "broken-rule")
    graded = {"tvm#1": grade("confirmed"), "tvm#2": grade("no-repro")}
    table = tabulate({"tvm#1": (broken,), "tvm#2": (broken, broken)}, graded)
    row = next(line for line in table.split("\n") if "`broken-rule`" in line)
    assert row.startswith("| finding `broken-rule` | 2 | 1 |")
