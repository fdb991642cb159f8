"""A description that ends inside its quoted output: the last word may be a part of one."""

from __future__ import annotations

import pytest

from runners.core.protocol import ClaimKind, Signature
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


SESSION = """\
Running

$ cat t.mlir
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r = math.exp %a : tensor<2xf32>
  return %r : tensor<2xf32>
}
$ iree-compile --iree-hal-target-backends=llvm-cpu t.mlir -o t.vmfb
$ iree-run-module --module=t.vmfb --function=f --input=2xf32=0,1
EXEC @f
result[0]: hal.buffer_view
2xf32=1 3.5

the last element is wrong!
"""


def test_a_session_without_a_fence_shows_its_output() -> None:
    """The output stands below a typed command, whatever the session printed before."""
    assert extract_repro(SESSION, "exp is wrong", "iree-org/iree").claim.actual.endswith("2xf32=1 3.5")


MODULE = """@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        y: R.Tensor((4,), dtype="float32") = x
        return y
"""
PASS = """\
```python
import tvm
from tvm import relax
from tvm.script import ir as I, relax as R

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = x
        return y

print(relax.transform.CanonicalizeBindings()(M))
```

{intro}

```
{module}```

but the result must be `return x`.
"""


def test_a_printed_module_is_output() -> None:
    claim = extract_repro(PASS.format(intro="prints", module=MODULE), "y is kept", "apache/tvm").claim
    assert "return y" in claim.actual
    assert claim.expected == "return x"


def test_a_module_that_nothing_prints_is_no_output() -> None:
    claim = extract_repro(PASS.format(intro="The module is", module=MODULE), "y is kept", "apache/tvm").claim
    assert not claim.actual


NOTEBOOK = """\
With ints everything is fine, with floats the function always sees zero, no error, nothing in the log.

```python
import iree.runtime as rt
print("int  :", f["double_i"](21))
print("float:", f["double"](2.5))
```
```
int  : 42
float: 0.0
```

I expected `float: 5.0`. Passing `np.float32(2.5)` is no way out, it fails with `not a value type`.
"""


def test_printed_rows_that_parse_as_calls_are_output() -> None:
    """Unless a program has a function of that name."""
    printed = "which gives me\n\n```\nafter (np.float32(1.5), 3)\n```\n"
    code = f"```python\nimport tvm\nprint('after', tvm.f())\n```\n\n{printed}"
    assert extract_repro(code, "tvm gives wrong values").claim.actual == "after (np.float32(1.5), 3)"
    called = code.replace("print('after', tvm.f())", "def after(*x):\n    return tvm.f(x)")
    assert extract_repro(called, "tvm gives wrong values").claim.actual == ""


def test_a_banner_and_a_typed_remark_are_no_results() -> None:
    output = "IREE compiler version 3.2.0rc1 @ 0a1b\nresult 3\n\n# same with vmvx"
    text = f"```mlir\nfunc.func @f()\n```\n\n`iree-compile a.mlir -o a.vmfb` prints\n\n```\n{output}\n```\n"
    assert extract_repro(text, "wrong result", "iree-org/iree").claim.actual.strip() == "result 3"


@pytest.mark.parametrize(
    ("inputs", "output", "kept"),
    [
        ("np.random.rand(3)", "before True\n[0.5 0.25]\nafter False\n[nan 4.5]", "before True\nafter False"),
        ("np.random.default_rng().random(3)", "[0.5]\nclose: FAIL", "close: FAIL"),
        ("np.random.default_rng(1).random(3)", "[0.5]\nclose: FAIL", "[0.5]\nclose: FAIL"),
        ("np.random.seed(0) or np.random.rand(3)", "[0.5]\nafter False", "[0.5]\nafter False"),
        ("np.random.rand(3)", "max diff 0.5", "max diff 0.5"),
        ("np.ones(3)", "[0.5]\nafter False", "[0.5]\nafter False"),
    ],
)
def test_values_that_are_drawn_anew_are_no_output_beside_a_verdict_of_the_program(
    inputs: str, output: str, kept: str
) -> None:
    code = f"```python\nimport numpy as np, tvm\nprint(tvm.f({inputs}))\n```\n\nIt prints\n\n```\n{output}\n```\n"
    assert extract_repro(code, "tvm gives wrong values").claim.actual == kept


def test_two_quoted_outputs_make_a_claim_about_values() -> None:
    claim = extract_repro(NOTEBOOK, "float arguments arrive as 0.0", "iree-org/iree").claim
    assert claim.kind is ClaimKind.WRONG_RESULT
    assert "float: 0.0" in claim.actual
    assert claim.expected == "float: 5.0"
