"""A command that breaks off keeps its whole words, and never gains a word that a release would refuse."""

from __future__ import annotations

import pytest

from bot.extract import Repro
from tests.bot.extract.reading import extract_repro, list_repairs

_MODULE = """\
func.func @halve(%in: tensor<4x6xf32>) -> tensor<2x6xf32> {
  %out = tensor.extract_slice %in[0, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  return %out : tensor<2x6xf32>
}
"""
_COMPILE = "iree-compile --iree-hal-target-backends=llvm-cpu halve.mlir"


def _read(end: str, error: str = "error: 'tensor.extract_slice' op is not tiled here") -> Repro:
    body = f"It stops with `{error}`.\n\n```mlir\n{_MODULE}```\n\n```\n{end}"
    return extract_repro(body, "extract_slice fails to compile", "iree-org/iree")


@pytest.mark.parametrize(
    "word",
    [
        *("--iree-", "--", "-", "--iree-opt-level=", "--mlir-print-i", "--iree-opt-data-ti", "--iree-no-such-flag"),
        *("-iree-input-ty", "--compile-t", "--iree-hal-target-device=lo", "-o", "-o /tmp/halv", "-o halve.vm"),
    ],
)
def test_a_last_word_that_may_be_a_part_of_one_is_left_out(word: str) -> None:
    found = _read(f"{_COMPILE} {word}")
    assert found.has_open_command
    assert found.testcase.steps == (
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "halve.mlir", "-o", "halve.vmfb"),
    )


@pytest.mark.parametrize(
    "word",
    [
        "--iree-opt-data-tiling",
        "-iree-opt-data-tiling",
        "--iree-opt-level=O2",
        "--mlir-print-ir-after-all",
        "--debug",
    ],
)
def test_a_last_flag_that_a_release_knows_ends_a_whole_command(word: str) -> None:
    found = _read(f"{_COMPILE} {word}")
    assert not found.has_open_command
    assert word in found.testcase.steps[0]


@pytest.mark.parametrize(
    ("call", "whole"),
    [
        ("iree-opt halve.mlir --convert-vector-to-scf", True),
        ("iree-opt halve.mlir --iree-flow-no-such", False),
        ("iree-opt halve.mlir --convert-", False),
        ("iree-run-module --module=halve.vmfb --function=halve --input=4x6xf32=1", True),
        ("iree-run-module --module=halve.vmfb --function=halve --inp", False),
        ("iree-benchmark-module --module=halve.vmfb --benchmark_repetitions=3", True),
        ("iree-run-mlir halve.mlir --iree-opt-data-tiling", True),
    ],
)
def test_each_program_has_flags_of_its_own(call: str, *, whole: bool) -> None:
    """Passes of other projects are too many to list."""
    found = _read(f"{_COMPILE} -o halve.vmfb\n{call}" if "-module" in call else call)
    assert found.has_open_command is not whole
    assert (call.split(" ")[-1] in found.testcase.steps[-1]) is whole or "iree-run-mlir" in call


def test_a_flag_in_a_closed_fence_is_the_reporters_own() -> None:
    """Nothing says that the report breaks off: the unknown flag may be the failure."""
    found = _read(f"{_COMPILE} --iree-opt-data-ti\n```\n")
    assert not found.has_open_command
    assert "--iree-opt-data-ti" in found.testcase.steps[0]


def test_the_name_of_the_input_that_breaks_off_stands_for_the_only_module() -> None:
    found = _read("iree-compile --iree-hal-target-backends=vmvx ~/tests/hal")
    assert found.has_open_command
    assert not found.missing
    assert found.testcase.steps[0][:3] == ("iree-compile", "input.mlir", "--iree-hal-target-backends=vmvx")


def test_a_backend_that_breaks_off_is_chosen_anew() -> None:
    found = _read("iree-compile halve.mlir --iree-hal-target-backends=llvm-c")
    assert found.has_open_command
    assert "add-target" in list_repairs(found)
    assert "--iree-hal-target-backends=llvm-cpu" in found.testcase.steps[0]


def test_a_stack_dump_that_breaks_off_in_its_command_is_run() -> None:
    dump = f"Stack dump:\n0.\tProgram arguments: {_COMPILE} --iree-vm-targ"
    found = _read(dump, "Segmentation fault (core dumped)")
    assert found.has_open_command
    assert found.testcase.steps[0][1:3] == ("--iree-hal-target-backends=llvm-cpu", "halve.mlir")
    assert "--iree-vm-targ" not in found.testcase.steps[0]


def test_rows_below_the_command_of_a_stack_dump_show_that_it_is_whole() -> None:
    dump = f"Stack dump:\n0.\tProgram arguments: {_COMPILE} --iree-vm-targ\n #0 0x00007f llvm::sys::Print"
    assert not _read(dump, "Segmentation fault (core dumped)").has_open_command


def test_a_local_device_without_its_code_generator_gets_one_where_the_command_breaks_off() -> None:
    """All releases refuse the device without it. A whole command stays as it is: the refusal may be the failure."""
    backends = "--iree-hal-local-target-device-backends=llvm-cpu"
    call = "iree-compile halve.mlir --iree-hal-target-device=local"
    assert backends in _read(f"{call} \\\n  --iree-h").testcase.steps[0]
    assert _read(f"{call} {backends} \\\n  --iree-h").testcase.steps[0].count(backends) == 1
    assert backends not in _read(f"{call}\n```\n").testcase.steps[0]


def test_a_tool_whose_first_flag_breaks_off_is_called_with_the_usual_target() -> None:
    found = _read("iree-compile --iree-")
    assert found.has_open_command
    assert found.testcase.steps == (
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "input.mlir", "-o", "input.vmfb"),
    )
