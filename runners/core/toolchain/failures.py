"""Define the vocabulary of one compiler's failures: its messages, its stacks, and its messages about devices.

`runners.core.failure` reads failures and knows no compiler: each function that depends on a compiler takes a
vocabulary. A run is read with the vocabulary of its toolchain. A report is read with the union of all vocabularies
(`runners.toolchains.ALL_FAILURES`), because its compiler may be unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from runners.core.toolchain.products import Product

DEVICES = r"(?P<device>cuda|hip|rocm|vulkan|metal|opencl|libcuda|nvcuda|libamdhip64|libvulkan|amdgpu)"
"""A group for the patterns of `Sign`: names of device interfaces and of their libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A message about a device. ``means`` is its meaning in words, where ``{device}`` is the pattern's group."""

    pattern: re.Pattern[str]
    means: str

    def read(self, text: str) -> str | None:
        """Return the meaning in words if the text contains the message."""
        found = self.pattern.search(text)
        if found is None:
            return None
        device = (found.groupdict().get("device") or "gpu").lower()
        return self.means.replace("{device}", _INTERFACES.get(device, device))


_INTERFACES = {"libcuda": "cuda", "nvcuda": "cuda", "libamdhip64": "hip", "libvulkan": "vulkan", "vk": "vulkan"}


def sign_of_missing_device(pattern: str) -> Sign:
    """Return the sign of a missing device. The pattern is case-insensitive."""
    return Sign(pattern=re.compile(pattern, re.IGNORECASE), means="no {device} device or runtime here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """An exception that a compiler's Python side raises for every failure of a tool. It contains no details."""

    exception: str
    died: re.Pattern[str]
    """The line below the exception that contains the number of the signal that killed the tool (group ``signal``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """A line below an exception's header that identifies the failure, if many failures share the header."""

    start: str
    """The beginning of the line."""
    exception: str
    """The exception that ends with such a line. Reports often copy the line alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FatalLog:
    """A log line before the program ends. Releases of another time raise an exception instead."""

    row: re.Pattern[str]
    """Matches the row: group ``m`` is the message."""
    exception: str
    """The exception that the other releases raise."""


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
    """The patterns and names of a compiler's failures. Each field is a tuple, so that vocabularies can be united.

    The default reads failures of programs without a compiler: Python's exceptions, signals, MLIR's diagnostics.
    """

    packages: tuple[str, ...] = ()
    """Python packages of the compiler, whose frames in a traceback identify a failure."""
    noise_frames: tuple[str, ...] = ()
    """Beginnings of native functions that are on every stack: entry points, call marshalling."""
    namespaces: tuple[str, ...] = ()
    """Beginnings that most functions of the compiler share: a frame is shown without them."""
    site_renames: tuple[tuple[str, str], ...] = ()
    """Words in names of native functions that a release renamed: old, new."""
    crash_banners: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Messages of the compiler's own signal handlers: signal, pattern."""

    error_classes: tuple[str, ...] = ()
    """Exception classes without the usual ending of such a name (``OpNotImplemented``)."""
    same_types: tuple[frozenset[str], ...] = ()
    """Sets of types that are names of one type of failure."""
    diagnostic_errors: tuple[str, ...] = ()
    """Exceptions whose only information is that ``error: …`` lines were printed above them."""
    details: tuple[Detail, ...] = ()
    unnamed: tuple[Detail, ...] = ()
    """Beginnings of messages that identify the failure if a report quotes them without their exception."""
    fatal_logs: tuple[FatalLog, ...] = ()
    relays: tuple[Relay, ...] = ()

    status_codes: tuple[str, ...] = ()
    """Names of the status codes of a runtime."""
    statuses: tuple[re.Pattern[str], ...] = ()
    """Messages of a runtime, with the groups ``code`` and ``m``."""
    status_packages: tuple[str, ...] = ()
    """Packages whose exceptions contain a status of the runtime as the message."""
    flag_errors: tuple[re.Pattern[str], ...] = ()
    """Refusals of command-line flags, in addition to LLVM's, with the group ``m``."""
    output_errors: tuple[re.Pattern[str], ...] = ()
    """Messages about an unexpected result, at the beginning of a line, with the group ``m``."""
    harness_lines: tuple[re.Pattern[str], ...] = ()
    """Beginnings of lines that a tool prints around each result."""

    abbreviations: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Long texts inside messages, and their replacements (as for ``re.sub``)."""
    subjects: tuple[re.Pattern[str], ...] = ()
    """The name of the operator in a message: the only group of the pattern that matched."""

    unplaced_passes: tuple[re.Pattern[str], ...] = ()
    """Messages about a pass that a build does not run on an operation: groups ``name`` (of its class) and ``on``."""
    missing_names: tuple[re.Pattern[str], ...] = ()
    """Messages about a name, flag or option that a build lacks, with the group ``name``."""
    left_out_assertions: tuple[re.Pattern[str], ...] = ()
    """Conditions of assertions in the compiler's C++ code that its releases are built without."""
    left_out_diagnostics: tuple[re.Pattern[str], ...] = ()
    """Diagnostics of internal checks that the releases are built without. A release continues, to a crash."""
    refusals_of_all: tuple[re.Pattern[str], ...] = ()
    """Messages of a compiler that supports no operation of the input's dialect. They name no operation."""
    rejections: tuple[re.Pattern[str], ...] = ()
    """Messages by which a build rejects a whole text: its parser, its verifier, its list of passes. If every build
    rejects the text, no run shows anything of the reported failure."""
    program_checks: tuple[str, ...] = ()
    """Functions of the compiler that check a program without changing it."""
    refusals: tuple[str, ...] = ()
    """Exceptions by which the compiler refuses a request that violates a rule. The message states the rule."""
    text_rules: tuple[re.Pattern[str], ...] = ()
    """Messages about a rule of the language, or of an operation's declared operands, that the text violates. A
    handwritten verifier is not included, because it may be wrong."""
    argument_checks: tuple[re.Pattern[str], ...] = ()
    """Messages about an argument whose type differs from its declaration, with the groups ``declared`` and ``given``,
    as in a tensor type of the program."""
    call_checks: tuple[re.Pattern[str], ...] = ()
    """Messages of the runtime's checks of a call: arguments, and the name of the function."""
    retired: tuple[Retired, ...] = ()
    products: tuple[Product, ...] = ()
    missing_devices: tuple[Sign, ...] = ()
    missing_parts: tuple[Sign, ...] = ()
    """Signs that the build lacks a part of the compiler: no device would help."""
    device_troubles: tuple[Sign, ...] = ()
    """Signs of a broken or unsuitable device or machine. Such a run is not evidence about the compiler."""


def unite_vocabularies(vocabularies: Iterable[FailureVocabulary]) -> FailureVocabulary:
    """Return the union of vocabularies, with their entries in order."""
    given = tuple(vocabularies)
    united: dict[str, Any] = {
        field.name: tuple(dict.fromkeys(chain.from_iterable(getattr(one, field.name) for one in given)))
        for field in fields(FailureVocabulary)
    }
    return FailureVocabulary(**united)
