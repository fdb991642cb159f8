"""The behaviour of one build, as readers see it: finer than the three answers of the search. Pure."""

from __future__ import annotations

from enum import StrEnum

from runners.core.failure.oracle import OUTPUT
from runners.core.protocol import Answer, Exited, Observation, Outcome, Reason


class Behaviour(StrEnum):
    """The behaviour of one run. Only the behaviours in `BAD` and `GOOD` count for a side."""

    FAILS = "fails-as-reported"
    ACCEPTS = "accepts-as-reported"
    """The run ends well, and the report expects an error."""
    CLEAN = "runs-cleanly"
    REFUSES = "refuses-as-expected"
    """The run ends with the error that the report expects."""
    FAILS_OTHERWISE = "fails-otherwise"
    COMPILES = "compiles-only"
    """Compiling ends well, and the device to run the result is absent, or only compiling was asked for."""
    UNJUDGED = "runs-unjudged"
    """The run ends with status 0, and neither testcase nor report shows whether the output is right."""
    API_DIFFERS = "api-differs"
    UNAVAILABLE = "not-available"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    NOT_RUN = "not-run"


BAD = frozenset({Behaviour.FAILS, Behaviour.ACCEPTS})
GOOD = frozenset({Behaviour.CLEAN, Behaviour.REFUSES})

_BY_OUTCOME = {
    Outcome.MATCH: Behaviour.FAILS,
    Outcome.PASS: Behaviour.CLEAN,
    Outcome.OTHER_FAILURE: Behaviour.FAILS_OTHERWISE,
    Outcome.INCOMPATIBLE: Behaviour.API_DIFFERS,
    Outcome.UNAVAILABLE: Behaviour.UNAVAILABLE,
    Outcome.COMPILED: Behaviour.COMPILES,
    Outcome.TIMEOUT: Behaviour.TIMEOUT,
    Outcome.OUT_OF_MEMORY: Behaviour.OUT_OF_MEMORY,
    Outcome.INFRA: Behaviour.NOT_RUN,
}


def find_behaviour(seen: Observation) -> Behaviour:
    """Return the behaviour of one run."""
    if seen.answer is Answer.BAD:
        return Behaviour.ACCEPTS if seen.reason is Reason.ACCEPTED else Behaviour.FAILS
    if seen.answer is Answer.GOOD:
        return Behaviour.REFUSES if seen.reason is Reason.REFUSED else Behaviour.CLEAN
    prints = seen.signature is None or seen.signature.type == OUTPUT  # else the testcase caught an exception
    if seen.outcome is Outcome.OTHER_FAILURE and seen.ended == Exited(code=0) and prints:
        return Behaviour.UNJUDGED
    if seen.reason is Reason.COMPILES_WITHOUT_DEVICE:
        return Behaviour.COMPILES
    return _BY_OUTCOME[seen.outcome]
