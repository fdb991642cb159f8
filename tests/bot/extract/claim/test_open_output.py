"""A description that ends inside its quoted output: the last word may be a part of one."""

from __future__ import annotations

import pytest

from runners.core.protocol import Signature
from tests.bot.extract.reading import extract_repro

TEXT = """
```mlir
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
```

`iree-compile --iree-hal-target-backends=llvm-cpu a.mlir -o a.vmfb` fails to compile it:

```
"""


def _read(output: str) -> Signature | None:
    return extract_repro(TEXT + output, "exp is not compiled", "iree-org/iree").claim.signature


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("a.mlir:2:8: error: failed to lega", None),
        ("a.mlir:2:8: error: 'ma", None),
        ("a.mlir:2:8: error: failed to legalize operation 'math.ex", "failed to legalize operation"),
        (
            "a.mlir:2:8: error: failed to legalize operation 'math.exp' that was\n  %0 = math.exp %x : tens",
            "failed to legalize operation 'math.exp' that was",
        ),
    ],
)
def test_a_diagnostic_counts_without_the_word_that_breaks_off(output: str, message: str | None) -> None:
    """Too few words could begin any diagnostic: then the report quotes no failure."""
    read = _read(output)
    assert (read.message if read is not None else None) == message


def test_a_closed_fence_and_an_exception_keep_every_word() -> None:
    closed = _read("a.mlir:2:8: error: failed to lega\n```")
    assert closed is not None
    assert closed.message == "failed to lega"
    raised = _read("ValueError: no such axis")
    assert raised is not None
    assert (raised.type, raised.message) == ("ValueError", "no such axis")
