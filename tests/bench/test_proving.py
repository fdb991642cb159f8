"""Grades, tellings and recordings keep their promises, and dummies do not pass for the product."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from bench.proving import recordings as recorded
from bench.proving.dummies import list_dummies, make_memorizer, play_inconclusive
from bench.proving.grades import Answer, Graded, Label, grade_answer, render_misses, render_row, render_unchanged
from bench.proving.recordings import Recordings, Replay
from bench.proving.story import Story
from bench.proving.telling import AXES, Telling, draw, plain, render, shrink
from bench.proving.trials import (
    CORPUS,
    Trial,
    choose_seed,
    grade_trial,
    list_corpus,
    load_recordings,
    play_product,
    retell,
)
from bot.extract import extract
from bot.extract.types import Repro
from bot.forge.source import parse_issue
from runners.core.packages.catalogue import Catalogue, load_catalogue
from runners.core.protocol import Exited, NotRun, StepResult, Testcase, TestcaseKind
from runners.core.runs import RunRequest, RunResult

SCRIPT = "import numpy as np\nimport tvm\n\nx = np.arange(6)\nassert tvm.nd.array(x).numpy().sum() == 16\n"
STORY = Story(
    name="tvm/sum-of-six",
    toolchain="tvm",
    title="the sum of an array is off by one",
    files={"repro.py": SCRIPT},
    steps=(("python", "repro.py"),),
    claim="error",
    failure='Traceback (most recent call last):\n  File "repro.py", line 5, in <module>\nAssertionError',
    version="0.26.0",
    created=date(2026, 3, 1),
)
EMPTY = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={}, steps=())
LABEL = Label(verdict="fixed", accepted=("confirmed",), never=("invalid-repro",))


@pytest.mark.parametrize(
    ("verdict", "fault", "grade"),
    [
        ("fixed", "", "right"),
        ("confirmed", "", "accepted"),
        ("fixed", "behaviour: 0.26.0 pass instead of match", "useless"),
        ("invalid-repro", "", "harmful"),
        ("regression", "", "wrong"),
        ("inconclusive", "", "useless"),
        ("", "error: no such build", "useless"),
    ],
)
def test_a_grade_follows_from_the_label_alone(verdict: str, fault: str, grade: str) -> None:
    assert grade_answer(LABEL, Answer(verdict=verdict, fault=fault)) == grade


def test_an_answer_that_lacks_a_recorded_run_counts_for_nothing() -> None:
    graded = [
        Graded(name="a", label=LABEL, answer=Answer(verdict="fixed", confidence=0.95), grade="right"),
        Graded(name="b", label=LABEL, answer=Answer(verdict="regression"), grade="unrecorded"),
    ]
    row = render_row("set", graded)
    assert "1 (+1 unrecorded)" in row
    assert "1 of 1, 100 %" in row
    assert render_misses(graded) == ""


def test_a_telling_is_unchanged_if_its_verdict_is_that_of_its_story() -> None:
    """Right or wrong. Tellings without a recorded run, or of an unknown story, do not count."""
    own, other = Answer(verdict="inconclusive"), Answer(verdict="fixed")
    story = Graded(name="a", label=LABEL, answer=own, grade="useless")
    told = [
        Graded(name=f"a@{at}", label=LABEL, answer=answer, grade="useless") for at, answer in enumerate((own, other))
    ]
    unknown = Graded(name="b@0", label=LABEL, answer=other, grade="right")
    absent = Graded(name="a@2", label=LABEL, answer=other, grade="unrecorded")
    assert "1 of 2, 50 %" in render_unchanged([story], [*told, unknown, absent])


@example(3448279)
@given(st.integers(min_value=0, max_value=10**9))
def test_every_telling_of_a_story_holds_its_testcase(seed: int) -> None:
    """The digest of the testcase must not depend on the words around it."""
    issue = parse_issue(render(STORY, draw(seed)).encode(), source="story.md", today=date(2026, 11, 21))
    read = extract(issue)
    assert isinstance(read, Repro), read
    code = [line.partition("  # gives ")[0] for line in next(iter(read.testcase.files.values())).splitlines()]
    assert [line for line in code if line and not line.startswith("#")] == [one for one in SCRIPT.splitlines() if one]


def test_a_seed_tells_the_same_and_another_seed_tells_otherwise() -> None:
    assert render(STORY, draw(7)) == render(STORY, draw(7))
    assert len({render(STORY, draw(seed)) for seed in range(50)}) == 50


def test_a_failing_telling_is_reduced_to_the_options_that_matter() -> None:
    guilty = plain().with_option("version", "date").with_option("decoy", "ir-dump").with_option("chat", "both")

    def fails(telling: Telling) -> bool:
        return telling["version"] == "date" and telling["decoy"] == "ir-dump"

    assert shrink(guilty, fails).unusual == {"version": "date", "decoy": "ir-dump"}


def test_every_option_of_every_axis_can_be_told() -> None:
    for axis, options in AXES.items():
        for option in options:
            assert render(STORY, plain().with_option(axis, option)).startswith("---\ncreated: ")


# ---------------------------------------------------------------------------------------------- recordings


def _result(text: str) -> RunResult:
    step = StepResult(argv=("python", "repro.py"), ended=Exited(code=0), stdout=text, stderr="", seconds=0.1)
    return RunResult(ended=Exited(code=0), steps=(step,))


def test_a_replay_answers_equal_requests_in_their_order(tmp_path: Path) -> None:
    request = RunRequest(version="0.26.0", device="llvm", testcase=EMPTY)
    runs = Recordings()
    answers = iter(["first", "second"])
    live = Replay(runs, lambda _: _result(next(answers)))
    assert [live(request).steps[0].stdout for _ in range(2)] == ["first", "second"]
    recorded.save_story("set", "tvm/one", runs, tmp_path)
    again = Replay(recorded.load_story("set", "tvm/one", tmp_path))
    assert [again(request).steps[0].stdout for _ in range(3)] == ["first", "second", "second"]
    other = again(replace_version(request))
    assert isinstance(other.ended, NotRun)
    assert [one.version for one in again.missing] == ["0.27.0"]


def replace_version(request: RunRequest) -> RunRequest:
    return RunRequest(version="0.27.0", device=request.device, testcase=request.testcase)


def test_a_failure_of_the_machine_is_not_recorded() -> None:
    runs = Recordings()
    replay = Replay(runs, lambda _: RunResult(ended=NotRun(why="no engine", cause="infra"), steps=()))
    replay(RunRequest(version="0.26.0", device="llvm", testcase=EMPTY))
    assert not runs.runs


# ---------------------------------------------------------------------------------------------- the measurement


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def sample() -> list[Trial]:
    """Recorded cases, every seventh of the corpus."""
    return [trial for trial in list(list_corpus())[::7] if load_recordings(trial).runs][:12]


@pytest.mark.thorough
def test_recorded_cases_get_their_verdict_without_a_compiler(sample: list[Trial], catalogue: Catalogue) -> None:
    graded = [grade_trial(trial, play_product(trial, load_recordings(trial), catalogue)) for trial in sample]
    assert len(graded) >= 8
    assert [one for one in graded if one.bad] == []
    assert sum(one.good for one in graded) >= 0.9 * len(graded)


def test_a_judge_that_never_commits_scores_nothing(sample: list[Trial], catalogue: Catalogue) -> None:
    graded = [grade_trial(one, play_inconclusive(one, Recordings(), catalogue)) for one in sample]
    assert sum(one.grade == "right" for one in graded) <= sum(one.label.verdict == "inconclusive" for one in sample)


@pytest.mark.thorough
def test_a_judge_that_knows_the_corpus_fails_on_its_retellings(sample: list[Trial], catalogue: Catalogue) -> None:
    knows = make_memorizer(by_testcase=False)
    assert all(grade_trial(one, knows(one, Recordings(), catalogue)).grade == "right" for one in sample)
    told = [other for one in sample for other in retell(one, load_recordings(one), catalogue, 2)]
    assert told
    assert not any(grade_trial(one, knows(one, Recordings(), catalogue)).grade == "right" for one in told)


def test_the_tellings_of_two_stories_differ() -> None:
    other = replace(STORY, name="tvm/another")
    assert draw(choose_seed(STORY, 0)).options != draw(choose_seed(other, 0)).options


@pytest.mark.thorough
def test_every_dummy_plays(catalogue: Catalogue, sample: list[Trial]) -> None:
    for name, make in list_dummies().items():
        assert make()(sample[0], load_recordings(sample[0]), catalogue).verdict, name


def test_recordings_belong_to_cases_of_the_corpus() -> None:
    names = {trial.name for trial in list_corpus()}
    folder = recorded.FOLDER / CORPUS
    assert {str(path.relative_to(folder)).removesuffix(".jsonl.xz") for path in folder.rglob("*.xz")} <= names


def test_recordings_of_other_guest_programs_are_reported_as_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    request = RunRequest(version="0.26.0", device="llvm", testcase=EMPTY)
    runs = Recordings()
    Replay(runs, lambda _: _result("once"))(request)
    assert runs.list_stale() == []
    monkeypatch.setattr(recorded, "list_guest_digests", lambda: frozenset({"0" * 16}))
    assert [one.key for one in runs.list_stale()] == [request.key]
