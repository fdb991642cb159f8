"""The contract of a toolchain: everything that holds for one compiler only, as data and small pure functions."""

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
    """The contract of a toolchain module. Everything is a fact; nothing here runs anything."""

    @property
    def NAME(self) -> str:
        """Short name on the command line and in the JSON."""

    @property
    def TITLE(self) -> str:
        """Name in prose."""

    @property
    def REPOSITORY(self) -> str | None:
        """``owner/name`` of its history."""

    @property
    def COMPANIONS(self) -> tuple[str, ...]:
        """Requirements that every environment of it gets besides its distributions."""

    @property
    def PROVIDES(self) -> frozenset[str]:
        """Modules that every environment of it has, for which a testcase's import asks for nothing more."""

    @property
    def VARIABLES(self) -> Mapping[str, str]:
        """Process environment that makes it talk and keeps it still."""

    @property
    def DEVICES(self) -> Sequence[Device]: ...

    @property
    def DRIFT(self) -> Sequence[DriftEntry]: ...

    @property
    def CANARY(self) -> Canary: ...

    @property
    def FAILURES(self) -> FailureVocabulary:
        """How its failures read."""

    @property
    def GUEST(self) -> GuestFacts:
        """How its programs are watched."""

    @property
    def REWRITING(self) -> Rewriting:
        """How its testcases are brought to another release or device."""

    @property
    def REPORTS(self) -> ReportVocabulary:
        """The words by which issues speak of the compiler; `bot.extract` knows a compiler by these alone."""

    @property
    def DIAGNOSERS(self) -> Sequence[Diagnoser]:
        """Ways to look for the cause of a failure, cheapest first."""

    @property
    def COMPARISONS(self) -> Sequence[Comparison]:
        """Ways to find where a run with a wrong result parts from another run."""

    @property
    def STAND_INS(self) -> Sequence[str]:
        """Devices of any machine: a testcase whose own device is not here runs on them. The most telling is first."""

    def list_distributions(self, version: str) -> tuple[str, ...]:
        """The pinned distributions of a version; the first names the toolchain's versions."""

    def find_tag(self, version: str) -> str | None:
        """The git ref of a version, by the project's custom; it may not exist."""

    def find_bundle(self, version: str) -> Bundle | None:
        """How a version that another project's wheel carries is laid out; None for the toolchain's own."""

    def list_tools(self, site_packages: Path) -> dict[str, tuple[str, ...]]:
        """Programs in an environment: name → argv prefix.

        A first word ``python`` stands for the interpreter; any other is a path relative to ``site_packages``. It is
        the program itself rather than its console script, which would hide a signal behind an exit status.
        """

    def read_build_info(self, site_packages: Traversable) -> tuple[str | None, str | None]:
        """Version and full commit sha that the wheel says it was built from; read as text, never imported."""
