"""Judges that know nothing about compilers. The evaluation must tell them from the product.

Each has the product's reading, plan and runs, or none at all, and gives the verdict in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

from bench.proving.corpus import list_cases
from bench.proving.grades import Answer
from bench.proving.recordings import Recordings
from bench.proving.trials import Play, Trial, play_product
from bot.extract import extract
from bot.extract.types import Repro
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import digest_of


def play_inconclusive(_trial: Trial, _recordings: Recordings, _catalogue: Catalogue) -> Answer:
    """Never commits to anything."""
    return Answer(verdict="inconclusive", confidence=0.5)


def make_memorizer(by_testcase: bool) -> Play:
    """A judge that knows the corpus by heart: by the whole text, or by the testcase alone."""

    def find_key(issue_text: str, trial: Trial) -> str:
        if not by_testcase:
            return issue_text
        extraction = extract(trial.issue)
        testcase = extraction.testcase if isinstance(extraction, Repro) else None
        return digest_of(testcase) if testcase is not None else ""

    known: dict[str, str] = {}
    for case in list_cases():
        extraction = extract(case.issue)
        if by_testcase and isinstance(extraction, Repro):
            known[digest_of(extraction.testcase)] = case.truth.verdict
        elif not by_testcase:
            known[case.issue.body] = case.truth.verdict

    def play(trial: Trial, _recordings: Recordings, _catalogue: Catalogue) -> Answer:
        verdict = known.get(find_key(trial.issue.body, trial))
        return Answer(verdict=verdict or "inconclusive", confidence=1.0 if verdict else 0.5)

    return play


def play_without(*rules: str) -> Play:
    """The product with rules of `bot.verdict.judge` deleted, by their names in that module."""

    def play(trial: Trial, recordings: Recordings, catalogue: Catalogue) -> Answer:
        deleted: dict[str, Any] = dict.fromkeys(rules, _give_no_verdict)
        with mock.patch.multiple("bot.verdict.judge", **deleted):
            return play_product(trial, recordings, catalogue)

    return play


def _give_no_verdict(*_evidence: object) -> None:
    return None


def list_dummies() -> Mapping[str, Callable[[], Play]]:
    """Name → maker of a judge, the product first."""
    return {
        "the product": lambda: play_product,
        "always inconclusive": lambda: play_inconclusive,
        "knows the texts of the corpus": lambda: make_memorizer(by_testcase=False),
        "knows the testcases of the corpus": lambda: make_memorizer(by_testcase=True),
        "without two of its rules": lambda: play_without("judge_invalid_repro", "judge_flaky"),
    }
