"""PyTorch modules and ONNX models through TVM's frontends, in a sandbox, with packages that the store provides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from functools import cache

import pytest

from bench.packages.programs import MODELS, MODULES, make_export_testcase, make_onnx_testcase, read_ends
from runners.core.packages.catalogue import load_catalogue
from runners.core.packages.requirements import load_layers
from runners.core.progress import Silent
from runners.core.protocol import Exited, Limits, Testcase
from runners.core.runs import RunRequest
from runners.environments.store import default_root
from runners.workbench import Workbench, open_workbench

VERSION = "0.27.0"


@cache
def has_layer() -> bool:
    """True if the newest PyTorch is unpacked already, or the caller wants the download of 500 MiB."""
    newest = load_layers()["torch"][-1].version
    unpacked = default_root().glob(f"wheels/*/site/torch-{newest}*.dist-info")
    return bool(os.environ.get("REPROBOT_TEST_TORCH")) or any(unpacked)


@pytest.mark.parametrize("compiles", [True, False])
def test_every_module_and_model_is_a_complete_program(compiles: bool) -> None:
    """Each parses, and each part has a name in the output."""
    for made, names in (
        (make_export_testcase(compiles=compiles), MODULES),
        (make_onnx_testcase(compiles=compiles), MODELS),
    ):
        (code,) = made.files.values()
        compile(code, "program.py", "exec")
        assert all(f"print({name!r}, " in code or f'print("{name}", ' in code for name in names)


def test_lines_of_a_program_are_read_by_name() -> None:
    """Other output of a package is no result."""
    assert read_ends("warning\ngru -> same\nlinear -> AssertionError: x -> y\n") == {
        "gru": "same",
        "linear": "AssertionError: x -> y",
    }


@pytest.fixture
def bench() -> Iterator[Workbench]:
    opened = open_workbench("auto", load_catalogue(), Silent())
    with closing(opened.sessions):
        yield opened


def run(bench: Workbench, testcase: Testcase) -> dict[str, str]:
    request = RunRequest(version=VERSION, device="llvm", testcase=testcase, limits=Limits(wall_s=300))
    result = bench.execute(request)
    assert result.ended == Exited(code=0), result
    return read_ends(result.steps[-1].stdout)


@pytest.mark.sandbox
@pytest.mark.compilers
@pytest.mark.skipif(not has_layer(), reason="downloads 500 MiB: set REPROBOT_TEST_TORCH=1")
def test_exported_modules_compute_the_same_in_tvm(bench: Workbench) -> None:
    """With the ordinary wheel of PyTorch, or a build for CPUs."""
    assert run(bench, make_export_testcase(("linear", "softmax"))) == {"linear": "same", "softmax": "same"}


@pytest.mark.sandbox
@pytest.mark.compilers
def test_onnx_models_compute_the_same_in_tvm(bench: Workbench) -> None:
    """As in onnxruntime."""
    assert run(bench, make_onnx_testcase()) == {"gemm": "same", "average_pool": "same"}
