"""Find the pass with which a TVM testcase begins to fail.

    launch.py tvm.pass_bisect.search search SECONDS repro.py [ARGUMENT…]
    launch.py tvm.pass_bisect.search limit JSON repro.py [ARGUMENT…]

``search`` runs the testcase repeatedly in forked children, leaves out all passes after the nth, and bisects n. The
passes that the testcase itself applies come first, then the passes inside ``tvm.compile`` and ``relax.build``, in
execution order. Passes that contain other passes always run. So do passes that a later step requires
(``required_passes.py``). ``limit`` runs the testcase once, as itself, with the passes of such a trial, so that the
host can observe the result. JSON is ``{"limit": n, "scope": "own" | "pipeline", "always": […], "outer": […]}``.

The finding is written as a line of JSON to the file that REPROBOT_FINDINGS names. The finding is a claim, because the
testcase runs in the same process.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from typing import Any

from runners.guest.tvm.findings import Findings
from runners.guest.tvm.pass_bisect.required_passes import find_required_passes
from runners.guest.tvm.pass_bisect.skip_passes import OWN, PIPELINE, PassLog, PassSelection, install_selection
from runners.guest.tvm.pass_bisect.trial import PassTrial, run_trial
from runners.guest.tvm.testcase import import_compiler, run_testcase, set_script

USUALLY_NEEDED = frozenset(
    {
        "LegalizeOps", "CallTIRRewrite", "LowerAllocTensor", "LowerRuntimeBuiltin", "AttachGlobalSymbol",
        "tirx.BindTarget", "s_tir.LowerInitBlock", "s_tir.ConvertBlocksToOpaque", "s_tir.LowerOpaqueBlock",
        "tirx.FlattenBuffer", "tirx.VectorizeLoop", "tirx.MakePackedAPI", "tirx.LowerIntrin",
    }
)  # fmt: skip
"""Passes that lower to the input of code generation, in 0.25 to 0.27. A first guess: each pass is still tried."""


def main(arguments: list[str]) -> int:
    mode, setting, path, *rest = arguments
    file = os.path.abspath(path)
    findings = Findings(os.environ.pop("REPROBOT_FINDINGS", None))
    tvm = import_compiler()
    set_script(path, rest)
    if mode == "limit":
        request = json.loads(setting)
        outer, always = frozenset(request["outer"]), frozenset(request["always"])
        choice = PassSelection(limit=request["limit"], scope=request["scope"], always=always, outer=outer)
        install_selection(tvm, choice, PassLog())
        return run_testcase(file)
    PassSearch(tvm, file, findings, time.monotonic() + float(setting)).search_pass()
    return 0


class PassSearch:
    """Bisects the passes of one testcase. Records a finding, or a note with the reason."""

    def __init__(self, tvm: Any, file: str, findings: Findings, deadline: float) -> None:
        self._tvm = tvm
        self._file = file
        self._findings = findings
        self._deadline = deadline
        self._trials = 0

    def search_pass(self) -> None:
        try:
            self._search_scopes()
        except TimeoutError:
            self._findings.note("the pass was not found in time", trials=self._trials)

    def _run_trial(self, choice: PassSelection) -> PassTrial:
        if time.monotonic() > self._deadline:
            raise TimeoutError
        self._trials += 1
        return run_trial(self._tvm, self._file, choice)

    def _search_scopes(self) -> None:
        full = self._run_trial(PassSelection())
        if full.end == "ok":
            self._findings.note("the testcase did not fail when it was run again", trials=self._trials)
            return
        last, has_skipped = full, False
        for scope in (OWN, PIPELINE):
            choice = PassSelection(scope=scope, outer=full.outer)
            names = tuple(dict.fromkeys(name for name, _ in full.list_removable(choice)))
            if not names:
                continue
            last, has_skipped = self._run_trial(replace(choice, limit=0)), True
            if self._fails_otherwise(last, full):
                choice = replace(choice, always=self._find_required(full, choice, names))
                last = self._run_trial(replace(choice, limit=0))
            if last.end == "ok":
                self._bisect_passes(full, choice)
                return
        if not has_skipped:
            self._findings.note("it applies no pass that could be left out", trials=self._trials)
        elif last.is_same_failure(full):
            self._report_none(full)
        else:
            self._report_unclear(full, last)

    def _find_required(self, full: PassTrial, choice: PassSelection, names: tuple[str, ...]) -> frozenset[str]:
        """Return the passes without which the testcase fails in another way."""

        def fails_otherwise(skipped: frozenset[str]) -> bool:
            return self._fails_otherwise(self._run_trial(replace(choice, without=skipped)), full)

        return find_required_passes(names, USUALLY_NEEDED, fails_otherwise)

    @staticmethod
    def _fails_otherwise(trial: PassTrial, full: PassTrial) -> bool:
        return trial.end != "ok" and not trial.is_same_failure(full)

    def _bisect_passes(self, full: PassTrial, choice: PassSelection) -> None:
        good, bad = 0, len(full.list_removable(choice))
        while bad - good > 1:
            middle = self._narrow_bounds(full, choice, good, bad)
            if middle is None:
                break
            good, bad = middle
        last = self._run_trial(replace(choice, limit=bad, show=True))
        applied = last.list_removable(choice)
        name, around = applied[bad - 1] if len(applied) >= bad else ("?", "")
        where = "that the testcase applies" if choice.scope == OWN else "that compiling applies"
        exact = bad - good == 1
        which = f"pass {bad}" if exact else f"passes {good + 1} to {bad}"
        self._findings.add(
            "guilty",
            "guilty-pass",
            f"it fails with {which} of the {len(applied)} {where}, and not without",
            {
                "pass": name if exact else "",
                "inside": around,
                "application": bad,
                "passes_without": good,
                "of": len(applied),
                "scope": choice.scope,
                "difference": list(last.difference),
                "trials": self._trials,
                "always": sorted(choice.always),
                "outer": sorted(choice.outer),
            },
        )

    def _narrow_bounds(self, full: PassTrial, choice: PassSelection, good: int, bad: int) -> tuple[int, int] | None:
        """Return narrower bounds. If a limit fails in another way, try the nearest others. None if all do."""
        middle = (good + bad) // 2
        near = sorted(range(good + 1, bad), key=lambda limit: abs(limit - middle))[:8]
        for limit in near:
            trial = self._run_trial(replace(choice, limit=limit))
            if trial.end == "ok":
                return limit, bad
            if trial.is_same_failure(full):
                return good, limit
        return None

    def _report_none(self, full: PassTrial) -> None:
        self._findings.add(
            "guilty",
            "guilty-pass",
            "it fails the same way with every pass left out that can be: the fault lies before the passes, in the"
            " testcase, or in one that must run",
            {"pass": "", "application": 0, "under_way": list(full.inside), "trials": self._trials},
        )

    def _report_unclear(self, full: PassTrial, none: PassTrial) -> None:
        self._findings.note(
            "without passes it fails in another way, so no pass can be told",
            raised_in=list(full.inside),
            without=none.what,
            trials=self._trials,
        )
