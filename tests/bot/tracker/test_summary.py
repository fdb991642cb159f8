"""The row of a report."""

from __future__ import annotations

import pytest

from bot.tracker.rows import Fingerprint, Work
from bot.tracker.summary import make_row
from tests.bot.report import reports
from tests.bot.tracker.rows import ROW


@pytest.mark.parametrize(("name", "release"), [("regression", "0.26.0"), ("fixed_crash", "")])
def test_no_release_brought_a_failure_that_no_older_release_lacks(name: str, release: str) -> None:
    """The search of `fixed_crash` ends at the oldest release that answers: the failure may be older."""
    report = reports.ALL[name]()
    row = make_row(ROW.issue, report, Fingerprint(), page="", answered="", work=Work())
    assert row.regressed_in == release
