"""The pure parts of the comparison with loops: reading lines, making a noxfile, the tables."""

from __future__ import annotations

import ast
import json

import pytest

from bench.speed.answers import ROOT
from bench.speed.course import COMMENT, FIRST, VERDICT, Bar, Course, list_endings, read_bars
from bench.speed.loop import ISSUES, divide, format_ratios
from bench.speed.ways import make_noxfile, normalize_code

LINES = (
    (1.0, "choosing a sandbox …"),
    (1.5, "matrix …"),
    (3.0, "❌ tvm 0.27.0 on llvm: fails as reported, 1.0 s"),
    (3.5, "✅ tvm 0.26.0 on llvm: runs cleanly, 2.0 s"),
    (4.0, "so far: 0.27.0 fails."),
    (4.0, "diagnosis …"),
    (5.0, "✅ tvm 0.26.0 on llvm (control, with one change): runs cleanly, 0.5 s"),
)


def test_lines_of_progress_become_bars() -> None:
    """A stage lasts until the next, and a run ends when its line arrives."""
    bars = tuple(read_bars(LINES, 6.0))
    assert bars == (
        Bar("start", 0.0, 1.0),
        Bar("choosing a sandbox", 1.0, 1.5),
        Bar("matrix", 1.5, 4.0),
        Bar("diagnosis", 4.0, 6.0),
        Bar("❌ 0.27.0 on llvm", 2.0, 3.0, as_posted=True),
        Bar("✅ 0.26.0 on llvm", 1.5, 3.5, as_posted=True),
        Bar("✅ 0.26.0 on llvm (control, with one change)", 4.5, 5.0),
    )
    assert Course(bars, 6.0).times == {FIRST: 3.0, VERDICT: 3.5, COMMENT: 6.0}


def test_a_call_without_stages_is_one_bar() -> None:
    assert list(read_bars([(0.5, "there is no testcase")], 1.0)) == [Bar("start", 0.0, 1.0)]


@pytest.mark.parametrize(("code", "same"), [(0, 0), (1, 1), (-11, 245), (139, 245), (245, 245), (134, 250)])
def test_a_signal_is_told_in_one_way(code: int, same: int) -> None:
    """Python says -11, a shell 139, and uv and IREE's scripts 245."""
    assert normalize_code(code) == same


def test_endings_of_the_testcase_as_posted() -> None:
    def seen(kind: str, code: int | None, **more: str) -> dict[str, object]:
        ended = {"kind": kind, "code": code}
        return {"variant": "original", "device": "llvm", "version": "1", "ended": ended, **more}

    observations = [
        seen("exited", 1),
        seen("signalled", 11),
        seen("timed-out", None),
        seen("exited", 3, device="cuda"),
        seen("exited", 4, variant="control"),
    ]
    assert list_endings(observations, "llvm") == {"1": {1, 245}}


def test_the_noxfile_has_a_session_for_each_release() -> None:
    """Any word of a step is data in it."""
    sessions: dict[str, dict[str, object]] = {"0.27.0": {"python": "/bin/python3", "packages": ["a"], "times": 2}}
    steps = [("python", 'it\'s "quoted" {}.py'), ("iree-run-module", "--input=2xf32=1 '2'")]
    tree = ast.parse(make_noxfile(sessions, steps))
    data = [ast.literal_eval(node.value.args[0]) for node in tree.body if isinstance(node, ast.Assign)]  # type: ignore[attr-defined]
    assert [json.loads(text) for text in data] == [sessions, [list(step) for step in steps]]


def test_ratios_are_those_of_one_round() -> None:
    """A value that was measured once is compared with the median of all rounds."""
    assert divide([2.0, 6.0], [1.0, 2.0]) == [2.0, 3.0]
    assert divide([6.0], [1.0, 2.0, 9.0]) == [3.0]


def test_the_table_of_ratios_has_a_column_for_each_measure() -> None:
    ratios = {("verdict", "uv"): [1.0, 2.0, 3.0], ("verdict", "nox"): [0.5], ("comment", "uv"): [4.0]}
    assert list(format_ratios(ratios)) == [
        "| until | × uv | × nox |",
        "|---|---|---|",
        "| verdict | 2.00 (1.00 … 3.00) | 0.50 (0.50 … 0.50) |",
        "| comment | 4.00 (4.00 … 4.00) | – |",
    ]


def test_the_examples_are_there_half_of_them_about_each_compiler() -> None:
    texts = {name: (ROOT / f"examples/issues/{name}.md").read_text() for name in ISSUES}
    assert len(texts) == 8
    assert sum("iree-org/iree" in text for text in texts.values()) == 4
    assert [
        name for name, words in ISSUES.items() if words.startswith("TVM") == ("iree-org/iree" in texts[name])
    ] == []
