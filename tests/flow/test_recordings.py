"""Recorded runs of the corpus are what the compilers do: a sample of them is run again."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from bench.proving.corpus import CorpusCase, list_cases
from bench.proving.recordings import load_story
from bench.proving.trials import CORPUS
from bot.extract import extract
from bot.extract.types import Repro
from runners.core.failure.parse import parse_signature
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import Exited, Testcase
from runners.core.runs import RunRequest, RunResult
from runners.toolchains import find_toolchain
from runners.workbench import open_workbench
from runners.workbench.run_ledger import list_guest_digests

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]

SAMPLE = 6


def describe(result: RunResult, testcase: Testcase) -> object:
    """How a run ended, and the failure that its last step printed. Addresses and times are left out."""
    last = result.steps[-1]
    words = find_toolchain(testcase.toolchain).FAILURES
    signature = parse_signature(last.stderr or last.stdout, words, last.ended)
    ended = last.ended.code if isinstance(last.ended, Exited) else type(last.ended).__name__
    return len(result.steps), ended, signature and (signature.type, signature.site)


def list_steady_cases() -> list[tuple[CorpusCase, Testcase, str]]:
    """Cases without a hang and without chance, with their testcase and device."""
    found = []
    for case in list_cases():
        read = extract(case.issue)
        unsteady = case.truth.verdict == "flaky" or "hang" in (case.expected.get("claim", {}).get("kind") or "")
        if isinstance(read, Repro) and not read.missing and not unsteady:
            found.append((case, read.testcase, read.device))
    return found


def test_a_sample_of_recordings_still_holds() -> None:
    """The sample changes with the guest programs, so that over time every recording is run again."""
    catalogue = load_catalogue()
    cases = list_steady_cases()
    random.Random("".join(sorted(list_guest_digests()))).shuffle(cases)
    checked = 0
    workbench = open_workbench("auto", catalogue, Silent())
    with closing(workbench.sessions):
        for case, testcase, device in cases:
            version = catalogue.get_listing(testcase.toolchain).releases[-1].version
            request = RunRequest(version=version, device=device, testcase=testcase)
            recorded = load_story(CORPUS, case.truth.name).find(request.key, 0)
            if recorded is None or not recorded.steps:
                continue
            live = workbench.execute(request)
            assert describe(live, testcase) == describe(recorded, testcase), case.truth.name
            checked += 1
            if checked == SAMPLE:
                break
    assert checked == SAMPLE
