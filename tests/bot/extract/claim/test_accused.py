"""The names in a title that look like code."""

from __future__ import annotations

import pytest

from bot.extract.claim.accused import list_accused


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("[Bug][Relax] FuseOps can reorder call_tir before a binding", ("FuseOps", "call_tir")),
        ("Index error in type inference of `strided_slice` with empty `begin`", ("strided_slice", "begin")),
        ("transform.LiftTransformParams: wrong result", ("transform", "LiftTransformParams")),
        ("Unsupported function types ['fmod.Tensor']", ("fmod", "Tensor")),
        ("`topk(x, 2)` fails with `layout_impl is only implemented for subclasses`", ("topk",)),
        ("InternalError: Check failed", ()),
        ("[Bug] Wrong result on v0.25.0, 3x slower", ()),
        ("CUDA fails on RTX 4090", ()),
    ],
)
def test_names_of_code_are_read_from_the_title(title: str, names: tuple[str, ...]) -> None:
    """Words of a language, exceptions, versions and devices are no names."""
    assert list_accused(title) == names
