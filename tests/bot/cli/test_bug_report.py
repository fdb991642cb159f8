"""A script becomes an issue: run, reduced, checked on the newest release. The runs are canned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from bot.cli.app import app
from bot.cli.bug_report import ReportOptions, compose_bug_report, find_compiler, read_files
from bot.report.issue_text import BugReport
from runners.core.bench import MOST_PROBES, MOST_SECONDS
from runners.core.bisection.commits import Prior
from runners.core.errors import UserError
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Exited, Investigation, Outcome, Plan, Signature, Smaller
from runners.core.runs import Tell
from tests.support.observed import observe

SCRIPT = "import tvm\n\nprint('a')\nprint('b')\ntvm.compile(None)\n"
REDUCED = "import tvm\ntvm.compile(None)\n"
OUTPUT = 'Traceback (most recent call last):\n  File "repro.py", line 5, in <module>\nValueError: no module'
OPTIONS = ReportOptions(toolchain="tvm", version="0.26.0", minimize=False)


@dataclass
class CannedBench:
    """Every release ends as ``outcome``, a failure with `OUTPUT`; the newest passes."""

    outcome: Outcome = Outcome.OTHER_FAILURE
    conditions: tuple[str, ...] = ()
    plans: list[Plan] = field(default_factory=list)

    def run(self, plan: Plan, *, prior: Prior | None = None, tell: Tell | None = None) -> Investigation:
        self.plans.append(plan)
        matched = plan.claim.signature is not None and self.outcome is Outcome.OTHER_FAILURE
        seen = []
        for version in plan.order:
            outcome = Outcome.MATCH if matched else self.outcome
            outcome = outcome if version.startswith("0.26") else Outcome.PASS
            failure = Signature(type="ValueError", message="no module") if outcome is not Outcome.PASS else None
            one = observe(version, outcome, ended=Exited(code=1 if failure else 0), signature=failure)
            lines = next(iter(plan.testcase.files.values())).count("\n")
            seen.append(msgspec.structs.replace(one, excerpt=OUTPUT.replace("line 5", f"line {lines}")))
        return Investigation(observations=tuple(seen))

    def minimize(
        self, plan: Plan, version: str, *, control: str = "", passing: str = "", probes: int = MOST_PROBES,
        seconds: float = MOST_SECONDS,
    ) -> Smaller:  # fmt: skip
        smaller = msgspec.structs.replace(plan.testcase, files={"repro.py": REDUCED})
        return Smaller(
            testcase=smaller, version=version, device="llvm", before=4, after=2, probes=9, seconds=1.0, confirmed=3,
            stopped="minimal",
        )  # fmt: skip


def compose(bench: CannedBench, options: ReportOptions = OPTIONS) -> BugReport:
    return compose_bug_report(
        {"a.py": SCRIPT}, options, catalogue=load_catalogue(), open_bench=lambda: bench, today=date(2026, 11, 22)
    )


def test_a_script_becomes_a_report_with_its_record() -> None:
    """The last runs are made from the composed text, on its release and on the newest."""
    bench = CannedBench()
    text = compose(bench).render()
    assert text.startswith("# [Bug] ValueError: no module\n")
    assert "apache-tvm 0.26.0" in text
    assert f"```python\n{SCRIPT}```" in text
    assert OUTPUT in text
    assert "- `0.26.0` on `llvm`: fails as above" in text
    newest = load_catalogue().list_releases("tvm")[-1].version
    assert f"- `{newest}` on `llvm`: passes" in text
    assert bench.plans[-1].claim.signature is not None
    assert bench.plans[-1].testcase.files == {"repro.py": SCRIPT}


def test_the_reduced_script_takes_the_place_of_the_given_one() -> None:
    bench = CannedBench()
    text = compose(bench, replace(OPTIONS, minimize=True)).render()
    assert f"```python\n{REDUCED}```" in text
    assert "print" not in text
    assert 'File "repro.py", line 2, in <module>' in text, "the output of the given script has other lines"
    assert "- The testcase is reduced from 4 lines to 2." in text
    assert bench.plans[-1].testcase.files == {"repro.py": REDUCED}


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (Outcome.PASS, "ends without a failure on tvm 0.26.0: add an assertion"),
        (Outcome.INCOMPATIBLE, "does not run"),
    ],
)
def test_a_script_that_does_not_fail_makes_no_report(outcome: Outcome, says: str) -> None:
    with pytest.raises(UserError, match=says):
        compose(CannedBench(outcome))


def test_what_a_report_cannot_hold_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.py cannot be read"):
        read_files([tmp_path / "none.py"])
    (tmp_path / "weights.bin").write_bytes(b"\xff\xfe")
    (tmp_path / "run.py").write_text("print(1)\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"weights\.bin is no UTF-8 text: attach it"):
        read_files([tmp_path / "run.py", tmp_path / "weights.bin"])
    with pytest.raises(UserError, match=r"weights\.bin is no script: name a Python script"):
        read_files([tmp_path / "weights.bin"])
    with pytest.raises(UserError, match="names no compiler: add --toolchain"):
        find_compiler(None, {"a.py": "print(1)\n"})
    assert find_compiler(None, {"a.py": SCRIPT}) == "tvm"


@pytest.mark.parametrize("words", [["report"], ["report", "a.py", "--plan", "plan.json"]])
def test_the_command_takes_a_script_or_the_plan_of_a_job(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UserError)
    assert "either a script that fails, or the job's --plan" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        (["a.py", "--json", "a.json"], "--json has no effect with a script"),
        (["a.py", "--sha256", "0"], "--sha256 has no effect with a script"),
        (["--plan", "plan.json", "--title", "x"], "--title has no effect with --plan"),
        (["--plan", "plan.json", "--no-minimize"], "--minimize has no effect with --plan"),
    ],
)
def test_an_option_of_the_other_use_is_refused(words: list[str], ignored: str) -> None:
    done = CliRunner().invoke(app, ["report", *words])
    assert isinstance(done.exception, UserError)
    assert str(done.exception).startswith(ignored)
