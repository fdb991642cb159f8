"""Take runs from the ledger if it has them. Make and record the others."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable

from runners.core.errors import InfraError
from runners.core.protocol import Cost, NotRun
from runners.core.runs import Execute, RunRequest, RunResult
from runners.workbench.run_ledger import RunLedger, Surroundings, digest_guest

FindSurroundings = Callable[[RunRequest], Surroundings | RunResult | None]
"""Request → the surroundings of its run here. A result if it cannot be run; None if it must not be recorded."""


class RecordedRuns:
    """Executes the requests of one investigation. Equal requests get separate runs, which a number distinguishes."""

    def __init__(
        self,
        ledger: RunLedger | None,
        live: Execute,
        find_surroundings: FindSurroundings,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ledger = ledger
        self._live = live
        self._find_surroundings = find_surroundings
        self._say = say
        self._used: defaultdict[str, set[int]] = defaultdict(set)
        """Key of a request → the numbers of the runs that this investigation used."""
        self._around: dict[tuple[str, ...], Surroundings | None] = {}
        self._lock = threading.Lock()
        self._made = self._reused = 0
        self._seconds = 0.0

    @property
    def cost(self) -> Cost:
        return Cost(made=self._made, reused=self._reused, seconds=round(self._seconds, 3))

    def __call__(self, request: RunRequest) -> RunResult:
        if self._ledger is None:
            return self._make_run(request)
        around = self._look_around(request)
        if isinstance(around, RunResult):
            return around
        if around is None:
            return self._make_run(request)
        if (found := self._take_recorded(self._ledger, request, around)) is None:
            with self._ledger.lock_run(request):
                # Another investigation may have made the run while this one waited.
                if (found := self._take_recorded(self._ledger, request, around)) is None:
                    return self._record_run(self._ledger, request, around)
        return found

    def _take_recorded(self, ledger: RunLedger, request: RunRequest, around: Surroundings) -> RunResult | None:
        """Return a recorded run that no equal request of this investigation used."""
        with self._lock:
            used = self._used[request.key]
            if (found := ledger.find_run(request, around, used)) is None:
                return None
            used.add(found[0])
            self._reused += 1
            return found[1]

    def _look_around(self, request: RunRequest) -> Surroundings | RunResult | None:
        """Return the surroundings of a request, found once for each environment, device and set of guest programs.

        A failure to find them may pass.
        """
        testcase = request.testcase
        key = (testcase.toolchain, request.version, request.device, digest_guest(testcase), *testcase.requirements)
        if key not in self._around:
            found = self._find_surroundings(request)
            if isinstance(found, RunResult):
                return found
            self._around[key] = found
        return self._around[key]

    def _record_run(self, ledger: RunLedger, request: RunRequest, around: Surroundings) -> RunResult:
        result = self._make_run(request)
        if isinstance(result.ended, NotRun):
            return result
        try:
            number = ledger.add_run(request, result, around)
        except InfraError as reason:  # the run counts even if it is not recorded
            self._say(f"a run is not recorded: {reason}")
            return result
        with self._lock:
            self._used[request.key].add(number)
        return result

    def _make_run(self, request: RunRequest) -> RunResult:
        result = self._live(request)
        with self._lock:
            self._made += not isinstance(result.ended, NotRun)
            self._seconds += result.seconds
        return result
