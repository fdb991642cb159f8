"""The distributions that a program's imports ask for, also those behind a part of the compiler."""

from __future__ import annotations

import ast

import pytest

from bot.extract.python.requirements import read_imports


@pytest.mark.parametrize(
    "line",
    [
        "from tvm import meta_schedule as ms",
        "import tvm.meta_schedule",
        "from tvm.s_tir.meta_schedule import database",
    ],
)
def test_a_part_of_the_compiler_brings_the_packages_that_it_imports_later(line: str) -> None:
    """The wheel names neither package, and the search ends without them."""
    assert set(read_imports(ast.parse(line), "tvm").requirements) == {"psutil", "cloudpickle"}


def test_the_compiler_alone_needs_no_package() -> None:
    assert read_imports(ast.parse("import tvm\nfrom tvm import relax"), "tvm").requirements == ()
