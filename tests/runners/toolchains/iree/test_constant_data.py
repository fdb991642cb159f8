"""Generate the data of constants that a report leaves out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.constant_data import MAX_DATA_BYTES, SCRIPT, list_missing_data, supply_data


def write(*constants: str, data: str = "") -> str:
    rows = [f"  %{at} = arith.constant {constant}" for at, constant in enumerate(constants)]
    return "\n".join(["func.func @f() {", *rows, "  return", "}", data])


def section(*rows: str) -> str:
    return "\n".join(["{-#", "  dialect_resources: {", "    builtin: {", ",\n".join(rows), "    }", "  }", "#-}"])


def make_testcase(text: str) -> Testcase:
    steps = (("iree-compile", "m.mlir", "-o", "m.vmfb"),)
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": text}, steps=steps)


WHOLE = section('      w: "0x040000000000803F0000803F"')


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (write("dense_resource<w> : tensor<2xf32>"), ("dense_resource<w>",)),
        (write("dense_resource<w> : tensor<2xf32>", data=WHOLE), ()),
        (write("dense_resource<w> : tensor<2xf32>", data=section('w: "0x04000000..."')), ("dense_resource<w>",)),
        (write("dense_resource<v> : tensor<2xf32>", data=WHOLE), ("dense_resource<v>",)),
        (write("dense<__elided__> : tensor<4xi8>"), ("dense<__elided__>",)),
        (write('dense<"0x0102..."> : tensor<4xi8>'), ('dense<"0x0102...">',)),
        (write('dense<"0x01020304"> : tensor<4xi8>', "dense<1> : tensor<4xi8>"), ()),
    ],
)
def test_data_is_missing_where_the_text_does_not_give_all_of_it(text: str, missing: tuple[str, ...]) -> None:
    assert list_missing_data(text) == missing


def test_the_generated_file_has_all_data_of_the_right_size(tmp_path: Path) -> None:
    """Data that the report gives stays. One constant of each type stands for all of that type."""
    text = write(
        *("dense_resource<w> : tensor<2xf32>", "dense_resource<__elided__> : tensor<3x5xf32>"),
        *("dense<__elided__> : tensor<15xf32>", "dense_resource<cut> : tensor<7xsi64>"),
        *("dense_resource<half> : vector<40xbf16>", "dense_resource<none> : tensor<f16>"),
        data=section('      w: "0x040000000000803F0000803F"', '      cut: "0x0800000007..."', '      none: "..."'),
    )
    supplied = supply_data(make_testcase(text))
    assert supplied is not None
    testcase, changes = supplied
    assert "dense_resource<cut> → generated data" in changes
    assert len(changes) == 5
    assert testcase.steps[1:] == make_testcase("").steps
    for name, content in testcase.files.items():
        (tmp_path / name).write_text(content)
    subprocess.run([sys.executable, *testcase.steps[0][1:]], cwd=tmp_path, check=True)
    made = (tmp_path / "m.mlir").read_text()
    assert list_missing_data(made) == ()
    assert "cut:" not in made
    sizes = {name: (len(data) - 10) // 2 for name, data in re.findall(r"(\w+): \"(0x[0-9A-F]+)\"", made)}
    assert sizes == {"w": 8, "generated_1": 60, "generated_2": 56, "generated_3": 80, "generated_4": 2}


def test_generated_elements_differ_from_each_other(tmp_path: Path) -> None:
    """A compiler folds a constant whose elements are all the same."""
    supplied = supply_data(make_testcase(write("dense_resource<w> : tensor<8xi32>")))
    assert supplied is not None
    for name, content in supplied[0].files.items():
        (tmp_path / name).write_text(content)
    subprocess.run([sys.executable, *supplied[0].steps[0][1:]], cwd=tmp_path, check=True)
    found = re.search(r"0x[0-9A-F]{8}([0-9A-F]+)", (tmp_path / "m.mlir").read_text())
    assert found is not None
    assert len(set(re.findall("[0-9A-F]{8}", found[1]))) > 1


@pytest.mark.parametrize(
    "text",
    [
        write("dense<1> : tensor<4xi32>"),
        write("dense_resource<w> : tensor<4xi1>"),
        write("dense_resource<w> : tensor<4xf8E4M3FN>"),
        write(f"dense_resource<w> : tensor<{MAX_DATA_BYTES}xi8>", "dense_resource<v> : tensor<1xi16>"),
    ],
    ids=["all there", "bits", "8-bit floats", "too large"],
)
def test_nothing_is_generated_where_it_would_not_help(text: str) -> None:
    assert supply_data(make_testcase(text)) is None


def test_a_file_of_the_report_is_not_overwritten() -> None:
    """The script needs its name."""
    testcase = make_testcase(write("dense_resource<w> : tensor<4xf32>"))
    assert supply_data(msgspec.structs.replace(testcase, files={**testcase.files, SCRIPT: "1"})) is None
