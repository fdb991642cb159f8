"""Extraction against the corpus: what is right for each issue was written down before the code that reads it."""

from __future__ import annotations

from functools import cache

from bot.extract.extract import extract
from bot.extract.types import Extraction
from tests.corpus.cases import Case, cases
from tests.corpus.compare import ASPECTS, differences

CASES = {case.name: case for case in cases()}
FLOOR = 0.95
"""Share of cases on which every aspect is right, as last measured. It may only be raised."""


@cache
def read(name: str) -> Extraction:
    return extract(CASES[name].issue)


def test_share_of_issues_read_exactly_right() -> None:
    """At least the share measured last of the issues is read right in every aspect."""
    wrong = {
        case.name: found for case in CASES.values() if (found := list(differences(read(case.name), case.expected)))
    }
    assert 1 - len(wrong) / len(CASES) >= FLOOR, wrong


def test_the_corpus_is_large_and_tells_its_sources() -> None:
    """Sixty issues or more, each naming the real issue that it is modelled on."""
    assert len(CASES) >= 60
    assert all("#" in case.expected["modelled_on"] for case in CASES.values())


def test_spans_point_at_the_source() -> None:
    """Every span lies inside the body, or inside the comment, that it quotes."""
    for case in CASES.values():
        longest = max(len(text.splitlines()) for text in (case.issue.body, *(c.body for c in case.issue.comments)))
        for span in getattr(read(case.name), "spans", ()):
            assert 1 <= span.lines[0] <= span.lines[1] <= longest, (case.name, span)


def test_comparison_notices_a_wrong_expectation() -> None:
    """A case whose expectation is spoilt in any one aspect is reported in that aspect: no check is idle."""
    noticed = set()
    for case in CASES.values():
        got = read(case.name)
        before = {aspect for aspect, _ in differences(got, case.expected)}
        for aspect, spoilt in _spoilt(case):
            after = {name for name, _ in differences(got, spoilt)}
            if aspect in after - before:
                noticed.add(aspect)
    assert noticed == set(ASPECTS)


def _spoilt(case: Case) -> list[tuple[str, dict[str, object]]]:
    right = case.expected
    claim = right["claim"]
    return [
        ("kind", right | {"kind": "song"}),
        ("toolchain", right | {"toolchain": "gcc"}),
        ("files", right | {"files": {"repro.py": "pass"}}),
        ("contains", right | {"must_contain": ["\N{SNOWMAN}"]}),
        ("steps", right | {"steps": [["true"]], "step_tools": None}),
        ("controls", right | {"controls": {"count": 9, "must_contain": []}}),
        ("repairs", right | {"repairs": [{"kind": "pray"}]}),
        ("missing", right | {"missing": [{"kind": "file", "name": "\N{SNOWMAN}"}]}),
        ("requirements", right | {"requirements": ["left-pad"]}),
        ("device", right | {"device": "abacus"}),
        ("claim", right | {"claim": claim | {"kind": "song"}}),
        ("signature", right | {"claim": claim | {"message_contains": "\N{SNOWMAN}"}}),
        ("versions", right | {"claim": claim | {"versions": ["0.0.1"]}}),
        ("devices", right | {"claim": claim | {"devices": ["abacus"]}}),
    ]
