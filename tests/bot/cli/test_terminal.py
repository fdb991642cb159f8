"""The terminal shows progress during a run and the verdict at the end; no text of a stranger controls it."""

from __future__ import annotations

import io
import re
import threading

import pytest
from hypothesis import example, given
from rich.console import Console

from bot.cli.terminal import (
    LineSink,
    LiveSink,
    make_spinners,
    print_report,
    show_checks,
    show_progress,
    show_report,
    stop_commands,
)
from bot.report.comment import render_comment
from runners.core.progress import Sink
from runners.core.protocol import Cell, Observation, Outcome, Testcase, TestcaseKind, Variant
from runners.doctor import MachineCheck
from tests.bot.report import reports
from tests.bot.report.test_comment import HOSTILE, WORDS, poisoned

OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[\d*[AK]|\r")
"""What rich itself writes: colours, the cursor hidden and shown, a line up and cleared."""


def terminal() -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, force_terminal=True, width=100, highlight=False, color_system="standard"), written


def cell(version: str = "0.26.0", variant: Variant = Variant.ORIGINAL) -> Cell:
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={}, steps=())
    return Cell(
        id=f"tvm-{version}", toolchain="tvm", version=version, device="llvm", variant=variant, testcase=testcase
    )


def seen(outcome: Outcome) -> Observation:
    return reports.seen("0.26.0", outcome)


def narrate(sink: Sink, words: str = "all is well") -> None:
    sink.say(words)
    with sink.stage(f"building {words}"):
        sink.cell(cell(), None)
        sink.cell(cell(), seen(Outcome.MATCH))
    sink.cell(cell("0.27.0", Variant.PORTED), None)
    sink.cell(cell("0.27.0", Variant.PORTED), seen(Outcome.PASS))


def test_a_log_has_one_line_for_each_event() -> None:
    """No escape, no spinner, no wrapped line."""
    written = io.StringIO()
    narrate(LineSink(Console(file=written, width=40)), "x" * 200)
    assert written.getvalue().splitlines() == [
        "x" * 200,
        f"building {'x' * 200} …",
        "❌ tvm 0.26.0 on llvm: fails as reported, 1.9 s",
        "✅ tvm 0.27.0 on llvm (ported): runs cleanly, 1.9 s",
    ]


def test_a_terminal_shows_running_and_keeps_ended_cells() -> None:
    """A stage and a cell are on the screen while they last; ended cells stay as lines."""
    console, written = terminal()
    with make_spinners(console, refresh=False) as live:
        sink = LiveSink(live)
        with sink.stage("building tvm 0.26.0"):
            sink.cell(cell(), None)
            assert [task.description.strip() for task in live.tasks] == ["building tvm 0.26.0", "tvm 0.26.0 on llvm"]
            sink.cell(cell(), seen(Outcome.PASS))
        assert live.tasks == []
    assert "✅ tvm 0.26.0 on llvm: runs cleanly" in written.getvalue()


def test_a_stage_ends_when_its_work_fails() -> None:
    """Its spinner is removed."""
    console, _ = terminal()
    with make_spinners(console, refresh=False) as live:
        with pytest.raises(KeyboardInterrupt), LiveSink(live).stage("building"):
            raise KeyboardInterrupt
        assert live.tasks == []


def test_the_same_cell_may_run_twice_at_once() -> None:
    """Attempts of one cell on several threads each have their line, and none is left behind."""
    console, _ = terminal()
    with make_spinners(console, refresh=False) as live:
        sink = LiveSink(live)

        def attempt() -> None:
            sink.cell(cell(), None)
            sink.cell(cell(), seen(Outcome.PASS))

        threads = [threading.Thread(target=attempt) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert live.tasks == []


def test_progress_goes_to_stderr_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """stdout is for the result. Without a terminal, progress is plain lines."""
    with show_progress() as sink:
        narrate(sink)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("all is well\n")
    assert "\x1b" not in captured.err


def test_a_pipe_gets_the_comment_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``reprobot reproduce … > comment.md`` writes the comment that would be posted."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    report = reports.regression()
    show_report(report, render_comment(report))
    assert capsys.readouterr().out == render_comment(report)


def test_github_actions_reads_no_command_in_the_output() -> None:
    """The text is between a stop and a start of workflow commands, with a random token."""
    hostile = "fine\n::add-mask::x\n##[group]y\n::stop-commands::z\n::z::\n"
    first, second = (stop_commands(hostile, {"GITHUB_ACTIONS": "true"}) for _ in range(2))
    opening, *inside, closing = first.splitlines()
    token = opening.removeprefix("::stop-commands::")
    assert len(token) == 32
    assert closing == f"::{token}::"
    assert inside == hostile.splitlines()
    assert token not in second
    assert stop_commands(hostile, {}) == hostile


def test_a_person_sees_verdict_matrix_range_and_command() -> None:
    """The open sections of the comment as text; the folded ones are named."""
    console, written = terminal()
    print_report(reports.regression(), console)
    shown = OURS.sub("", written.getvalue())
    for words in (
        "Regression.",
        "❌ fails as reported",
        "✅ runs cleanly",
        "(ported)",
        "reported: 0.26.0",
        "from 0.25.0 (clean) to 0.26.0",
    ):
        assert words in shown
    assert "https://github.com/apache/tvm/compare/v0.25.0...v0.26.0" in shown
    assert "reprobot reproduce apache/tvm#4711" in shown
    assert "Reproduce it by hand: commands and 1 file, 2 repairs" in shown
    assert "<details>" not in shown


def test_doctor_prints_each_check_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """Every check is one line, in order, with its reason."""
    podman = MachineCheck(
        area="sandbox", name="podman", works=False, detail="not installed: apt install podman " + "x" * 200
    )
    show_checks([MachineCheck(area="sandbox", name="bubblewrap", works=True, detail="no network"), podman])
    first, second = capsys.readouterr().out.splitlines()
    assert re.match(r"ok\s+sandbox bubblewrap\s+no network", first)
    assert re.match(r"no\s+sandbox podman\s+not installed: apt install podman", second)


@given(text=WORDS)
@example(text=HOSTILE)
@example(text="[bold red]x[/] [link=https://evil.example]y[/link] [/]")
@pytest.mark.thorough
def test_no_text_of_a_stranger_controls_the_terminal(text: str) -> None:
    """Only rich's own sequences reach the screen; rich's markup in a report is shown as text."""
    console, written = terminal()
    print_report(poisoned(reports.regression(), text), console)
    narrate(LineSink(console), text)
    with make_spinners(console, refresh=False) as live:
        narrate(LiveSink(live), text)
    left = OURS.sub("", written.getvalue())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", left)


def test_rich_markup_is_shown_as_text() -> None:
    """Square brackets are ordinary characters in strangers' texts."""
    console, written = terminal()
    narrate(LineSink(console), "[bold]not bold[/bold] :smile:")
    assert "[bold]not bold[/bold] :smile:" in written.getvalue()
