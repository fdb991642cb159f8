"""Classify a run: how the run ended × the reporter's claim → outcome, with a reason in words. Pure.

Only ``match`` counts as bad and only ``pass`` as good:

====================  =========================================================================================
run                   outcome
====================  =========================================================================================
not run               ``unavailable`` or ``infra``
out of memory         ``out-of-memory``; ``match`` if the report states this, or is about memory
timed out             ``timeout`` of wall clock or processor time; ``match`` if the report describes a hang or a
                      slow run
failed                ``match`` if the failure is the reported one; else ``unavailable`` (device), ``incompatible``
                      (API moved), ``pass`` (compiled, and the report fails while compiling) or ``other-failure``
ran to its end        ``match`` if the report is about a missing error, or if the output is the reported wrong
                      output; ``other-failure`` if a wrong result is claimed and neither testcase nor report
                      distinguishes right from wrong; else ``pass``
====================  =========================================================================================
"""

from __future__ import annotations

from runners.core.failure.oracle.classify import classify_run
from runners.core.failure.oracle.completed import (
    ACCEPTED,
    COUNTED,
    KEEPS,
    PRINTS_EXPECTED,
    PRINTS_OTHER_REFERENCE,
    PRINTS_SIMILAR,
    TWINS_DIFFER,
)
from runners.core.failure.oracle.failed import REFUSED
from runners.core.failure.oracle.outcome import (
    ASSERTION,
    CHECKS,
    COMPILER_DIAGNOSTIC,
    OUTPUT,
    READ_BACK,
    Classification,
    Drift,
    OracleContext,
    get_answer,
    get_last_output,
    is_about_values,
)

__all__ = [
    "ACCEPTED",
    "ASSERTION",
    "CHECKS",
    "COMPILER_DIAGNOSTIC",
    "COUNTED",
    "KEEPS",
    "OUTPUT",
    "PRINTS_EXPECTED",
    "PRINTS_OTHER_REFERENCE",
    "PRINTS_SIMILAR",
    "READ_BACK",
    "REFUSED",
    "TWINS_DIFFER",
    "Classification",
    "Drift",
    "OracleContext",
    "classify_run",
    "get_answer",
    "get_last_output",
    "is_about_values",
]
