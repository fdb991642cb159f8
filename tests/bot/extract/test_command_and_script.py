"""Commands that compile a module and a script that runs it are one testcase."""

from __future__ import annotations

from datetime import date

import pytest

from bot.extract.extract import extract
from bot.extract.python.testcase import print_last_value
from bot.extract.types import Repro
from bot.issue import Issue

BODY = """Compile this:

```mlir
func.func @half(%x: f32) -> f32 {{
  %c = arith.constant 5.000000e-01 : f32
  %0 = arith.mulf %x, %c : f32
  return %0 : f32
}}
```
```
iree-compile --iree-hal-target-backends=llvm-cpu half.mlir -o half.vmfb
```
and call it from Python:
```python
import iree.runtime as rt
half = rt.load_vm_flatbuffer_file("{module}", driver="local-task")
```
```python
half.half(3.0)
```
This returns `0.0` when it should return `1.5`.
"""


def read(module: str) -> Repro:
    issue = Issue(
        title="Scalar is garbage",
        body=BODY.format(module=module),
        created=date(2025, 1, 1),
        source="half.md",
        sha256="0",
    )
    found = extract(issue, toolchain="iree")
    assert isinstance(found, Repro)
    return found


def test_a_script_that_reads_the_compiled_module_runs_after_the_commands() -> None:
    """A value that sentences tell, and that nothing prints, is printed."""
    found = read("half.vmfb")
    assert [step[0] for step in found.testcase.steps] == ["iree-compile", "python"]
    assert found.testcase.files["repro.py"].rstrip().endswith("print(half.half(3.0))")
    assert (found.claim.actual, found.claim.expected) == ("0.0", "1.5")
    assert not found.missing


def test_a_script_that_reads_another_module_is_left_out() -> None:
    assert [step[0] for step in read("other.vmfb").testcase.steps] == ["iree-compile"]


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("f = load()\nf(2)\n", "f = load()\nprint(f(2))\n"),
        ("f(\n    2,\n)", "print(f(\n    2,\n))"),
        ("f(2)  # here", "print(f(2))  # here"),
        ("f(2); g(3)", "f(2); g(3)"),
        ("x = f(2)", "x = f(2)"),
        ("print(f(1))\nf(2)", "print(f(1))\nf(2)"),
        ("assert_allclose(f(2), 3)", "assert_allclose(f(2), 3)"),
        ("'text'", "'text'"),
        ("f(", "f("),
    ],
)
def test_the_last_value_is_printed_where_nothing_is_printed_or_checked(code: str, printed: str) -> None:
    assert print_last_value(code) == printed


PATCHED = """A patched module crashes.

a.mlir:
```mlir
func.func @one() -> i32 {{
  %c = arith.constant 1 : i32
  return %c : i32
}}
```

patch.py:
```python
data = bytearray(open("a.vmfb", "rb").read())
open("{out}.vmfb", "wb").write(data[:100])
```

```
$ iree-compile --iree-hal-target-backends=llvm-cpu a.mlir -o a.vmfb
$ python3 {script}.py
$ iree-run-module --module=b.vmfb --function=one
Segmentation fault (core dumped)
```
"""


@pytest.mark.parametrize(("script", "runs"), [("patch", True), ("other", False)])
def test_a_script_between_two_commands_runs_between_them(script: str, runs: bool) -> None:
    """It must be in the report."""
    body = PATCHED.format(out="b", script=script)
    issue = Issue(
        title="iree-run-module crashes", body=body, created=date(2026, 1, 1), source="a.md", sha256="0" * 64
    )
    found = extract(issue)
    assert isinstance(found, Repro)
    assert (["python", "patch.py"] in [list(step) for step in found.testcase.steps]) is runs
    assert [step[0] for step in found.testcase.steps][-1] == "iree-run-module"


def test_a_printed_pipeline_is_no_input() -> None:
    """The text names an empty module for the file."""
    body = """With an empty `module {}`:

```
iree-opt empty.mlir --dump-pass-pipeline --pass-pipeline="builtin.module(iree-codegen-cpu)"
Pass Manager with 1 passes:
builtin.module(builtin.module(func.func(iree-codegen-type-propagation,iree-decompose{fusion=true})))
```
The module is doubled.
"""
    issue = Issue(title="iree-opt nests modules", body=body, created=date(2025, 5, 6), source="a.md", sha256="0" * 64)
    found = extract(issue)
    assert isinstance(found, Repro)
    assert found.testcase.files == {"empty.mlir": "module {}\n"}
    assert "builtin.module(builtin.module(" in found.claim.actual
