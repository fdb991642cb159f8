"""What a program prints where it catches an exception."""

from __future__ import annotations

import pytest

from bot.extract.python.reference.caught import find_caught_labels
from tests.support.untrusted import make_program


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ('print("TVM crashed:", e)', ("TVM crashed:",)),
        ('print(f"FAIL {type(e).__name__}: {e}")', ("FAIL",)),
        ('print("-> " + str(e))', ("",)),
        ("print(e)", ("",)),
        ('print("first line\\nsecond:", repr(e))', ("second:",)),
        ('print(name, "failed:", e)', ("",)),
        ('print("failed:", name, str(e))', ("",)),
        ('print("failed")', ()),
        ("raise", ()),
    ],
)
def test_the_text_before_a_caught_exception_is_its_label(body: str, labels: tuple[str, ...]) -> None:
    text = f"import tvm\ntry:\n    tvm.run()\nexcept Exception as e:\n    {body}\n"
    assert find_caught_labels(make_program(text)) == labels
