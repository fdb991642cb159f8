"""Weigh the grounds of a verdict: the pieces of evidence for and against it, and the confidence that they give. Pure.

The confidence is logistic: the log-odds of a right verdict are the sum of the weights of its grounds. The weights are
data (``weights.json``), fitted by ``python -m bench.proving.fit``. docs/verdicts.md lists them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from importlib.resources import files

import msgspec


class Ground(StrEnum):
    """One piece of evidence. A verdict rests on one of the first seven."""

    FAILS = "fails"
    RUNS_DISAGREE = "runs-disagree"
    FAULT_TRACED = "fault-traced"
    CLEAN = "clean"
    CANNOT_RUN = "cannot-run"
    NOTHING_TO_RUN = "nothing-to-run"
    NO_ANSWER = "no-answer"

    SEEN_ONCE = "seen-once"
    UNQUOTED = "unquoted"
    UNQUOTED_ELSEWHERE = "unquoted-elsewhere"
    NOT_AS_REPORTED = "not-as-reported"
    BUILD_NOT_NAMED = "build-not-named"
    BUILD_NOT_HERE = "build-not-here"
    OWN_BUILD_CLEAN = "own-build-clean"
    DEVICE_NOT_NAMED = "device-not-named"
    SIGNAL_ONLY = "signal-only"
    KIND_ONLY = "kind-only"
    REWORDED = "reworded"
    OTHER_VALUES = "other-values"
    TOLD_PARTS = "told-parts"
    CHANGED_SINCE = "changed-since"
    PORTED = "ported"
    NEWEST_SILENT = "newest-silent"
    REJECTED = "rejected"
    CONTROL_FAILS = "control-fails"
    DEPENDS_ON_CONDITION = "depends-on-condition"
    CAUSE_FOUND = "cause-found"
    OWN_REFERENCE = "own-reference"
    REFERENCE_DIFFERS = "reference-differs"
    COMPUTED_INDEX = "computed-index"
    REPAIR_PRINTS_ANOTHER = "repair-prints-another"
    OTHER_FAILURE_TRACED = "other-failure-traced"
    NO_PASS_CAUSES = "no-pass-causes"
    SAYS_HOW_TO_CALL = "says-how-to-call"
    TEXT_REFUSED = "text-refused"
    REQUEST_REFUSED = "request-refused"
    YOUNGER_PACKAGE = "younger-package"
    NAME_UNKNOWN = "name-unknown"
    UNDEFINED_INPUT = "undefined-input"
    REFERENCE_AGREES = "reference-agrees"
    ONLY_CLAIMED = "only-claimed"
    ARGUMENT_CHECK = "argument-check"
    RELEASES_DIFFER = "releases-differ"
    PASS_NAMED = "pass-named"
    CRASHES = "crashes"
    NO_VALUE = "no-value"


BASES = frozenset(list(Ground)[:7])
"""The grounds that a verdict rests on. Each verdict has one of them, except after a search along named builds."""
IN_FAVOUR = frozenset(
    {
        Ground.CAUSE_FOUND,
        Ground.OWN_REFERENCE,
        Ground.REFERENCE_DIFFERS,
        Ground.RELEASES_DIFFER,
        Ground.PASS_NAMED,
        Ground.CRASHES,
        Ground.NO_VALUE,
    }
)
"""Grounds that strengthen a verdict. All others except ``BASES`` weaken it."""

MEANINGS = {
    Ground.FAILS: "the testcase fails",
    Ground.RUNS_DISAGREE: "runs of one build disagree",
    Ground.FAULT_TRACED: "a diagnosis traces the failure to the testcase",
    Ground.CLEAN: "the reported release and the newest run the testcase cleanly",
    Ground.CANNOT_RUN: "no build here can run the testcase",
    Ground.NOTHING_TO_RUN: "there is no complete testcase, or no claim",
    Ground.NO_ANSWER: "the runs leave the question open",
    Ground.SEEN_ONCE: "no build was run twice",
    Ground.UNQUOTED: "the report quotes no failure to compare with",
    Ground.UNQUOTED_ELSEWHERE: "the report quotes no failure to compare with, and its build was not run",
    Ground.NOT_AS_REPORTED: "no run fails as reported",
    Ground.BUILD_NOT_NAMED: "the report names no build that could be run",
    Ground.BUILD_NOT_HERE: "the build that the report names is not available",
    Ground.OWN_BUILD_CLEAN: "the build that the report names runs the testcase cleanly",
    Ground.DEVICE_NOT_NAMED: "the report names no device, and several were tried",
    Ground.SIGNAL_ONLY: "the matching crashes left neither stack nor message",
    Ground.KIND_ONLY: "the report gives only a kind of failure to compare with",
    Ground.REWORDED: "type and place of the failure agree, the message only in part",
    Ground.OTHER_VALUES: "a build counts as clean because its values are not those that the report calls wrong",
    Ground.TOLD_PARTS: "words of the report tell which of two printed programs is wrong; no output is quoted",
    Ground.CHANGED_SINCE: "the printed program changed after the report; that this mends the fault is not shown",
    Ground.PORTED: "the deciding run is of a testcase that was ported to another API",
    Ground.NEWEST_SILENT: "the newest release gives no answer",
    Ground.REJECTED: "the newest release rejects the program on which another build crashes",
    Ground.CONTROL_FAILS: "the variant that the report calls working fails too",
    Ground.DEPENDS_ON_CONDITION: "the result depends on a condition outside the testcase",
    Ground.CAUSE_FOUND: "a diagnosis found why runs disagree",
    Ground.OWN_REFERENCE: "the testcase computes the right value itself, without the compiler",
    Ground.REFERENCE_DIFFERS: "a computation without the compiler gives another value than the failing build",
    Ground.COMPUTED_INDEX: "the program computed the wrong index itself",
    Ground.REPAIR_PRINTS_ANOTHER: "the repaired testcase is only known to print another value, not the right value",
    Ground.OTHER_FAILURE_TRACED: "the traced failure is not the reported one",
    Ground.ONLY_CLAIMED: "only the report, or its own testcase, says which value is right",
    Ground.ARGUMENT_CHECK: "the error comes from a check of the arguments, which the testcase itself may get wrong",
    Ground.RELEASES_DIFFER: "one release fails as reported, and another runs the testcase cleanly",
    Ground.PASS_NAMED: "a search names the pass or the phase that causes the failure",
    Ground.CRASHES: "a signal ends each failing run, which no testcase may cause by what it asks",
    Ground.NO_VALUE: "the report shows a value, and the compiler's own error ends each run before there is one",
    Ground.NO_PASS_CAUSES: "no pass causes the wrong value, so only the report calls the value wrong",
    Ground.SAYS_HOW_TO_CALL: "the error says how a function has to be called, and no pass causes the error",
    Ground.TEXT_REFUSED: "builds refuse the text before any pass, so the rule in the message may be right",
    Ground.YOUNGER_PACKAGE: "the failure needs a package that is younger than the release",
    Ground.REQUEST_REFUSED: "every build refuses the request by a rule that the message states",
    Ground.NAME_UNKNOWN: "no release that ran has the name, which says little about releases that did not run",
    Ground.UNDEFINED_INPUT: "the testcase reads memory that it never wrote",
    Ground.REFERENCE_AGREES: "a computation without the compiler gives the value of the failing build",
}


class Weight(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The log-odds that a ground adds, and the number of stories that the fit saw with this ground."""

    weight: float
    stories: int


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted model, with its provenance."""

    provenance: str
    intercept: float
    grounds: dict[Ground, Weight]


@cache
def load_weights() -> Weights:
    """Return the model that ships with this package."""
    return msgspec.json.decode(files("bot.verdict").joinpath("weights.json").read_bytes(), type=Weights)


def get_weight(ground: Ground) -> float:
    """Return the log-odds that a ground adds to the confidence."""
    return load_weights().grounds[ground].weight


def weigh_grounds(grounds: Iterable[Ground], *, measured: float | None = None) -> float:
    """Return the confidence, 0.01 … 0.99, in a verdict on these grounds.

    ``measured`` is a probability that a search along builds measured; the grounds then only change it.
    """
    model = load_weights()
    start = model.intercept if measured is None else _to_odds(measured)
    odds = start + sum(map(get_weight, dict.fromkeys(grounds)))
    return min(0.99, max(0.01, round(1 / (1 + math.exp(-odds)), 2)))


def _to_odds(probability: float) -> float:
    bounded = min(0.999, max(0.001, probability))
    return math.log(bounded / (1 - bounded))
