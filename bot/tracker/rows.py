"""The row of one issue: the facts that a sweep keeps, and that the dashboard shows. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec

from runners.core.protocol import Signature

FAILED = "failed"
"""Value instead of a verdict: the issue was not answered, because of our failure or an unreadable text."""


class TrackedIssue(msgspec.Struct, frozen=True, kw_only=True):
    """One issue of a tracker, as its list shows it."""

    id: str
    """Name within the tracker: a number on GitHub, a file's path in a folder."""
    title: str = ""
    url: str = ""
    labels: tuple[str, ...] = ()
    open: bool = True
    locked: bool = False
    created: datetime
    closed: datetime | None = None
    closed_as: str = ""
    """The reason that the forge shows, such as ``completed`` or ``not_planned``; empty if there is none."""
    revision: str
    """Changes whenever the issue may have changed: the time of the last update, or the digest of the file."""


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an answer depends on. An answer is valid while its fingerprint does not change."""

    text: str = ""
    """Digest of the text, the first comments and the attached files."""
    settings: str = ""
    product: str = ""
    """Digest of the code that reads, plans, runs and judges."""
    builds: str = ""
    """Digest of the list of the toolchain's builds; empty without a testcase to run."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one answer."""

    made: int = 0
    reused: int = 0
    """Runs taken from the ledger."""
    run_s: float = 0.0
    seconds: float = 0.0


class IssueRow(msgspec.Struct, frozen=True, kw_only=True):
    """One issue and its answer. Strangers wrote ``title`` and ``labels``; ``why`` may quote them."""

    issue: TrackedIssue
    fingerprint: Fingerprint = Fingerprint()
    verdict: str
    """A `VerdictKind`, or `FAILED`."""
    confidence: float = 0.0
    headline: str = ""
    toolchain: str = ""
    device: str = ""
    cells: dict[str, str] = {}
    """Release → `good`, `bad`, `mixed`, or the outcome of runs that are neither."""
    fixed_in: str = ""
    """The first release with the fix."""
    fixed_by: str = ""
    """The commit of the fix, or the first build between releases that has it, as far as it was found."""
    not_in: tuple[str, ...] = ()
    """Releases of maintenance branches that were published after the fix and still fail."""
    regressed_in: str = ""
    """The first release with the failure; empty if no older release ran cleanly."""
    why: str = ""
    """Why there is no run, or why the row failed."""
    testcase: str = ""
    """Digest of the testcase; empty without one."""
    failure: Signature | None = None
    """The reported failure as it was seen; None if it was not."""
    passes: tuple[str, ...] = ()
    """Compiler passes that fail according to a diagnosis."""
    like: tuple[str, ...] = ()
    """Ids of similar issues, the most similar first."""
    same: tuple[str, ...] = ()
    """The issues of ``like`` whose minimised testcase behaves as this issue's, each on the builds of both."""
    page: str = ""
    """File of the report, relative to the dashboard."""
    answered: str = ""
    """Time of the answer, as ISO 8601."""
    reason: str = ""
    """Why the issue was answered: ``new issue``, ``new release``."""
    posted: str = ""
    """The answer that our comment on the issue was last compared with; empty if it was never compared."""
    foreign: bool = False
    """True for an answer that another machine gave. It is shown, and never posted."""
    work: Work = Work()


class PairCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of two issues by runs of their minimised testcases. It is valid until ``key`` changes."""

    key: str
    """Digest of everything that the outcome depends on."""
    same: bool
    why: str
    builds: tuple[str, ...] = ()
    """The builds on which both minimised testcases were good or bad."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict as it was given, for the comparison with the issue's later state."""

    id: str
    verdict: str
    confidence: float
    answered: str


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """The later state of an issue, beyond the facts of its list."""

    id: str
    commit: str = ""
    """The commit that closed the issue; empty if none did."""
    closed: datetime | None = None
    """The closing that ``commit`` belongs to."""
    voided: str = ""
    """The verdict that a maintainer withdrew with ``/repro void``."""
    voided_at: datetime | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict that differs from that of the previous sweep."""

    id: str
    before: str
    after: str
    why: str
    """Why the issue was answered again: ``new release``."""
