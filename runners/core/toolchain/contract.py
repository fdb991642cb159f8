"""The contract of a toolchain: the facts about one compiler, as data and small pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Protocol

from runners.core.toolchain.diagnosis import Comparison, Diagnoser
from runners.core.toolchain.facts import Bundle, Canary, Device, DriftEntry
from runners.core.toolchain.failures import FailureVocabulary
from runners.core.toolchain.guest import GuestFacts
from runners.core.toolchain.reports import ReportVocabulary
from runners.core.toolchain.rewriting import Rewriting


class Toolchain(Protocol):
    """The contract of a toolchain module. No member runs a program."""

    @property
    def NAME(self) -> str:
        """Short name, used on the command line and in the JSON."""

    @property
    def TITLE(self) -> str:
        """Name in prose."""

    @property
    def REPOSITORY(self) -> str | None:
        """``owner/name`` of the compiler's repository."""

    @property
    def COMPANIONS(self) -> tuple[str, ...]:
        """Requirements that every environment gets in addition to the distributions."""

    @property
    def PROVIDES(self) -> frozenset[str]:
        """Modules that every environment has: to import them, a testcase needs no requirement."""

    @property
    def VARIABLES(self) -> Mapping[str, str]:
        """Environment variables that make runs deterministic and messages complete."""

    @property
    def DEVICES(self) -> Sequence[Device]: ...

    @property
    def DRIFT(self) -> Sequence[DriftEntry]: ...

    @property
    def CANARY(self) -> Canary: ...

    @property
    def FAILURES(self) -> FailureVocabulary:
        """The vocabulary of the compiler's failures."""

    @property
    def GUEST(self) -> GuestFacts:
        """The traits by which runs of its programs are watched."""

    @property
    def REWRITING(self) -> Rewriting:
        """The rules that port its testcases to another release or device."""

    @property
    def REPORTS(self) -> ReportVocabulary:
        """The vocabulary of issues about the compiler. `bot.extract` knows a compiler only by its vocabulary."""

    @property
    def DIAGNOSERS(self) -> Sequence[Diagnoser]:
        """Diagnosers that look for the cause of a failure, cheapest first."""

    @property
    def COMPARISONS(self) -> Sequence[Comparison]:
        """Comparisons that find where a run with a wrong result first differs from another run."""

    @property
    def STAND_INS(self) -> Sequence[str]:
        """Devices that every machine has, the most informative first. A testcase for a device that the machine lacks
        runs on them."""

    def list_distributions(self, version: str) -> tuple[str, ...]:
        """Return the pinned distributions of a version. The first has the versions of the toolchain."""

    def find_tag(self, version: str) -> str | None:
        """Return the git ref of a version by the project's naming scheme. The ref may not exist."""

    def find_bundle(self, version: str) -> Bundle | None:
        """Return the bundle of a version that another project's wheel carries; None for the toolchain's own."""

    def list_tools(self, site_packages: Path) -> dict[str, tuple[str, ...]]:
        """Return the programs in an environment: name → argv prefix.

        A first word ``python`` stands for the interpreter. Any other first word is a path relative to
        ``site_packages``: that of the program itself, because a console script hides a signal behind an exit status.
        """

    def read_build_info(self, site_packages: Traversable) -> tuple[str | None, str | None]:
        """Return the version and the full commit sha that a wheel names as its source. Files are read as text, never
        imported."""
