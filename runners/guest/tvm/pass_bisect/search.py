"""Finds the pass with which a TVM testcase begins to fail.

    launch.py tvm.pass_bisect.search search SECONDS repro.py [ARGUMENT…]
    launch.py tvm.pass_bisect.search limit JSON repro.py [ARGUMENT…]

``search`` runs the testcase again and again in forked children, each with all passes after the nth left out, and
bisects over n: first over the passes that it applies itself, then over those inside ``tvm.compile`` and
``relax.build``, in the order in which they run. A pass with others inside is never left out, nor one without which a
later step cannot work: these are found by leaving many out together (``required_passes.py``). ``limit`` runs the
testcase once, as itself, with the passes of one such trial: that is how the host sees for itself what was found. JSON
is ``{"limit": n, "scope": "own" | "pipeline", "always": […], "outer": […]}``.

The finding goes as one JSON line to the file that REPROBOT_FINDINGS names. It is a claim: the testcase runs here.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from dataclasses import replace
from typing import Any

from runners.guest import forget_modules
from runners.guest.tvm.diagnose import run_testcase
from runners.guest.tvm.findings import Findings
from runners.guest.tvm.pass_bisect.required_passes import must_run
from runners.guest.tvm.pass_bisect.skip_passes import OWN, PIPELINE, Choice, Course, install
from runners.guest.tvm.pass_bisect.trial import Trial, attempt

USUALLY_NEEDED = frozenset(
    {
        "LegalizeOps", "CallTIRRewrite", "LowerAllocTensor", "LowerRuntimeBuiltin", "AttachGlobalSymbol",
        "tirx.BindTarget", "s_tir.LowerInitBlock", "s_tir.ConvertBlocksToOpaque", "s_tir.LowerOpaqueBlock",
        "tirx.FlattenBuffer", "tirx.VectorizeLoop", "tirx.MakePackedAPI", "tirx.LowerIntrin",
    }
)  # fmt: skip
"""What lowers to what code generation takes, in 0.25 to 0.27: only where the search begins. Each is tried."""


def main(arguments: list[str]) -> int:
    mode, setting, path, *rest = arguments
    file = os.path.abspath(path)
    findings = Findings(os.environ.pop("REPROBOT_FINDINGS", None))
    tvm = importlib.import_module("tvm")
    forget_modules()
    sys.argv = [path, *rest]
    sys.path[0] = os.path.dirname(file)
    if mode == "limit":
        asked = json.loads(setting)
        outer, always = frozenset(asked["outer"]), frozenset(asked["always"])
        choice = Choice(limit=asked["limit"], scope=asked["scope"], always=always, outer=outer)
        install(tvm, choice, Course())
        return run_testcase(file)
    Search(tvm, file, findings, time.monotonic() + float(setting)).run()
    return 0


class Search:
    """Bisection over the passes of one testcase; ends with at most one finding, or a note why there is none."""

    def __init__(self, tvm: Any, file: str, findings: Findings, deadline: float) -> None:
        self._tvm = tvm
        self._file = file
        self._findings = findings
        self._deadline = deadline
        self._trials = 0

    def run(self) -> None:
        try:
            self._search()
        except TimeoutError:
            self._findings.note("the pass was not found in time", trials=self._trials)

    def _try(self, choice: Choice) -> Trial:
        if time.monotonic() > self._deadline:
            raise TimeoutError
        self._trials += 1
        return attempt(self._tvm, self._file, choice)

    def _search(self) -> None:
        full = self._try(Choice())
        if full.end == "ok":
            self._findings.note("the testcase did not fail when it was run again", trials=self._trials)
            return
        last, left_out = full, False
        for scope in (OWN, PIPELINE):
            choice = Choice(scope=scope, outer=full.outer)
            names = tuple(dict.fromkeys(name for name, _ in full.removable(choice)))
            if not names:
                continue
            last, left_out = self._try(replace(choice, limit=0)), True
            if self._breaks(last, full):
                choice = replace(choice, always=self._needed(full, choice, names))
                last = self._try(replace(choice, limit=0))
            if last.end == "ok":
                self._bisect(full, choice)
                return
        if not left_out:
            self._findings.note("it applies no pass that could be left out", trials=self._trials)
        elif last.like(full):
            self._report_none(full)
        else:
            self._report_unclear(full, last)

    def _needed(self, full: Trial, choice: Choice, names: tuple[str, ...]) -> frozenset[str]:
        """Passes without which it fails in another way."""

        def breaks(left_out: frozenset[str]) -> bool:
            return self._breaks(self._try(replace(choice, without=left_out)), full)

        return must_run(names, USUALLY_NEEDED, breaks)

    @staticmethod
    def _breaks(trial: Trial, full: Trial) -> bool:
        return trial.end != "ok" and not trial.like(full)

    def _bisect(self, full: Trial, choice: Choice) -> None:
        good, bad = 0, len(full.removable(choice))
        while bad - good > 1:
            middle = self._decided(full, choice, good, bad)
            if middle is None:
                break
            good, bad = middle
        last = self._try(replace(choice, limit=bad, show=True))
        applied = last.removable(choice)
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

    def _decided(self, full: Trial, choice: Choice, good: int, bad: int) -> tuple[int, int] | None:
        """Narrower bounds; of limits that fail in another way the nearest others are tried. None: none decides."""
        middle = (good + bad) // 2
        near = sorted(range(good + 1, bad), key=lambda limit: abs(limit - middle))[:8]
        for limit in near:
            trial = self._try(replace(choice, limit=limit))
            if trial.end == "ok":
                return limit, bad
            if trial.like(full):
                return good, limit
        return None

    def _report_none(self, full: Trial) -> None:
        self._findings.add(
            "guilty",
            "guilty-pass",
            "it fails the same way with every pass left out that can be: the fault lies before the passes, in the"
            " testcase, or in one that must run",
            {"pass": "", "application": 0, "under_way": list(full.inside), "trials": self._trials},
        )

    def _report_unclear(self, full: Trial, none: Trial) -> None:
        self._findings.note(
            "without passes it fails in another way, so no pass can be told",
            raised_in=list(full.inside),
            without=none.what,
            trials=self._trials,
        )
