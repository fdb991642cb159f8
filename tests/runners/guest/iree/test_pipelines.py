"""The passes that a command line writes out, each with what is around it."""

from __future__ import annotations

import pytest

from runners.guest.iree.pipelines import (
    MAX_PASSES,
    guess_passes_by_flag,
    list_written_passes,
    parse_pipeline,
    truncate_pipeline,
)


def test_each_pass_stands_alone_in_what_is_around_it() -> None:
    """Options stay with their pass, braces and parentheses inside them too; other flags' values are no pipelines."""
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
    """As ``iree-opt`` takes them; behind the pipelines, which say more."""
    found = list(list_written_passes(["--iree-flow-canonicalize", "--pass-pipeline=any(cse)", "m.mlir", "--x=y"]))
    assert [one.pipeline for one in found] == ["any(cse)", "any(iree-flow-canonicalize)"]


@pytest.mark.parametrize(
    "text",
    ["builtin.module(", "a(b{c)", "a(" * 50 + "b" + ")" * 50, ")", "a(\x00)", "a(b;c)", "a(" + "b," * 5000 + ")"],
)
def test_what_is_no_pipeline_is_not_tried(text: str) -> None:
    """Anything may stand on a command line; the number of trials is bounded too."""
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


def test_a_flag_with_a_file_stands_for_a_pass_that_reads_one() -> None:
    """By the words that their names share; what writes files, or takes none, is not tried on the testcase's."""
    words = ["--iree-preprocessing-patterns-filename=p.mlir", "--iree-target=x", "m.mlir", "-o=p.mlir"]
    (found,) = guess_passes_by_flag(words, HELP)
    assert found.pipeline == "builtin.module(iree-preprocessing-apply-patterns{patterns-file=p.mlir})"
    (other,) = guess_passes_by_flag(["--iree-preprocessing-spec-filename=s.mlir"], HELP)
    assert other.name == "iree-preprocessing-interpret"
    assert not list(guess_passes_by_flag(["--iree-preprocessing-patterns-filename=a b"], HELP))


def test_a_pipeline_is_written_with_fewer_passes() -> None:
    """Each in what is around it, options and all; with none of them it is still one."""
    text = "builtin.module(cse, func.func(a{x=1 y={b(c)}},any(b)),iree-c)"
    assert [one.name for one in parse_pipeline(text)] == ["cse", "a", "b", "iree-c"]
    assert truncate_pipeline(text, 3) == "builtin.module(cse,func.func(a{x=1 y={b(c)}}),func.func(any(b)))"
    assert truncate_pipeline(text, 0) == "builtin.module()"
    assert parse_pipeline(truncate_pipeline(text, 4)) == parse_pipeline(text)
    assert parse_pipeline("m.vmfb") == []
