"""Wrong values on a GPU, with MLIR and without a call: the program still compiles for the GPU."""

from __future__ import annotations

import pytest

from bot.extract import NoRepro, Repro, extract
from tests.bot.extract.reading import make_issue

TEXT = """
This returns wrong values on {where}, some rows are zero.

```mlir
func.func @scale(%a: tensor<9x4xf32>, %b: tensor<9x4xf32>) -> tensor<9x4xf32> {{
  %0 = tensor.empty() : tensor<9x4xf32>
  %1 = linalg.mul ins(%a, %b : tensor<9x4xf32>, tensor<9x4xf32>) outs(%0 : tensor<9x4xf32>) -> tensor<9x4xf32>
  return %1 : tensor<9x4xf32>
}}
```

I get:

```
9x4xf32=[1 1 1 1][0 0 0 0][1 1 {end}
"""


@pytest.mark.parametrize("end", ["1 1]\n```", ""], ids=["whole", "breaks off"])
@pytest.mark.parametrize(("where", "backend"), [("CUDA", "cuda"), ("a V100 with CUDA", "cuda"), ("gfx942", "rocm")])
def test_a_report_of_wrong_values_on_a_gpu_is_compiled_for_it(where: str, backend: str, end: str) -> None:
    """No value that another device computes would answer the report."""
    body = TEXT.format(where=where, end=end)
    found = extract(make_issue(body, f"Wrong result on {where}", "iree-org/iree"))
    assert isinstance(found, Repro), found
    assert not found.missing
    assert [step[:2] for step in found.testcase.steps] == [("iree-compile", f"--iree-hal-target-backends={backend}")]


def test_a_report_of_wrong_values_on_the_processor_is_asked_for_its_call() -> None:
    body = TEXT.format(where="the CPU", end="1 1]\n```")
    found = extract(make_issue(body, "Wrong result on the CPU", "iree-org/iree"))
    assert isinstance(found, NoRepro)
    assert found.missing
