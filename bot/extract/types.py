"""What extraction yields: the repro with its provenance, or the reason there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from runners.core.protocol import Claim, Testcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a file of the testcase came from: ``lines`` are 1-based, inclusive, in the issue body as written."""

    file: str
    block: int
    """1-based index of the block in the issue; 0 when the text stands outside any block."""
    lines: tuple[int, int]
    comment: int = 0
    """0 when ``lines`` are in the description; n when in the author's n-th comment."""
    attachment: str = ""
    """The linked file that ``lines`` are in (``a.mlir from a.zip``); empty when they are the issue's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change made to the reporter's text so that it can run. Always recorded, always shown."""

    kind: str
    """``add-import``, ``join-blocks``, ``strip-prompt``, ``dedent``, ``add-compile-step`` …"""
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something the testcase needs and the issue does not give."""

    kind: str
    """``file``, ``name``, ``module`` or ``code``."""
    name: str
    url: str = ""
    """Where the issue offers it (an attachment, a gist); empty when it does not."""
    why: str = ""
    """Why it could not be had from there: a clause after "it …", in our own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repro:
    """A testcase ready to run. ``missing`` is empty unless it cannot run as it stands."""

    testcase: Testcase
    claim: Claim
    spans: tuple[Span, ...]
    repairs: tuple[Repair, ...] = ()
    missing: tuple[Missing, ...] = ()
    device: str = "cpu"
    """The device that the testcase asks for, by the toolchain's name for it (``llvm``, ``llvm-cpu``, ``hip`` …)."""
    controls: tuple[Testcase, ...] = field(default=())
    """The variants that the reporter says work (``original`` is the one said to fail)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRepro:
    """Nothing to run. ``reason`` is one sentence that may be said to the reporter."""

    reason: str
    claim: Claim
    toolchain: str | None
    missing: tuple[Missing, ...] = ()


Extraction = Repro | NoRepro
