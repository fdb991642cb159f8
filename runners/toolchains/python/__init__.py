"""Plain CPython with any packages: what a testcase needs when the compiler isn't one of ours. Versions are minors."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path

from runners.core.protocol import TestcaseKind
from runners.core.toolchain.diagnosis import Comparison, Diagnoser
from runners.core.toolchain.facts import QUIET, Bundle, Canary, Device, DriftEntry
from runners.core.toolchain.failures import FailureVocabulary
from runners.core.toolchain.guest import GuestFacts
from runners.core.toolchain.reports import ReportVocabulary
from runners.core.toolchain.rewriting import Rewriting

NAME = "python"
TITLE = "CPython"
REPOSITORY: str | None = None
COMPANIONS: tuple[str, ...] = ()

PROVIDES: frozenset[str] = frozenset()
VARIABLES = dict(QUIET)
DEVICES = (Device(name="cpu", aliases=frozenset({"host", "x86_64"})),)
STAND_INS: tuple[str, ...] = ()
DIAGNOSERS: tuple[Diagnoser, ...] = ()
COMPARISONS: tuple[Comparison, ...] = ()
DRIFT: tuple[DriftEntry, ...] = ()
FAILURES = FailureVocabulary()
GUEST = GuestFacts()
REWRITING = Rewriting()
REPORTS = ReportVocabulary()
CANARY = Canary(
    kind=TestcaseKind.PYTHON,
    files={"canary.py": "print('canary ok', sum(range(4)))\n"},
    steps=(("python", "canary.py"),),
    prints="canary ok 6",
)


def list_distributions(version: str) -> tuple[str, ...]:
    """Nothing: the interpreter comes from the machine, packages from the testcase's requirements."""
    return ()


def find_tag(version: str) -> str | None:
    return None


def find_bundle(version: str) -> Bundle | None:
    return None


def list_tools(site_packages: Path) -> dict[str, tuple[str, ...]]:
    return {"python": ("python",)}


def read_build_info(site_packages: Traversable) -> tuple[str | None, str | None]:
    return None, None
