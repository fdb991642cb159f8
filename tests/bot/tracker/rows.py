"""Rows for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from bot.tracker.cost import SweepSummary
from bot.tracker.rows import IssueRow, TrackedIssue
from runners.core.protocol import Signature

ROW = IssueRow(
    issue=TrackedIssue(
        id="7", title="It fails", created=datetime(2026, 1, 1, tzinfo=UTC), revision="r", url="https://example.org/7"
    ),
    verdict="confirmed",
    confidence=0.9,
    toolchain="tvm",
    device="llvm",
    cells={"0.25.0": "bad", "0.26.0": "bad"},
    failure=Signature(type="InternalError", message="Check failed: the layout of the operand is not supported here"),
    page="issues/7.html",
)
SUMMARY = SweepSummary(sweep=1, listed=1, answered=1, failed=0, unchanged=0, cpu_s=36.0, wall_s=40.0)


def make_row(id: str, **changes: Any) -> IssueRow:
    own = {name: changes.pop(name) for name in list(changes) if name in TrackedIssue.__struct_fields__}
    return msgspec.structs.replace(ROW, issue=msgspec.structs.replace(ROW.issue, id=id, **own), **changes)
