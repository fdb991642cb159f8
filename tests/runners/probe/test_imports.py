"""Which imports may be done before the rest of a testcase is known."""

from __future__ import annotations

import pytest

from runners.core.protocol import Testcase, TestcaseKind
from runners.probe.imports import find_leading_imports, hides_stdlib


def leading(code: str, **files: str) -> tuple[str, ...]:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"repro.py": code, **{f"{name}.py": text for name, text in files.items()}},
        steps=(("python", "repro.py"),),
    )
    return find_leading_imports(testcase, "repro.py")


def test_the_imports_at_the_start_are_taken_in_their_order() -> None:
    """A docstring and imports from the future change nothing about those that follow."""
    code = '"""A."""\nfrom __future__ import annotations\nimport numpy as np\nimport tvm\nfrom tvm import relax\nx'
    assert leading(code) == ("import numpy as np", "import tvm", "from tvm import relax")


@pytest.mark.parametrize(
    "line",
    [
        "import os; os.environ['TVM_NUM_THREADS'] = '1'",
        "import sys; sys.path.insert(0, '/work')",
        "import faulthandler; faulthandler.enable()",
        "try:\n    import torch\nexcept ImportError:\n    pass",
        "from .sibling import x",
        "if True:\n    import torch",
    ],
)
def test_nothing_is_taken_from_after_what_could_change_an_import(line: str) -> None:
    """What comes before the first other statement has the same effect early; nothing else is sure to."""
    assert "import tvm" not in leading(f"{line}\nimport tvm\n")


def test_the_testcases_own_files_are_not_imported_early() -> None:
    """They are not there when a zygote starts, and they are the testcase."""
    assert leading("import numpy\nfrom model import Net\nimport tvm", model="Net = 1") == ("import numpy",)
    assert leading("import numpy, model.part\nimport tvm", model="") == ()


@pytest.mark.parametrize("code", ["import tvm\nprint(", "\0", "(" * 5000, "import tvm\n" + "#" * 300_000, ""])
def test_what_cannot_be_read_is_run_as_a_whole(code: str) -> None:
    """No early imports, and no exception: the interpreter will say what is wrong with it."""
    assert leading(code) == ()


@pytest.mark.parametrize(
    ("name", "hides"),
    [("json.py", True), ("random/__init__.py", True), ("ast.so", True), ("helper.py", False), ("json.mlir", False)],
)
def test_a_file_that_python_would_find_before_a_module_of_its_own(name: str, hides: bool) -> None:
    """By what it can import: other files of such names are in nobody's way."""
    files = {"repro.py": "import json\n", name: ""}
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files=files, steps=(("python", "repro.py"),))
    assert hides_stdlib(testcase) is hides
