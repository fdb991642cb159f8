"""A clean run that calls nothing of what the title names is told, and only where the testcase's own code does not."""

from __future__ import annotations

import json

import msgspec
import pytest

from runners.core.protocol import FindingKind, Testcase, TestcaseKind
from runners.diagnosis.reach import check_reach, uses_names
from tests.support.means import make_means

CODE = "import tvm\nfrom tvm.relax.transform import FuseOps\n\nmodule = tvm.compile(tvm.IRModule())\n"
TESTCASE = Testcase(
    kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": CODE}, steps=(("python", "repro.py"),)
)


def ask(answer: str, code: str = CODE, accused: tuple[str, ...] = ("FuseOps", "MyNet")) -> list[object]:
    asked: list[Testcase] = []

    def hook(_version: str, testcase: Testcase) -> str:
        asked.append(testcase)
        return answer

    testcase = msgspec.structs.replace(TESTCASE, files={"repro.py": code})
    found = check_reach(testcase, "0.27.0", accused, ("tvm",), make_means(hook=hook))
    return [len(asked), [(one.kind, one.evidence["names"]) for one in found]]


def say(reached: list[str], known: list[str]) -> str:
    return json.dumps({"kind": "reach", "summary": "", "evidence": {"reached": reached, "known": known}})


def test_a_run_that_calls_no_accused_name_of_the_compiler_is_told() -> None:
    """The import alone is no use, and a name that the compiler does not have is nobody's."""
    assert ask(say([], ["FuseOps"])) == [1, [(FindingKind.REACH, ["FuseOps"])]]


@pytest.mark.parametrize(
    "answer", [say(["FuseOps"], ["FuseOps"]), say([], []), "", "{", '{"kind": "reach", "evidence": 1}']
)
def test_a_reached_name_or_no_answer_tells_nothing(answer: str) -> None:
    assert ask(answer) == [1, []]


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("R.fuse_ops(x)", True),
        ("seq = [FuseOps()]", True),
        ("TEXT = 'R.FuseOps(x)'", True),
        ("import FuseOps", False),
        ("# FuseOps\nx = 1", False),
        ("x = (  # FuseOps", True),
    ],
)
def test_a_testcase_that_uses_an_accused_name_needs_no_run(code: str, used: bool) -> None:
    """A program that does not parse counts by its words."""
    testcase = msgspec.structs.replace(TESTCASE, files={"repro.py": code})
    assert uses_names(testcase, ("FuseOps",)) is used
    assert ask(say([], ["FuseOps"]), code)[0] == (not used)


def test_a_title_without_names_asks_for_no_run() -> None:
    assert ask(say([], []), accused=()) == [0, []]
