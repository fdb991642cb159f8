"""The contract of the workbench, the object that runs plans. Commands, jobs and the fakes of tests share it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the command line reads the limits below, and starts without the types of a run
    from runners.core.bisection.commits import Prior
    from runners.core.protocol import BuildRange, Investigation, Plan, Smaller
    from runners.core.runs import Tell

MOST_PROBES = 300
"""Most runs of one reduction of a testcase."""
MOST_SECONDS = 900.0


class Bench(Protocol):
    """Runs plans in sandboxes. `runners.workbench.Workbench` is the implementation."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Facts about the machine and the sandbox that a reader of the verdict must know."""

    def run(self, plan: Plan, *, prior: Prior | None = None, tell: Tell | None = None) -> Investigation:
        """Run a plan. ``prior`` weighs the commits for a search between two releases.

        ``tell`` is called once if a diagnosis follows the search.
        """

    def minimize(
        self,
        plan: Plan,
        version: str,
        *,
        control: str = "",
        passing: str = "",
        probes: int = MOST_PROBES,
        seconds: float = MOST_SECONDS,
    ) -> Smaller:
        """Reduce the plan's testcase on ``version``.

        Raises:
            NotReducible: no run shows the failure, the failure is flaky, or a wrong result has no control.
        """


class DeepBench(Bench, Protocol):
    """A bench that also knows builds between releases."""

    def list_builds(self, toolchain: str, good: str, bad: str, prior: Prior | None = None) -> BuildRange:
        """List the builds between two versions, tags or commits.

        Raises:
            UserError: one end does not exist, or no build is between the two.
        """
