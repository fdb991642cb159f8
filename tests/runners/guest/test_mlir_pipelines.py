"""The passes that a command line writes out, each with what is around it."""

from __future__ import annotations

import pytest

from runners.guest.mlir_pipelines import MAX_PASSES, passes_written


def test_each_pass_stands_alone_in_what_is_around_it() -> None:
    """Options stay with their pass, braces and parentheses inside them too; other flags' values are no pipelines."""
    words = ["--iree-hal-target-backends=llvm-cpu", "m.mlir", "-o", "m.vmfb"]
    text = "builtin.module(cse, func.func(a{x=1 y={b(c)}},any(b)),iree-c)"
    found = list(passes_written([*words, f"--iree-preprocessing-pass-pipeline={text}"]))
    assert [(one.name, one.text, one.pipeline) for one in found] == [
        ("cse", "cse", "builtin.module(cse)"),
        ("a", "a{x=1 y={b(c)}}", "builtin.module(func.func(a{x=1 y={b(c)}}))"),
        ("b", "b", "builtin.module(func.func(any(b)))"),
        ("iree-c", "iree-c", "builtin.module(iree-c)"),
    ]


def test_a_flag_may_be_a_pass() -> None:
    """As ``iree-opt`` takes them; behind the pipelines, which say more."""
    found = list(passes_written(["--iree-flow-canonicalize", "--pass-pipeline=any(cse)", "m.mlir", "--x=y"]))
    assert [one.pipeline for one in found] == ["any(cse)", "any(iree-flow-canonicalize)"]


@pytest.mark.parametrize(
    "text",
    ["builtin.module(", "a(b{c)", "a(" * 50 + "b" + ")" * 50, ")", "a(\x00)", "a(b;c)", "a(" + "b," * 5000 + ")"],
)
def test_what_is_no_pipeline_is_not_tried(text: str) -> None:
    """Anything may stand on a command line; the number of trials is bounded too."""
    assert all(one.text in ("b",) for one in passes_written([f"--p={text}"]))
    assert len(list(passes_written([f"--p=a({','.join(['b'] * 1500)})"]))) <= MAX_PASSES
