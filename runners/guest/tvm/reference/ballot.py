"""Collect the vote on a testcase's calls. All voters share it: one difference decides, and one silence prevents
agreement.

The vote is written as a line of JSON to the file that REPROBOT_FINDINGS names. It is a claim, because the testcase
runs in the same process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runners.guest.tvm.findings import Findings

KIND = "reference"
AGREES, DIFFERS, UNDEFINED = "agrees", "differs", "undefined"
"""``undefined``: some values have no defined result, and all others agree."""


class Ballot:
    """Collects the votes on the calls."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.is_decided = False
        """True if more calls cannot change the vote."""
        self.silent = False
        """True if a call was not evaluated, so that the calls together cannot agree."""
        self._holds = False
        """True if a difference is reported that no call of the testcase showed."""
        self.is_exact = True
        """False if a call agrees only up to rounding, or if a voter cannot decide."""

    def report(self, vote: str, summary: str, evidence: dict[str, Any]) -> None:
        """Report a vote. Without other evidence the voter is NumPy."""
        if self._holds and vote == AGREES:
            return
        self._findings.add(KIND, KIND, summary, {"name": "NumPy", "vote": vote, **evidence})
        self.is_decided = self.is_decided or vote in (DIFFERS, UNDEFINED)
        self.is_exact = self.is_exact and bool(evidence.get("exact"))

    def hold(self, summary: str, evidence: dict[str, Any]) -> None:
        """Report a difference that no call of the testcase showed. A later difference of a call replaces it."""
        if not self._holds and not self.is_decided:
            self._findings.add(KIND, KIND, summary, {"vote": DIFFERS, **evidence})
            self._holds = True

    def withdraw(self, why: str, summary: str = "a call could not be evaluated") -> None:
        """Record that a call has no vote. Then the calls together cannot agree."""
        self.silent = True
        if not self.is_decided and not self._holds:
            self._findings.drop(KIND)
        self._findings.note(summary, why=why[-200:])

    def note(self, summary: str, error: Exception) -> None:
        self._findings.note(summary, why=f"{type(error).__name__}: {error}"[-300:])

    def try_action(self, action: Callable[[], Any]) -> Any:
        """Return the result of an action. If it fails, withdraw and return None."""
        try:
            return action()
        except Exception as error:
            self.withdraw(f"{type(error).__name__}: {error}")
            return None
