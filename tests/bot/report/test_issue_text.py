"""The text of `reprobot report` and of the issue form is read back exactly by extraction."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.extract import Repro, extract
from bot.report.issue_text import BugReport, describe_runs
from runners.core.protocol import ClaimKind, Outcome, Variant
from tests.support.observed import observe

ROOT = Path(__file__).parents[3]
FORM = ROOT / "examples/issue-form.yml"
TODAY = date(2026, 11, 22)
SCRIPT = """\
import numpy as np
import tvm
from tvm import relax

# a fence in a text: ```
bb = relax.BlockBuilder()
x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
with bb.function("main", [x]):
    bb.emit_func_output(bb.emit(relax.op.add(x, x)))
assert np.allclose(bb.get()["main"], 0)
"""
MODULE = """\
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
"""
COMMANDS = "iree-compile model.mlir --iree-hal-target-backends=llvm-cpu -o m.vmfb\n"
ERROR = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nValueError: shapes 3 and 5 differ'


def read(report: BugReport, toolchain: str | None = None) -> Repro:
    found = extract(report.to_issue(TODAY), toolchain=toolchain)
    assert isinstance(found, Repro)
    assert found.missing == ()
    return found


def test_a_composed_report_of_a_script_is_read_back() -> None:
    """The script to the letter, the failure, and the version that it is about before the newest."""
    record = ("The newest release is 0.27.0.post1.", *describe_runs([observe("0.27.0.post1", Outcome.PASS)]))
    report = BugReport(
        title="[Bug] ValueError: shapes differ", product="apache-tvm 0.25.0", files={"a.py": SCRIPT}, output=ERROR,
        record=record,
    )  # fmt: skip
    found = read(report)
    assert found.testcase.files == {"repro.py": SCRIPT}
    assert found.testcase.toolchain == "tvm"
    assert found.claim.kind is ClaimKind.ERROR
    assert found.claim.signature is not None
    assert found.claim.signature.message == "shapes 3 and 5 differ"
    assert found.claim.versions[0] == "0.25.0"


def test_a_composed_report_of_commands_is_read_back() -> None:
    report = BugReport(
        title="[Bug] it crashes", product="iree-base-compiler 3.8.0",
        files={"run.sh": COMMANDS, "model.mlir": MODULE}, output="iree-compile: Segmentation fault (core dumped)",
    )  # fmt: skip
    found = read(report)
    assert {name: text.strip() for name, text in found.testcase.files.items()} == {"model.mlir": MODULE.strip()}
    assert [step[0] for step in found.testcase.steps] == ["iree-compile"]
    assert found.claim.kind is ClaimKind.CRASH


def fill_form(values: dict[str, str]) -> BugReport:
    """Return the issue that GitHub makes of the form, as a report with ready text."""
    form: dict[str, Any] = yaml.safe_load(FORM.read_text(encoding="utf-8"))
    parts = []
    for field in form["body"]:
        if field["type"] == "markdown":
            continue
        text, language = values.pop(field["id"], ""), field["attributes"].get("render")
        shown = f"```{language}\n{text}\n```" if language and text else text or "_No response_"
        parts.append(f"### {field['attributes']['label']}\n\n{shown}")
    assert values == {}
    body = "\n\n".join(parts)

    class Filled(BugReport):
        def render(self) -> str:
            return f"# {self.title}\n\n{body}\n"

    return Filled(title="It fails", product="", files={})


@pytest.mark.parametrize("field", ["script", "steps"])
def test_the_form_is_read_back(field: str) -> None:
    """A script in its own field, or in a code block among the steps."""
    script = SCRIPT.replace("```", "---")
    value = script if field == "script" else f"Run this:\n\n```python\n{script}```"
    found = read(fill_form({"version": "apache-tvm 0.25.0", field: value, "actual": ERROR, "expected": "No error."}))
    assert found.testcase.files["repro.py"].strip() == script.strip()
    assert found.claim.signature is not None
    assert found.claim.signature.message == "shapes 3 and 5 differ"
    assert found.claim.versions == ("0.25.0",)


def test_commands_and_files_of_the_form_are_read_back() -> None:
    steps = f"`model.mlir`:\n```mlir\n{MODULE}```\n```sh\n{COMMANDS}```"
    actual = "iree-compile: Segmentation fault (core dumped)"
    found = read(fill_form({"version": "iree-base-compiler 3.8.0", "steps": steps, "actual": actual}))
    assert found.testcase.files["model.mlir"].strip() == MODULE.strip()
    assert found.claim.kind is ClaimKind.CRASH
    assert found.claim.versions == ("3.8.0",)


def test_the_form_and_the_command_have_the_same_headings() -> None:
    report = BugReport(title="t", product="p", files={"a.py": "x"}, output="o", expected="e").render()
    labels = set(re.findall(r"^      label: (.*)$", FORM.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^### (.*)$", report, re.MULTILINE)) <= labels


def test_the_form_is_of_githubs_schema() -> None:
    check = Path(sys.executable).parent / "check-jsonschema"
    done = subprocess.run(
        [str(check), "--builtin-schema", "vendor.github-issue-forms", str(FORM)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_runs_are_told_in_words() -> None:
    """A port of the script is called so."""
    runs = [
        observe("1.0", Outcome.MATCH), observe("1.0", Outcome.MATCH, attempt=2), observe("2.0", Outcome.INCOMPATIBLE),
        observe("2.0", Outcome.MATCH, variant=Variant.PORTED),
    ]  # fmt: skip
    assert describe_runs(runs) == (
        "`1.0` on `llvm`: fails as above (2 runs)",
        "`2.0` on `llvm`: cannot run the script: the API is another one",
        "`2.0` on `llvm`, ported to its API: fails as above",
    )
