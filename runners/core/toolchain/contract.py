"""Define the contract of a toolchain: all facts about one compiler, as data and small pure functions."""

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
    has a default for each other fact. A module with all of these names is a toolchain as well.
    """

    @property
    @abstractmethod
    def NAME(self) -> str:
        """Short name on the command line and in the JSON."""

    @property
    @abstractmethod
    def CANARY(self) -> Canary:
        """The program that must succeed in an environment before a testcase runs there."""

    @abstractmethod
    def list_distributions(self, version: str) -> tuple[str, ...]:
        """Return the pinned distributions of a version. The first one has the toolchain's version."""

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
        """Packages of the compiler's own project whose versions its wheels leave open. An old release may get a
        package that is newer than itself."""
        return ()

    @property
    def PROVIDES(self) -> frozenset[str]:
        """Modules that every environment contains. A testcase that imports them needs no further requirement."""
        return frozenset()

    @property
    def VARIABLES(self) -> Mapping[str, str]:
        """Environment variables of every run. They make output complete and deterministic."""
        return QUIET

    def list_tools(self, site_packages: Path) -> dict[str, tuple[str, ...]]:
        """Return the programs that the steps of a testcase may start: name → argv prefix.

        The first word ``python`` is the interpreter; any other is a path relative to ``site_packages``. The path is
        that of the program itself, because a console script would turn a signal into an exit status.
        """
        return {"python": ("python",)}

    def find_bundle(self, version: str) -> Bundle | None:
        """Return the layout of a version in another project's wheel. None for the toolchain's own wheels."""
        return None

    @property
    def DEVICES(self) -> Sequence[Device]:
        """The devices that programs can be compiled for."""
        return (HOST_CPU,)

    @property
    def STAND_INS(self) -> Sequence[str]:
        """Devices that every machine has. They replace an absent device, in this order."""
        return ()

    @property
    def DRIFT(self) -> Sequence[DriftEntry]:
        """The names that moved between releases."""
        return ()

    @property
    def REPORTS(self) -> ReportVocabulary:
        """The words by which issues refer to the compiler. `bot.extract` knows a compiler only by these words."""
        return ReportVocabulary()

    @property
    def FAILURES(self) -> FailureVocabulary:
        """The patterns of the compiler's failure messages."""
        return FailureVocabulary()

    @property
    def GUEST(self) -> GuestFacts:
        """The facts that are needed to observe the compiler's programs."""
        return GuestFacts()

    @property
    def REWRITING(self) -> Rewriting:
        """The rules that port a testcase to another release or device."""
        return Rewriting()

    def load_diagnosers(self) -> Sequence[Diagnoser]:
        """Return the diagnosers, cheapest first.

        This is a function, so that a process that only reads issues does not import them.
        """
        return ()

    def load_comparisons(self) -> Sequence[Comparison]:
        """Return the comparisons that find where a run with a wrong result diverges from another run."""
        return ()
