"""The distributions that a program's imports ask for, also those behind a part of the compiler."""

from __future__ import annotations

import ast

import pytest

from bot.extract.python.requirements import read_imports


@pytest.mark.parametrize(
    "line",
    [
        "from tvm import meta_schedule as ms",
        "import tvm.meta_schedule",
        "from tvm.s_tir.meta_schedule import database",
    ],
)
def test_a_part_of_the_compiler_brings_the_packages_that_it_imports_later(line: str) -> None:
    """The wheel names neither package, and the search ends without them."""
    assert set(read_imports(ast.parse(line), "tvm").requirements) == {"psutil", "cloudpickle"}


def test_the_compiler_alone_needs_no_package() -> None:
    assert read_imports(ast.parse("import tvm\nfrom tvm import relax"), "tvm").requirements == ()


def test_a_package_that_only_some_releases_bring_is_installed_for_all() -> None:
    """IREE's wheels need ``ml_dtypes`` since 3.7. Each of TVM's does."""
    code = ast.parse("import ml_dtypes")
    assert read_imports(code, "iree").requirements == ("ml-dtypes",)
    assert read_imports(code, "tvm").requirements == ()


@pytest.mark.parametrize(
    ("call", "needed"), [("torch.onnx.export(m, x, 'm.onnx')", True), ("torch.export.export(m, x)", False)]
)
def test_a_call_imports_packages_that_the_program_does_not(call: str, needed: bool) -> None:
    """PyTorch's exporter to ONNX is a package of its own since 2.9."""
    requirements = read_imports(ast.parse(f"import torch\nimport tvm\n{call}"), "tvm").requirements
    assert ("onnxscript" in requirements) is needed


@pytest.mark.parametrize(
    ("call", "needed"),
    [
        ("relay.frontend.from_keras(model)", "tensorflow-cpu<2.16"),
        ("from_keras(model)", "tensorflow-cpu<2.16"),
        ("relay.frontend.from_tflite(model)", "tensorflow-cpu"),
    ],
)
def test_a_call_limits_the_versions_of_a_package(call: str, needed: str) -> None:
    """The importer reads models of Keras 2. TensorFlow of 2024 brings Keras 3."""
    code = f"from tensorflow import keras\nfrom tvm import relay\nmodule = {call}"
    assert read_imports(ast.parse(code), "tvm").requirements == (needed,)
