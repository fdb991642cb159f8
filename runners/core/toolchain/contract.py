"""The contract of a toolchain: everything that holds for one compiler only, as data and small pure functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Protocol

from runners.core.toolchain.diagnosis import Comparison, Diagnoser
from runners.core.toolchain.facts import HOST_CPU, QUIET, Bundle, Canary, Device, DriftEntry
from runners.core.toolchain.failures import FailureVocabulary
from runners.core.toolchain.guest import GuestFacts
from runners.core.toolchain.reports import ReportVocabulary
from runners.core.toolchain.rewriting import Rewriting


class Toolchain(Protocol):
    """The facts about one compiler. No member runs a program.

    Three facts are required: ``NAME``, ``CANARY`` and ``list_distributions``. A class that inherits from `Toolchain`
    gets a default for each other fact. A module that has all of these names is a toolchain as well.
    """

    @property
    @abstractmethod
    def NAME(self) -> str:
        """Short name on the command line and in the JSON."""

    @property
    @abstractmethod
    def CANARY(self) -> Canary:
        """The program that must run in an environment before a testcase is run there."""

    @abstractmethod
    def list_distributions(self, version: str) -> tuple[str, ...]:
        """Return the pinned distributions of a version. The first one has the toolchain's version number."""

    @property
    def TITLE(self) -> str:
        """Name in prose."""
        return self.NAME

    @property
    def REPOSITORY(self) -> str | None:
        """The repository on GitHub with the toolchain's history, as ``owner/name``."""
        return None

    def find_tag(self, version: str) -> str | None:
        """Return the git tag of a version by the project's naming scheme. The tag may not exist."""
        return None

    def read_build_info(self, site_packages: Traversable) -> tuple[str | None, str | None]:
        """Return the version and the full commit sha that the wheel was built from.

        Both are read from files as text. The wheel is never imported.
        """
        return None, None

    @property
    def COMPANIONS(self) -> tuple[str, ...]:
        """Requirements that every environment gets besides the toolchain's distributions."""
        return ()

    @property
    def COMPANION_IMPORTS(self) -> Mapping[str, str]:
        """Companion → pattern of the code that imports it, itself or through a module of the toolchain."""
        return {}

    @property
    def OPEN_DEPENDENCIES(self) -> tuple[str, ...]:
        """Packages of the compiler's own project whose versions its wheels leave open, so that an old release may get
        a package that is younger than the release."""
        return ()

    @property
    def PROVIDES(self) -> frozenset[str]:
        """Modules that every environment has. A testcase that imports them needs no further requirement."""
        return frozenset()

    @property
    def VARIABLES(self) -> Mapping[str, str]:
        """Environment variables of every run. They make output complete and deterministic."""
        return QUIET

    def list_tools(self, site_packages: Path) -> dict[str, tuple[str, ...]]:
        """Return the programs that the steps of a testcase may start: name → argv prefix.

        The first word ``python`` is the interpreter; any other is a path relative to ``site_packages``. The path
        names the program itself, because its console script would hide a signal behind an exit status.
        """
        return {"python": ("python",)}

    def find_bundle(self, version: str) -> Bundle | None:
        """Return the layout of a version that another project's wheel carries; None for the toolchain's own."""
        return None

    @property
    def DEVICES(self) -> Sequence[Device]:
        """The devices that programs can be compiled for."""
        return (HOST_CPU,)

    @property
    def STAND_INS(self) -> Sequence[str]:
        """Devices that every machine has. A testcase for an absent device runs on them, in this order."""
        return ()

    @property
    def DRIFT(self) -> Sequence[DriftEntry]:
        """The names that moved between releases."""
        return ()

    @property
    def REPORTS(self) -> ReportVocabulary:
        """The words by which issues speak of the compiler. `bot.extract` knows a compiler by these words alone."""
        return ReportVocabulary()

    @property
    def FAILURES(self) -> FailureVocabulary:
        """The patterns of the compiler's failure messages."""
        return FailureVocabulary()

    @property
    def GUEST(self) -> GuestFacts:
        """The facts by which the compiler's programs are watched."""
        return GuestFacts()

    @property
    def REWRITING(self) -> Rewriting:
        """The rules that bring a testcase to another release or device."""
        return Rewriting()

    def load_diagnosers(self) -> Sequence[Diagnoser]:
        """Return the ways to look for the cause of a failure, cheapest first.

        A function, so that a process that only reads issues does not import them.
        """
        return ()

    def load_comparisons(self) -> Sequence[Comparison]:
        """Return the ways to find where a run with a wrong result diverges from another run."""
        return ()
