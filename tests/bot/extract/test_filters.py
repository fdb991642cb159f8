"""The filters behind a command: kept for the reader's terminal, never run, and never able to write or to run."""

from __future__ import annotations

import pytest

from bot.extract.command_line.shell import parse_commands

COMPILE = "iree-compile a.mlir -o a.vmfb"


@pytest.mark.parametrize(
    ("behind", "kept"),
    [
        (" | grep warning", "| grep warning"),
        (' 2>&1 | grep -o \'cpu = "[^"]*"\' | head -1', '2>&1 | grep -o \'cpu = "[^"]*"\' | head -1'),
        (" | grep -A 3 x | tail -n +2 | wc -l", "| grep -A 3 x | tail -n +2 | wc -l"),
        (" | sort | uniq -c", "| sort | uniq -c"),
        (" | cut -d ' ' -f 2", "| cut -d ' ' -f 2"),
        ("", ""),
    ],
)
def test_filters_are_kept_as_the_report_has_them(behind: str, kept: str) -> None:
    (call,), _ = parse_commands(COMPILE + behind)
    assert call.filters == kept
    assert not any("grep" in word for word in call.argv)


@pytest.mark.parametrize(
    "behind",
    [
        " | sh",
        " | grep x | sh",
        " | xargs rm",
        " | sed s/x/y/e",
        " | awk '{system($0)}'",
        " | tee a.txt",
        " | sort -o a.txt",
        " | sort --compress-program=sh",
        " | uniq - a.txt",
        " | uniq 1 2",
        " | grep x /etc/passwd",
        " | grep -f names.txt x",
        " | grep -r x",
        " | grep x > a.txt",
        " | head a.txt",
        " | FileCheck a.mlir",
        " 2>&1 >/dev/null | grep -c x",
        " > b.mlir 2>&1 | grep -c x",
        f" | grep {'x' * 500}",
    ],
)
def test_a_pipe_with_another_program_or_option_keeps_no_filter(behind: str) -> None:
    """A reader pastes the command: nothing in it runs a further program, reads a file or writes one."""
    (call,), _ = parse_commands(COMPILE + behind)
    assert call.filters == ""


def test_filters_end_with_their_command() -> None:
    first, second = parse_commands(f"{COMPILE} | grep x; echo | grep y; {COMPILE}")[0]
    assert (first.filters, second.filters) == ("| grep x", "")
