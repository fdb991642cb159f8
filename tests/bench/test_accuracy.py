"""The tables of the accuracy bench say what the records hold, and keep strict and accepted apart."""

from __future__ import annotations

from bench.accuracy.tables import Scored, failed, line, report


def scored(name: str, wanted: str, got: str, confidence: float, **more: object) -> Scored:
    fields = {"name": name, "wanted": wanted, "accepted": (), "got": got, "confidence": confidence, **more}
    return Scored(**fields)  # type: ignore[arg-type]  # the fields above, and those of the one test


def test_an_accepted_verdict_is_not_counted_as_the_right_one() -> None:
    """Strictly right and accepted are two figures."""
    results = [
        scored("t/a", "fixed", "fixed", 0.97),
        scored("t/b", "fixed", "confirmed", 0.97, accepted=("confirmed",)),
    ]
    told = report(results)
    assert "strictly right: 1 of 2 (50.0%)" in told
    assert "right or accepted: 2 of 2" in told
    assert "| 0.95 … 1 | 2 | 0.97 | 0.50 | 1.00 | 0 |" in told


def test_debatable_truth_is_left_out_in_a_line_of_its_own() -> None:
    """And stays in the first figure: doubt never makes that one better."""
    told = report([scored("t/a", "fixed", "fixed", 0.9), scored("t/b", "fixed", "confirmed", 0.9, debatable=True)])
    assert "strictly right: 1 of 2" in told
    assert "without the 1 whose truth is debatable: 1 of 1" in told


def test_only_a_confident_wrong_verdict_fails_the_bench() -> None:
    """Inconclusive is never wrong, and a wrong verdict fails from .9."""
    assert not failed([scored("t/a", "fixed", "inconclusive", 0.95)])
    assert not failed([scored("t/a", "fixed", "confirmed", 0.85)])
    assert failed([scored("t/a", "fixed", "confirmed", 0.9)])


def test_inconclusive_stands_in_a_row_of_its_own() -> None:
    """A band counts verdicts that claim something."""
    told = report([scored("t/a", "fixed", "inconclusive", 0.55)])
    assert "| inconclusive | 1 | 0.55 | 0.00 | 0.00 | 0 |" in told
    assert "| 0.00 …" not in told


def test_a_bug_claimed_of_a_drifted_or_faulty_repro_is_named() -> None:
    """What must never be put on the compiler is listed by name where it was, unless the case accepts it."""
    drifted = scored("t/moved", "untestable", "confirmed", 0.97, bullets=("api-drift",))
    faulty = scored("t/index", "invalid-repro", "regression", 0.97)
    told = report([drifted, faulty])
    assert "1 put on the compiler: t/moved" in told
    assert "1 put on the compiler: t/index" in told


def test_a_cell_that_differs_stands_in_the_line_of_its_case() -> None:
    """Release, what was seen, and what was found by hand."""
    shown = line(scored("t/a", "fixed", "fixed", 0.9, cells=(("1.0", "match", "pass"), ("1.1", "pass", "pass"))))
    assert shown == "right  t/a: fixed 0.90; 1.0: pass, not match"
