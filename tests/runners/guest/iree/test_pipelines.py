"""The passes of a command line, each with the operations around it."""

from __future__ import annotations

import pytest

from runners.guest.iree.pipelines import (
    MAX_PASSES,
    guess_passes_by_flag,
    list_written_passes,
    parse_pipeline,
    truncate_pipeline,
)


def test_each_pass_gets_a_pipeline_of_its_own() -> None:
    """Options stay with their pass, with braces and parentheses. Values of other flags are not pipelines."""
    words = ["--iree-hal-target-backends=llvm-cpu", "m.mlir", "-o", "m.vmfb"]
    text = "builtin.module(cse, func.func(a{x=1 y={b(c)}},any(b)),iree-c)"
    found = list(list_written_passes([*words, f"--iree-preprocessing-pass-pipeline={text}"]))
    assert [(one.name, one.text, one.pipeline) for one in found] == [
        ("cse", "cse", "builtin.module(cse)"),
        ("a", "a{x=1 y={b(c)}}", "builtin.module(func.func(a{x=1 y={b(c)}}))"),
        ("b", "b", "builtin.module(func.func(any(b)))"),
        ("iree-c", "iree-c", "builtin.module(iree-c)"),
    ]


def test_a_flag_may_be_a_pass() -> None:
    """``iree-opt`` takes a pass as a flag. Such passes come after the pipelines."""
    found = list(list_written_passes(["--iree-flow-canonicalize", "--pass-pipeline=any(cse)", "m.mlir", "--x=y"]))
    assert [one.pipeline for one in found] == ["any(cse)", "any(iree-flow-canonicalize)"]


@pytest.mark.parametrize(
    "text",
    ["builtin.module(", "a(b{c)", "a(" * 50 + "b" + ")" * 50, ")", "a(\x00)", "a(b;c)", "a(" + "b," * 5000 + ")"],
)
def test_malformed_pipeline_has_no_passes(text: str) -> None:
    """A command line may have any text. The number of passes is limited, too."""
    assert all(one.text in ("b",) for one in list_written_passes([f"--p={text}"]))
    assert len(list(list_written_passes([f"--p=a({','.join(['b'] * 1500)})"]))) <= MAX_PASSES


HELP = """\
  Compiler passes to run
      --iree-preprocessing-apply-patterns                  -   Apply patterns
        --patterns-file=<string>                           - File to read them from.
      --iree-preprocessing-dump-patterns                   -   Write them
        --patterns-file=<string>                           - File to write.
      --iree-preprocessing-interpret                       -   Interpret
        --spec-path=<string>                               - Where it is.
      --iree-preprocessing-number-patterns                 -   Count
        --patterns=<string>                                - Their names.
  --iree-preprocessing-other                               - no pass
        --patterns-file=<string>                           - File of nothing.
"""


def test_flag_with_a_file_suggests_a_pass_that_reads_files() -> None:
    """The names share words. Passes that write files, or take none, are not suggested."""
    words = ["--iree-preprocessing-patterns-filename=p.mlir", "--iree-target=x", "m.mlir", "-o=p.mlir"]
    (found,) = guess_passes_by_flag(words, HELP)
    assert found.pipeline == "builtin.module(iree-preprocessing-apply-patterns{patterns-file=p.mlir})"
    (other,) = guess_passes_by_flag(["--iree-preprocessing-spec-filename=s.mlir"], HELP)
    assert other.name == "iree-preprocessing-interpret"
    assert not list(guess_passes_by_flag(["--iree-preprocessing-patterns-filename=a b"], HELP))


def test_truncate_pipeline_keeps_the_first_passes() -> None:
    """Each pass keeps its options and the operations around it. The result without passes is still a pipeline."""
    text = "builtin.module(cse, func.func(a{x=1 y={b(c)}},any(b)),iree-c)"
    assert [one.name for one in parse_pipeline(text)] == ["cse", "a", "b", "iree-c"]
    assert truncate_pipeline(text, 3) == "builtin.module(cse,func.func(a{x=1 y={b(c)}}),func.func(any(b)))"
    assert truncate_pipeline(text, 0) == "builtin.module()"
    assert parse_pipeline(truncate_pipeline(text, 4)) == parse_pipeline(text)
    assert parse_pipeline("m.vmfb") == []
