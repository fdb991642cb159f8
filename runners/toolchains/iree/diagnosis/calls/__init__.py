"""Check whether the command fits the program and the tools that it calls."""

from __future__ import annotations

from runners.core.protocol import Outcome, TestcaseKind
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.wrong_call import confirm_wrong_call, find_rejection
from runners.toolchains.iree.diagnosis.calls.demoted import (
    find_asked_demotion,
    find_demoted_argument,
    find_demoted_values,
)
from runners.toolchains.iree.diagnosis.calls.old_notation import find_old_notation
from runners.toolchains.iree.diagnosis.calls.parameter_types import find_parameter_of_other_type
from runners.toolchains.iree.diagnosis.calls.raw_files import find_raw_array
from runners.toolchains.iree.diagnosis.calls.signature import find_wrong_call
from runners.toolchains.iree.diagnosis.calls.unknown_names import find_other_target, find_unknown_name


def check_call(failure: Failure, means: Means) -> Diagnosis:
    """Look for a difference between the command and what it calls. Run the testcase with a corrected command."""
    if (raw := find_raw_array(failure.testcase)) is not None:
        return confirm_wrong_call(raw, failure, means)
    values = find_asked_demotion(failure) or find_parameter_of_other_type(failure) or find_demoted_values(failure)
    if values is not None:
        return confirm_wrong_call(values, failure, means)
    signature = find_rejection(failure)
    if signature is None:
        return NOTHING_FOUND
    demoted = find_demoted_argument(failure.testcase, signature)
    if demoted is not None or failure.testcase.kind is TestcaseKind.PYTHON:
        return NOTHING_FOUND if demoted is None else confirm_wrong_call(demoted, failure, means)
    wrong = (
        find_old_notation(failure)
        or find_unknown_name(
            failure.testcase, signature, failure.seen.excerpt, is_reported=failure.seen.outcome is Outcome.MATCH
        )
        or find_other_target(failure.testcase)
        or find_wrong_call(failure.testcase)
    )
    return NOTHING_FOUND if wrong is None else confirm_wrong_call(wrong, failure, means)
