"""The vocabulary of one compiler's failures: how its messages, stacks and complaints about devices read.

`runners.core.failure` reads failures and knows no compiler. Each function there that depends on a compiler takes a
vocabulary. A run is read with the vocabulary of its toolchain. A report is read with the union of all of them
(`runners.toolchains.ALL_FAILURES`), because its compiler may not be known yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

DEVICES = r"(?P<device>cuda|hip|rocm|vulkan|metal|opencl|libcuda|nvcuda|libamdhip64|libvulkan|amdgpu)"
"""A group for the patterns of `Sign`: names of device interfaces and of their libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A message about a device. ``means`` is its meaning in words, where ``{device}`` is the pattern's group."""

    pattern: re.Pattern[str]
    means: str

    def read(self, text: str) -> str | None:
        """The meaning in words if the text has the message."""
        found = self.pattern.search(text)
        if found is None:
            return None
        device = (found.groupdict().get("device") or "gpu").lower()
        return self.means.replace("{device}", _INTERFACES.get(device, device))


_INTERFACES = {"libcuda": "cuda", "nvcuda": "cuda", "libamdhip64": "hip", "libvulkan": "vulkan", "vk": "vulkan"}


def sign_of_missing_device(pattern: str) -> Sign:
    """The sign that a device is not here; the pattern's case does not matter."""
    return Sign(pattern=re.compile(pattern, re.IGNORECASE), means="no {device} device or runtime here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """An exception that a compiler's Python side raises for every failure of a tool: it tells nothing by itself."""

    exception: str
    died: re.Pattern[str]
    """The line below the exception that tells the number of the signal that killed the tool (group ``signal``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """A line below an exception's header that says what failed, where the header is the same for many failures."""

    start: str
    """The beginning of the line."""
    exception: str
    """The exception that ends with such a line: reports often copy the line alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """A notation that newer releases refuse."""

    message: re.Pattern[str]
    """The refusal; group ``text`` is the refused text of the testcase."""
    notation: str
    """The notation in words, in the plural."""
    successor: Callable[[str], str]
    """The refused text → the notation to use instead, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureVocabulary:
    """How the failures of a compiler read. Each field is a tuple, so that vocabularies can be united.

    The default is the vocabulary of a program without a compiler: Python's exceptions, signals, MLIR's diagnostics.
    """

    packages: tuple[str, ...] = ()
    """Python packages of the compiler, whose frames in a traceback identify a failure."""
    noise_frames: tuple[str, ...] = ()
    """Beginnings of native functions that every failure goes through: entry points, call marshalling."""
    site_renames: tuple[tuple[str, str], ...] = ()
    """Words in names of native functions that a release renamed: old, new."""
    crash_banners: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Messages of the compiler's own signal handlers: signal, pattern."""

    error_classes: tuple[str, ...] = ()
    """Exception classes whose bare names do not end as such names do (``OpNotImplemented``)."""
    same_types: tuple[frozenset[str], ...] = ()
    """Sets of types that are names of one type of failure."""
    diagnostic_errors: tuple[str, ...] = ()
    """Exceptions that only say that ``error: …`` lines were printed above them."""
    details: tuple[Detail, ...] = ()
    relays: tuple[Relay, ...] = ()

    statuses: tuple[re.Pattern[str], ...] = ()
    """Messages of a runtime: groups ``code`` and ``m``."""
    status_packages: tuple[str, ...] = ()
    """Packages whose exceptions have a status of the runtime as their message."""
    flag_errors: tuple[re.Pattern[str], ...] = ()
    """Refusals of command-line flags, beside LLVM's: group ``m``."""
    output_errors: tuple[re.Pattern[str], ...] = ()
    """Messages about a result that is not the expected one, at the beginning of a line: group ``m``."""
    harness_lines: tuple[re.Pattern[str], ...] = ()
    """Lines that a tool prints around each result, at their beginning."""

    abbreviations: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Long texts inside messages, and what stands for them (as for ``re.sub``)."""
    subjects: tuple[re.Pattern[str], ...] = ()
    """Where a message names the operator that it is about; the name is the pattern's only group that matched."""

    missing_names: tuple[re.Pattern[str], ...] = ()
    """Messages about a name, flag or option that a build does not have: group ``name``."""
    retired: tuple[Retired, ...] = ()
    missing_devices: tuple[Sign, ...] = ()
    device_troubles: tuple[Sign, ...] = ()
    """Signs that a device or the machine is ill or unfit, so that the run says nothing about the compiler."""


def unite_vocabularies(vocabularies: Iterable[FailureVocabulary]) -> FailureVocabulary:
    """The vocabulary that has every entry of the given ones, in their order."""
    given = tuple(vocabularies)
    united: dict[str, Any] = {
        field.name: tuple(dict.fromkeys(chain.from_iterable(getattr(one, field.name) for one in given)))
        for field in fields(FailureVocabulary)
    }
    return FailureVocabulary(**united)
