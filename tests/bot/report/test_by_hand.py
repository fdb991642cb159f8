"""The commands under *Reproduce it by hand*: a failing and a clean one, and every text that they need."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bot.extract.types import Repro
from bot.report.comment import render_comment
from bot.report.sections.run_again import PATCH, find_patch, list_shell_lines, make_patch
from bot.verdict.verdict import Report
from runners.core.protocol import Answer, Observation, Outcome, Testcase, Variant
from runners.rewrite.testcase import port_testcase
from runners.toolchains import find_toolchain
from tests.bot.report import reports

OLD = "import tvm\nfrom tvm import tir\n\nprint(tvm.tir.IntImm('int32', 1))\n"


def with_runs(*runs: Observation, code: str = reports.SCRIPT) -> Report:
    report = reports.regression()
    assert isinstance(report.extraction, Repro)
    testcase = msgspec.structs.replace(get_testcase(report), files={"repro.py": code})
    return replace(report, extraction=replace(report.extraction, testcase=testcase), observations=runs, bisections=())


def get_testcase(report: Report) -> Testcase:
    assert isinstance(report.extraction, Repro)
    return report.extraction.testcase


def list_ends(report: Report) -> list[str]:
    return [row.partition(" ")[2] for row in list_shell_lines(report).splitlines() if row.startswith("# ")]


def test_a_failing_and_a_clean_command_stand_side_by_side() -> None:
    """Of the newest build of each kind, where no change between two builds was found."""
    report = with_runs(
        reports.seen("0.25.0", Outcome.PASS),
        reports.seen("0.26.0", Outcome.MATCH),
        reports.seen("0.27.0", Outcome.MATCH),
    )
    assert list_ends(report) == ["tvm 0.25.0: runs cleanly", "tvm 0.27.0: fails as reported"]


def test_a_ported_run_stands_for_the_clean_side() -> None:
    report = with_runs(
        reports.seen("0.26.0", Outcome.MATCH),
        reports.seen("0.27.0", Outcome.INCOMPATIBLE),
        reports.seen("0.27.0", Outcome.PASS, variant=Variant.PORTED),
    )
    assert [end.partition(":")[0] for end in list_ends(report)] == ["tvm 0.26.0", "tvm 0.27.0"]


def port(code: str) -> Report:
    """Return a report whose only clean run is ported, with the record that a port leaves."""
    ran = reports.seen("0.27.0", Outcome.PASS, variant=Variant.PORTED)
    report = with_runs(reports.seen("0.27.0", Outcome.INCOMPATIBLE), ran, code=code)
    made = port_testcase(get_testcase(report), "0.27.0", find_toolchain("tvm"))
    assert made is not None
    changes = tuple(dict.fromkeys(f"{one.old} → {one.new}" for one in made.substitutions))
    old, new = report.observations
    return replace(report, observations=(old, msgspec.structs.replace(new, changes=changes)))


def test_a_ported_testcase_is_a_patch_that_applies(tmp_path: Path) -> None:
    """The patch makes the text that ran of the text that is shown; the commands apply it and take it back."""
    report = port(OLD)
    version, patch = find_patch(report)
    assert version == "0.27.0"
    (tmp_path / "repro.py").write_text(OLD, encoding="utf-8")
    (tmp_path / PATCH).write_text(patch + "\n", encoding="utf-8")
    subprocess.run(["git", "apply", "-p0", PATCH], cwd=tmp_path, check=True)
    assert "tvm.tirx.IntImm" in (tmp_path / "repro.py").read_text(encoding="utf-8")
    lines = list_shell_lines(report).splitlines()
    assert lines[0] == "# tvm 0.27.0: runs cleanly, ported"
    assert (lines[1], lines[-1]) == (f"patch -p0 < {PATCH}", f"patch -R -p0 < {PATCH}")
    assert patch in render_comment(report)


def test_a_port_that_cannot_be_made_again_is_told_by_its_changes() -> None:
    """A text that a release's own messages ported is recorded by its changes alone."""
    report = port(OLD)
    old, new = report.observations
    report = replace(report, observations=(old, msgspec.structs.replace(new, changes=("a → b",))))
    assert find_patch(report) == ("", "")
    assert list_ends(report) == ["tvm 0.27.0: runs cleanly, with the changes below"]
    assert "a → b" in render_comment(report)


def test_equal_files_need_no_patch() -> None:
    testcase = get_testcase(with_runs())
    assert isinstance(testcase, Testcase)
    assert make_patch(testcase, testcase) == ""


def test_the_filters_of_the_report_stand_behind_the_last_command() -> None:
    report = reports.fixed_crash()
    assert isinstance(report.extraction, Repro)
    report = replace(report, extraction=replace(report.extraction, filters="2>&1 | grep -o 'x = [0-9]*'"))
    commands = [row for row in list_shell_lines(report).splitlines() if not row.startswith("#")]
    assert commands
    assert all(row.endswith("-o out.vmfb 2>&1 | grep -o 'x = [0-9]*'") for row in commands)


@pytest.mark.parametrize(
    ("code", "needs"),
    [
        ("import tvm\n", False),
        ("import pytest\n", True),
        ("import tvm.testing\n", True),
        ("from tvm import relax, testing\n", True),
    ],
)
def test_pytest_is_installed_for_a_testcase_that_imports_it(code: str, needs: bool) -> None:
    """``tvm.testing`` imports it too."""
    text = list_shell_lines(with_runs(reports.seen("0.27.0", Outcome.MATCH), code=code))
    assert ("--with pytest" in text) is needs


def test_a_failure_that_only_a_fork_shows_names_the_command_that_shows_it() -> None:
    """The fork's compiler cannot be imported from its wheel without our sandbox."""
    fork = msgspec.structs.replace(
        reports.seen("0.22.0", Outcome.MATCH), fork="3a32b763, carried by tilelang 0.1.7", answer=Answer.BAD
    )
    text = render_comment(with_runs(fork, reports.seen("0.27.0", Outcome.PASS)))
    assert "Only this shows the failure, which was seen on fork `0.22.0`" in text
    assert "# tvm 0.27.0: runs cleanly" in text
