"""Classify a run: how the run ended × the reporter's claim → outcome, with a reason. Pure.

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
from runners.core.failure.oracle.outcome import (
    ASSERTION,
    CHECKS,
    COMPILER_DIAGNOSTIC,
    OUTPUT,
    READ_BACK,
    Classification,
    Drift,
    OracleContext,
    get_last_output,
    is_about_values,
)

__all__ = [
    "ASSERTION",
    "CHECKS",
    "COMPILER_DIAGNOSTIC",
    "OUTPUT",
    "READ_BACK",
    "Classification",
    "Drift",
    "OracleContext",
    "classify_run",
    "get_last_output",
    "is_about_values",
]
