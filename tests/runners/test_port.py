"""A port puts one name for another and changes nothing else."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.port import port
from runners.protocol import Testcase, TestcaseKind
from runners.toolchains import iree, tvm


def python(code: str) -> Testcase:
    text = textwrap.dedent(code)
    return Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))


def ported(code: str, version: str) -> str:
    done = port(python(code), version, tvm.DRIFT)
    assert done is not None
    return done.testcase.files["r.py"]


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [
        ("0.25.0", "from tvm import tir\n", "from tvm import tirx as tir\n"),
        ("0.25.0", "from tvm.script import tir as T, relax as R\n", "from tvm.script import tirx as T, relax as R\n"),
        ("0.25.0", "import tvm.tir\ntvm.tir.Var('x', 'int32')\n", "import tvm.tirx\ntvm.tirx.Var('x', 'int32')\n"),
        ("0.25.0", "from tvm.tir import Var\n", "from tvm.tirx import Var\n"),
        ("0.25.0", "import tvm\ns = tvm.tir.Schedule(m)\n", "import tvm\ns = tvm.s_tir.Schedule(m)\n"),
        ("0.27.0", "import tvm\na = tvm.arith.Analyzer()\n", "import tvm\na = tvm.sym.Analyzer()\n"),
        ("0.26.0", "import tvm\na = tvm.nd.array(x)\n", "import tvm\na = tvm.runtime.tensor(x)\n"),
        ("0.26.0", "import tvm\nb = tvm.nd.array(x).asnumpy()\n", "import tvm\nb = tvm.runtime.tensor(x).numpy()\n"),
        (
            "0.26.0",
            "from tvm import relax\nt = relax.TensorStructInfo(s)\n",
            "from tvm import relax\nt = relax.TensorType(s)\n",
        ),
        (
            "0.26.0",
            "from tvm.script import relax as R\nR.call_tir(f, x, out_sinfo=s)\n",
            "from tvm.script import relax as R\nR.call_tir(f, x, out_ty=s)\n",
        ),
        (
            "0.25.0",
            "from tvm import relax\nt = relax.TensorType(s)\n",
            "from tvm import relax\nt = relax.TensorStructInfo(s)\n",
        ),
        (
            "0.25.0",
            "import tvm\ntvm.ir.structural_equal(a, b)\n",
            "import tvm\nimport tvm_ffi\ntvm_ffi.structural_equal(a, b)\n",
        ),
    ],
)
def test_exact_renames_in_both_directions(version: str, old: str, new: str) -> None:
    """Old testcases on new releases, and new ones on old releases."""
    assert ported(old, version) == new


def test_what_is_not_the_compilers_name_stays() -> None:
    """Strings, comments, and other objects' attributes of the same name."""
    code = """\
        import tvm  # tvm.arith
        class mine:
            arith = 1
        print("tvm.arith.Analyzer", mine.arith, tvm.arith.Analyzer())
        """
    assert ported(code, "0.27.0") == textwrap.dedent(code).replace("tvm.arith.Analyzer())", "tvm.sym.Analyzer())")


def test_every_substitution_is_recorded() -> None:
    """The comment lists them."""
    done = port(python("from tvm import tir\nimport tvm\ntvm.arith.Analyzer()\n"), "0.27.0", tvm.DRIFT)
    assert done is not None
    assert {(s.old, s.new) for s in done.substitutions} == {
        ("tvm.tir", "tvm.tirx"),
        ("tvm.arith.Analyzer", "tvm.sym.Analyzer"),
    }


@pytest.mark.parametrize(
    "code",
    ["import tvm\n", "from tvm import relay\nrelay.var('x')\n", "def broken(:\n", "", "tir.Var('no import')\n"],
)
def test_what_cannot_be_ported_is_left_alone(code: str) -> None:
    """Removed for good, not Python, or nothing known to have moved."""
    assert port(python(code), "0.27.0", tvm.DRIFT) is None


def test_a_flag_is_renamed_in_the_steps() -> None:
    """A backend is no device any more."""
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": ""},
        steps=(("iree-compile", "m.mlir", "--iree-hal-target-device=llvm-cpu", "-o", "m.vmfb"),),
    )  # fmt: skip
    done = port(testcase, "3.13.0", iree.DRIFT)
    assert done is not None
    assert done.testcase.steps[0][2] == "--iree-hal-target-backends=llvm-cpu"
    assert port(testcase, "3.3.0", iree.DRIFT) is None


def test_an_operation_is_renamed_in_code_and_not_in_comments() -> None:
    """Whole words only."""
    mlir = "%0 = flow.dispatch.tensor.load %a // flow.dispatch.tensor.load\n%1 = myflow.dispatch.tensor.load %a\n"
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": mlir}, steps=(("iree-opt", "m.mlir"),)
    )
    done = port(testcase, "3.5.0", iree.DRIFT)
    assert done is not None
    assert done.testcase.files["m.mlir"] == mlir.replace(
        "%0 = flow.dispatch.tensor", "%0 = iree_tensor_ext.dispatch.tensor"
    )


CODE = """\
import numpy as np
import tvm
from tvm import relax, tir
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Mod:
    @R.function
    def main(x: R.Tensor((2, 8), "float32")) -> R.Tensor((2, 8), "float32"):
        with R.dataflow():
            y = R.call_tir(Mod.f, (x,), out_sinfo=R.Tensor((2, 8), "float32"))
            R.output(y)
        return y

v = tvm.nd.array(np.zeros(3)).asnumpy()
"""


@pytest.mark.parametrize("version", ["0.25.0", "0.26.0", "0.27.0"])
def test_porting_a_port_changes_nothing(version: str) -> None:
    """Idempotence; and the result is still Python."""
    once = port(python(CODE), version, tvm.DRIFT)
    assert once is not None
    ast.parse(once.testcase.files["r.py"])
    assert port(once.testcase, version, tvm.DRIFT) is None


@given(st.text(max_size=300))
def test_any_text_is_ported_or_left_alone(text: str) -> None:
    """The testcase is a stranger's."""
    port(python(text), "0.27.0", tvm.DRIFT)
