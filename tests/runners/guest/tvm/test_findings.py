"""The findings file stays within the limits of the host."""

from __future__ import annotations

import json
import os
from pathlib import Path

from runners.core.toolchain.claims import MAX_CLAIM_BYTES, read_findings
from runners.guest.tvm.findings import MAX_FINDINGS, Findings, limit_value


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_host_reads_the_findings_file(tmp_path: Path) -> None:
    """The host reads a finding unchanged. Notes are not findings."""
    path = tmp_path / "findings"
    findings = Findings(str(path))
    findings.note("something was not available", why="it is old")
    findings.add("a", "out-of-bounds-access", "an index\nlies outside", {"axis": 0, "index_range": [0, 17]})
    (finding,) = read_findings(path.read_text())
    assert finding.summary == "an index lies outside"
    assert finding.evidence == {"axis": 0, "index_range": [0, 17]}
    assert [line["kind"] for line in lines(path)] == ["out-of-bounds-access", "note"]


def test_findings_file_stays_small(tmp_path: Path) -> None:
    """Number, length and depth are cut. The file has complete lines."""
    path = tmp_path / "findings"
    findings = Findings(str(path))
    deep: object = "end"
    for _ in range(50):
        deep = [deep] * 3
    for number in range(500):
        findings.add(
            str(number), "values-replaced", "x" * 5000, {"text": "é" * 9000, "deep": deep, "list": [1] * 9999}
        )
    assert path.stat().st_size < MAX_CLAIM_BYTES
    assert 0 < len(lines(path)) <= MAX_FINDINGS


def test_evidence_is_plain_json() -> None:
    """NaN, infinity and objects become text, because JSON lacks them."""
    assert limit_value({"a": float("nan"), "b": float("inf"), "c": Path("x"), 1: (True, None, 2.5)}) == {
        "a": "nan",
        "b": "inf",
        "c": "x",
        "1": [True, None, 2.5],
    }


def test_drop_removes_a_refuted_finding(tmp_path: Path) -> None:
    """The file no longer has the finding."""
    path = tmp_path / "findings"
    findings = Findings(str(path))
    findings.add("a", "signature-changed", "called the old way", {})
    findings.drop("a")
    assert path.read_text() == ""


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    """Only the process that created the findings writes the file."""
    path = tmp_path / "findings"
    findings = Findings(str(path))
    child = os.fork()
    if child == 0:
        findings.add("child", "input-mutated", "from the child", {})
        os._exit(0)
    os.waitpid(child, 0)
    assert not path.exists()


def test_missing_file_is_no_failure(tmp_path: Path) -> None:
    """A diagnoser never makes a testcase fail."""
    Findings(None).note("no file")
    Findings(str(tmp_path / "missing" / "findings")).note("no such folder")
