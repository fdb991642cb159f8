"""Extraction knows a compiler only by the vocabulary of its toolchain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.extract import Repro, extract
from bot.extract.vocabulary import recognize_toolchain
from runners.core.protocol import TestcaseKind
from tests.bot.extract.reading import make_issue

ROOT = Path(__file__).parents[3]

INVENTED = """
import re
from runners.core.toolchain.reports import CommandLineTools
from runners.core.toolchain.facts import Device
from runners.core.toolchain.reports import FailureWords, PythonNames, ReportVocabulary, VersionWords
from runners.toolchains import TOOLCHAINS
from runners.toolchains.python import PlainPython

words = ReportVocabulary(
    called=("zed",),
    repositories=re.compile(r"/zed$"),
    marks=re.compile(r"\\bzed-\\w+"),
    versions=VersionWords(prefixes=("zed-",), named_by_patterns=("zed",)),
    python=PythonNames(packages=frozenset({"zed"}), imports={"zd": "import zed.api as zd"}),
    failures=FailureWords(assertions_abort=True),
    tools=CommandLineTools(
        prefix="zed-",
        programs=frozenset({"zed-make", "zed-go"}),
        compiler="zed-make",
        compilers=frozenset({"zed-make"}),
        runners=frozenset({"zed-go"}),
        module_flags=("--load",),
        module_suffix="zmod",
        compile_input=lambda device, source, module: ("zed-make", f"--for={device}", source, "-o", module),
        output_suffix=lambda argv: "zmod",
    ),
    mlir_functions=("zed.func",),
)
class Zed(PlainPython):
    NAME = "zed"
    DEVICES = (Device(name="z1", aliases=frozenset()),)
    REPORTS = words

TOOLCHAINS["zed"] = Zed()
# Imported only here: the modules join the vocabularies on import.
from bot.extract import extract
from tests.bot.extract.reading import make_issue
"""


def _run_check(check: str) -> None:
    subprocess.run([sys.executable, "-c", INVENTED + check], cwd=ROOT, check=True, timeout=60)


def test_a_compiler_with_programs_gets_command_lines() -> None:
    """Its commands, versions, dialect and assertions are recognized. The added compile step is its own."""
    _run_check(
        '''
found = extract(make_issue("""
    With zed 1.4.0:

    ```mlir
    zed.func @main() {
      return
    }
    ```

    ```sh
    zed-go --load=/tmp/main.zmod --input=4
    ```
    """, title="Assertion failed in the scheduler"))
assert found.testcase.toolchain == "zed" and found.testcase.kind == "command-line", found
assert found.testcase.steps == (
    ("zed-make", "--for=z1", "main.mlir", "-o", "main.zmod"),
    ("zed-go", "--load=main.zmod", "--input=4"),
), found.testcase.steps
assert found.device == "z1"
assert found.claim.versions == ("1.4.0",), found.claim.versions
assert found.claim.kind == "crash", found.claim.kind
assert not found.missing
'''
    )


def test_names_are_bound_by_the_conventions_of_the_compiler() -> None:
    """Names of the invented compiler are imported; names of another compiler are missing."""
    _run_check(
        '''
found = extract(make_issue("""
    zed-make is not to blame:

    ```python
    print(zd.run(relax))
    ```
    """, title="zed fails"), allowed={"zed": "zed-dist"})
assert found.testcase.toolchain == "zed", found
assert "import zed.api as zd" in found.testcase.files["repro.py"]
assert found.testcase.requirements == ("zed-dist",)
assert [(entry.kind, entry.name) for entry in found.missing] == [("name", "relax")], found.missing
assert found.device == "z1"
'''
    )


@pytest.mark.parametrize(("toolchain", "kind"), [("iree", TestcaseKind.COMMAND_LINE), ("tvm", TestcaseKind.PYTHON)])
def test_commands_become_a_testcase_only_where_the_compiler_has_programs(toolchain: str, kind: TestcaseKind) -> None:
    found = extract(
        make_issue(
            """
            ```mlir
            func.func @f() {
              return
            }
            ```

            ```sh
            iree-compile f.mlir -o f.vmfb
            ```

            ```python
            import tvm
            print(tvm.__version__)
            ```
            """
        ),
        toolchain=toolchain,
    )
    assert isinstance(found, Repro), found
    assert found.testcase.kind is kind


def test_of_two_compilers_named_as_often_the_first_by_name_is_chosen() -> None:
    assert recognize_toolchain("", "import tvm and import iree") == "iree"
    assert recognize_toolchain("", "import tvm, import tvm and import iree") == "tvm"
    assert recognize_toolchain("someone/tvm", "import iree") == "tvm"
    assert recognize_toolchain("", "plain prose") is None
