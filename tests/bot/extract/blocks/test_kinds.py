"""Blocks are told apart by what they hold, whatever their label says."""

from __future__ import annotations

import pytest

from bot.extract.blocks.kinds import is_environment
from tests.bot.extract.reading import extract_repro

MODULE = "func.func @id(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}"


@pytest.mark.parametrize(
    "text",
    [
        "attrs 25.4.0\ncloudpickle 3.1.2\nnumpy 2.3.5",
        "Package    Version\n---------- -------\nnumpy      1.26.4\ntorch      2.1.0+cpu",
        "numpy==1.26.4\nsome-tool==2.3\nx==1.0.0",
        "OS: Ubuntu 22.04\nGCC version: 11.4.0\nCPU: 16 cores",
        "- Python = 3.11\n- GPU: RTX 4090\n- CUDA: 12.4",
    ],
)
def test_lists_of_packages_and_of_the_machine_are_no_output(text: str) -> None:
    assert is_environment(text)


@pytest.mark.parametrize(
    "text",
    [
        "result: 3\nexpected: 4\nmax diff: 0.5",
        "row 1.0\nrow 2.0\nrow 3.0",
        "a 1.5\nb 2.5\nc 3.5",
        "0.1 0.2\n0.3 0.4\n0.5 0.6",
        "EXEC @main\nresult[0]: hal.buffer_view\n2xf32=1 2",
        "",
    ],
)
def test_values_are_no_environment(text: str) -> None:
    assert not is_environment(text)


@pytest.mark.parametrize("label", ["", "mlir", "llvm", "c", "cpp", "json", "text", "rust"])
def test_a_module_is_read_under_any_label(label: str) -> None:
    command = "```bash\niree-compile --iree-hal-target-backends=llvm-cpu a.mlir\n```"
    found = extract_repro(f"`a.mlir`:\n\n```{label}\n{MODULE}\n```\n\n{command}\n", "iree-compile crashes")
    assert not found.missing
    assert found.testcase.files["a.mlir"].strip() == MODULE


def test_a_list_of_packages_is_not_what_the_program_prints() -> None:
    listed = "```\nattrs 25.4.0\nnumpy 2.3.5\nscipy 1.16.3\n```"
    found = extract_repro(
        f"{listed}\n\n```python\nimport tvm\nprint(tvm.sum_of_all())\n```\n\nIt prints\n\n```\nsum 3.5\n```\n",
        "tvm: wrong sum",
    )
    assert found.claim.actual == "sum 3.5"


def test_an_error_that_quotes_operations_is_the_failure() -> None:
    """The operations belong to the message: the block is output, and its exception is the reported one."""
    printed = (
        '```txt\n  File "src/tir/verify.cc", line 9, in Verify\n'
        "tvm.error.InternalError: 2 uses come before their values\n"
        "  %7 = fadd float %3, %9\n  %9 = fmul float %1, %2\n```"
    )
    found = extract_repro(f"```python\nimport tvm\ntvm.compile(None)\n```\n\n{printed}\n", "An `InternalError`")
    assert found.claim.signature is not None
    assert found.claim.signature.message == "2 uses come before their values"
