"""Define the contract of a diagnoser: a failure → control runs and findings. `Means` contains all effects.

A toolchain lists its diagnosers in ``DIAGNOSERS``, cheapest first, and its comparisons of two runs in
``COMPARISONS``. `runners.diagnosis.diagnose` selects the diagnosers to run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runners.core.protocol import Finding, Observation, Testcase, TestcaseKind, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure that the host observed, and the testcase that shows it."""

    testcase: Testcase
    seen: Observation
    """The run that failed as reported."""
    clean: Observation | None = None
    """A run of the same build without the failure, if available."""

    @property
    def is_flaky(self) -> bool:
        return self.clean is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The effects that a diagnoser may use."""

    run: Callable[[str, Variant, Testcase, str], Observation]
    """Run a testcase on a release, as a variant of the reported one, on a device."""
    run_hook: Callable[[str, Testcase], str]
    """Run a testcase whose step launches a guest program. Return the lines that the program wrote: a claim."""
    retarget: Callable[[Testcase, str], Testcase | None]
    """Return the testcase for another device. None if it names no target, or is for that device already."""
    expect: Callable[[str, Variant, Testcase, str], None] = lambda _version, _variant, _testcase, _device: None
    """Announce a run that will be requested. It may begin now."""

    expect_hook: Callable[[str, Testcase], None] = lambda _version, _testcase: None
    """Announce a run of `run_hook` that will be requested."""

    def run_control(self, failure: Failure, changed: Testcase) -> Observation:
        """Run a changed testcase on the release and the device of a failure."""
        return self.run(failure.seen.version, Variant.CONTROL, changed, failure.seen.device)

    def expect_control(self, failure: Failure, changed: Testcase) -> None:
        """Announce a run of `run_control`. It may still be skipped if an earlier run refutes a claim."""
        self.expect(failure.seen.version, Variant.CONTROL, changed, failure.seen.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The result of one diagnoser, or of all of them."""

    controls: tuple[Observation, ...] = ()
    findings: tuple[Finding, ...] = ()


NOTHING_FOUND = Diagnosis()


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnoser:
    """One way to look for the cause of a failure."""

    kind: TestcaseKind
    """The kind of testcase that it examines."""
    diagnose: Callable[[Failure, Means], Diagnosis]
    needs_reproducible: bool = False
    """True if a flaky failure would mislead it. A search that leaves out passes would find accidents."""
    settles: bool = True
    """False if none of its findings settles the cause. Then the next diagnoser need not wait for it."""
    votes: bool = False
    """True if it recomputes the values. This also judges a run whose output shows nothing."""
    finds_undefined: bool = False
    """True if it finds undefined values of the program. This also judges a run whose output shows nothing."""

    def applies_to(self, failure: Failure) -> bool:
        """True if it examines this kind of testcase, and a flaky failure does not mislead it."""
        return failure.testcase.kind is self.kind and not (self.needs_reproducible and failure.is_flaky)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One of two runs that are compared, and the testcase that was run."""

    testcase: Testcase
    seen: Observation


Comparison = Callable[[ComparedRun, ComparedRun, Means], tuple[Finding, ...]]
"""A run with a wrong result and a run with another result → findings about their first difference."""
