"""Porting replaces names by others and changes nothing else."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Exited, Limits, Testcase, TestcaseKind
from runners.environments.store import Store, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import open_probe_session
from runners.probe.task import Conditions, ProbeResult
from runners.rewrite.testcase import Ported, port_testcase
from runners.rewrite.text import port_words
from runners.sandbox.contract import SessionEngine
from runners.sandbox.owner import make_name
from runners.sandbox.select import select_engine
from runners.toolchains import iree, tvm

PROGRAMS = {file.stem: file.read_text() for file in sorted((Path(__file__).parent / "programs").glob("*.txt"))}
"""Small programs: the first line gives the release of their names, the second line their output."""
RELEASES = ("0.17.dev0", "0.25.0.post1", "0.26.0", "0.27.0.post1")


def python(code: str) -> Testcase:
    text = textwrap.dedent(code)
    return Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))


def command(*step: str, mlir: str = "") -> Testcase:
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": mlir}, steps=(step,))


def ported(code: str, version: str) -> str:
    done = port_testcase(python(code), version, tvm)
    assert done is not None
    return done.testcase.files["r.py"]


# ---------------------------------------------------------------------------------------------- Python: imports


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [
        ("0.25.0", "from tvm import tir\n", "from tvm import tirx as tir\n"),
        ("0.25.0", "import tvm.tir as t, os\n", "import tvm.tirx as t, os\n"),
        ("0.25.0", "from tvm.tir import Var\n", "from tvm.tirx import Var\n"),
        ("0.25.0", "from tvm.tir import *\n", "from tvm.tirx import *\n"),
        ("0.25.0", "from tvm.script import tir as T, relax as R\n", "from tvm.script import tirx as T, relax as R\n"),
        ("0.25.0", "from tvm.script.parser import tir as T\n", "from tvm.script.parser import tirx as T\n"),
        ("0.25.0", "from tvm import dlight as dl\n", "from tvm.s_tir import dlight as dl\n"),
        ("0.25.0", "from tvm.contrib import utils\n", "from tvm.support import utils\n"),
        ("0.25.0", "from tvm.tir.tensor_intrin import cuda\n", "from tvm.s_tir.tensor_intrin import cuda\n"),
        ("0.25.0", "from tvm import TVMError\n", "from builtins import RuntimeError as TVMError\n"),
        ("0.25.0", "from tvm import ffi\n", "import tvm_ffi as ffi\n"),
        (
            "0.26.0",
            "from tvm.relax import TensorStructInfo\n",
            "from tvm.relax import TensorType as TensorStructInfo\n",
        ),
        (
            "0.25.0",
            "from tvm.tir import Schedule, Var\n",
            "from tvm.s_tir import Schedule; from tvm.tirx import Var\n",
        ),
        ("0.27.0", "from tvm.tir import StringImm\n", "from tvm.ir import StringImm\n"),
        ("0.17.dev0", "from tvm.ir import StringImm\n", "from tvm.tir import StringImm\n"),
        ("0.17.dev0", "from tvm.sym import Analyzer\n", "from tvm.arith import Analyzer\n"),
        ("0.25.0", "import topi\nuse(topi)\n", "import tvm.topi as topi, tvm.topi\nuse(topi)\n"),
        ("0.25.0", "import topi as t, os\n", "import tvm.topi as t, os\n"),
    ],
)
def test_imports_are_ported_and_keep_their_local_names(version: str, old: str, new: str) -> None:
    """Chains of renames over several releases work in both directions."""
    assert ported(old, version) == new


# ---------------------------------------------------------------------------------------------- Python: uses


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [
        ("0.25.0", "import tvm.tir\ntvm.tir.Var('x', 'int32')\n", "import tvm.tirx\ntvm.tirx.Var('x', 'int32')\n"),
        ("0.25.0", "import tvm\ns = tvm.tir.Schedule(m)\n", "import tvm\ns = tvm.s_tir.Schedule(m)\n"),
        ("0.27.0", "import tvm as t\na = t.arith.Analyzer()\n", "import tvm as t\na = t.sym.Analyzer()\n"),
        ("0.26.0", "import tvm\nb = tvm.nd.array(x).asnumpy()\n", "import tvm\nb = tvm.runtime.tensor(x).numpy()\n"),
        ("0.26.0", "from tvm import nd\na = nd.array(x)\n", "from tvm import runtime as nd\na = nd.tensor(x)\n"),
        (
            "0.25.0",
            "from tvm import tir\ntir.Schedule(tir.Var('x'))\n",
            "from tvm import tirx as tir\nimport tvm\ntvm.s_tir.Schedule(tir.Var('x'))\n",
        ),
        (
            "0.26.0",
            "from tvm import relax\nt = relax.TensorStructInfo(s)\n",
            "from tvm import relax\nt = relax.TensorType(s)\n",
        ),
        (
            "0.25.0",
            "from tvm import relax\nt = relax.TensorType(s)\n",
            "from tvm import relax\nt = relax.TensorStructInfo(s)\n",
        ),
        (
            "0.25.0",
            '"""Says."""\nfrom __future__ import division\nimport tvm\ntvm.ir.structural_hash(a)\n',
            '"""Says."""\nfrom __future__ import division\nimport tvm\nimport tvm_ffi\ntvm_ffi.structural_hash(a)\n',
        ),
        (
            "0.26.0",
            "import tvm\ntry:\n    f()\nexcept tvm.TVMError:\n    pass\n",
            "import tvm\ntry:\n    f()\nexcept RuntimeError:\n    pass\n",
        ),
        ("0.25.0", "import tvm\nb = sch.get_block('C')\n", "import tvm\nb = sch.get_sblock('C')\n"),
    ],
)
def test_uses_are_ported_where_their_import_does_not_suffice(version: str, old: str, new: str) -> None:
    """A use is resolved through its import. A package that the new name needs is imported."""
    assert ported(old, version) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "from tvm.script import relax as R\nR.call_tir(f, x, out_sinfo=s)\n",
            "from tvm.script import relax as R\nR.call_tir(f, x, out_ty=s)\n",
        ),
        (
            "from tvm import relax\nrelax.Var('x', struct_info=s)\n",
            "from tvm import relax\nrelax.Var('x', ty=s)\n",
        ),
    ],
)
def test_keywords_are_renamed_in_the_toolchains_calls(old: str, new: str) -> None:
    """Keywords of other calls stay."""
    assert ported(old + "mine(out_sinfo=1, struct_info=2)\n", "0.26.0") == new + "mine(out_sinfo=1, struct_info=2)\n"


def test_other_names_stay() -> None:
    """Strings, comments, and attributes of other objects with the same name stay."""
    code = """\
        import tvm  # tvm.arith
        class mine:
            arith = 1
        def f(tvm):
            return tvm.arith
        print("tvm.arith.Analyzer", mine.arith, tvm.arith.Analyzer())
        """
    assert ported(code, "0.27.0") == textwrap.dedent(code).replace("tvm.arith.Analyzer())", "tvm.sym.Analyzer())")


@pytest.mark.parametrize(
    "code",
    [
        "import tvm\n",
        "def broken(:\n",
        "",
        "tir.Var('no import')\n",
        "from .tvm import tir\n",
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "-" * 50_000 + "1",
        "import tvm\ntvm.nd.array(1)" + ".a" * 5000,
    ],
)
def test_code_that_cannot_be_ported_is_unchanged(code: str) -> None:
    """The code is not Python, has no name that moved, or is nested too deeply for the parser."""
    assert port_testcase(python(code), "0.27.0", tvm) is None


@pytest.mark.parametrize(
    "code",
    [
        "from tvm import nd, relay\nrelay.var('x')\n",
        "import tvm.relay.testing\nimport tvm.tir\ntvm.relay.testing.run()\n",
        "import tvm\nfrom tvm import te, tir\ns = te.create_schedule(x)\n",
        "import tvm\nx = tvm.nd.array(1)\ntvm.te.hybrid.script(x)\n",
        "from tvm import relax\nrelax.PrimStructInfo(value=n)\n",
        "import tvm\ntvm.tir.AssertStmt(x, message, body)\n",
        "from tvm.script import relax as R\nR.call_tir(f, x, out_sinfo=s, tir_vars=n)\n",
    ],
)
def test_a_name_without_replacement_prevents_the_port(code: str) -> None:
    """A text that cannot run is worth no run."""
    assert port_testcase(python(code), "0.27.0", tvm) is None


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [
        (
            "0.25.0",
            "import tvm\ns = (tvm.tir.LetStmt(x, a + 1,  # why\n    body=b))\n",
            "import tvm\ns = (tvm.tirx.SeqStmt([tvm.tirx.Bind(x, a + 1), b]))\n",
        ),
        (
            "0.27.0",
            "from tvm import tir\ns = tir.LetStmt(x, 1, tir.LetStmt(y, x, tir.Evaluate(y)))\n",
            "from tvm import tirx as tir\nimport tvm\n"
            "s = tvm.tirx.SeqStmt([tvm.tirx.Bind(x, 1), tvm.tirx.SeqStmt([tvm.tirx.Bind(y, x), tir.Evaluate(y)])])\n",
        ),
        (
            "0.17.dev0",
            "import tvm\ns = tvm.make.AssertStmt(tvm.make.LT(0, x), m, tvm.make.LetStmt(y, tvm.abs(x), b))\n",
            "import tvm\ns = tvm.tir.AssertStmt(tvm.tir.LT(0, x), m, tvm.tir.LetStmt(y, tvm.tir.abs(x), b))\n",
        ),
    ],
)
def test_a_binding_with_a_body_stands_before_it_in_a_sequence(version: str, old: str, new: str) -> None:
    """Where bindings have no body. The arguments stay, in their order."""
    assert ported(old, version) == new


@pytest.mark.parametrize(
    "call", ["(x, 1)", "(x, 1, b, None)", "(*both, b)", "(body=b, var=x, value=1)", "(x, 1, block=b)", ""]
)
def test_a_call_of_another_form_prevents_the_port(call: str) -> None:
    """So does a use that is no call."""
    assert port_testcase(python(f"import tvm\ns = tvm.tir.LetStmt{call}\n"), "0.27.0", tvm) is None


SCHEDULE = """\
import tvm
from tvm import te
A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1, name="B")
C = te.compute((4,), lambda i: B[i] + 1, name="C")
"""
FUNCTION = 'tvm.IRModule({"main": tvm.te.create_prim_func([A, C]).with_attr("global_symbol", "main")})'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s = te.create_schedule(C.op)\nf = tvm.build(s, [A, C])\n", f"s = C.op\nf = tvm.build({FUNCTION}, None)\n"),
        (
            "f = tvm.build(te.create_schedule([C.op]), [A, C], target_host='llvm', target='llvm')\n",
            f"f = tvm.build({FUNCTION}, 'llvm')\n",
        ),
        (
            "s = te.create_schedule(C.op)\nboth = [A, C]\nwith there:\n    f = tvm.build(s, both, 'c', name='k')\n",
            "s = C.op\nboth = [A, C]\nwith there:\n    f = tvm.build(tvm.IRModule({'k': tvm.te.create_prim_func(both)"
            ".with_attr(\"global_symbol\", 'k')}), 'c')\n",
        ),
        (
            "d = tvm.device('llvm', 0), tvm.device(where, 0), tvm.device('cuda')\n",
            'd = tvm.device("cpu", 0), tvm.device("cpu" if "llvm" in str(where)[:16] else where, 0), '
            "tvm.device('cuda')\n",
        ),
    ],
)
def test_tensors_without_a_schedule_of_their_own_are_built_from_a_function(old: str, new: str) -> None:
    """A schedule that is only made and built says nothing that the tensors do not say."""
    assert ported(SCHEDULE + old, "0.27.0") == SCHEDULE + new


@pytest.mark.parametrize("show", ["print({})\n", "m = {}\nprint(m)\nprint(m['main'].body)\n"])
def test_a_print_of_lowered_tensors_prints_nothing(show: str) -> None:
    """The text of a lowered function is another in each release. The port says that it prints less."""
    code = SCHEDULE + "s = te.create_schedule(C.op)\n" + show.format("tvm.lower(s, [A, C], simple_mode=True)")
    done = port_testcase(python(code), "0.27.0", tvm)
    assert done is not None
    assert not done.prints_all
    assert "print" not in done.testcase.files["r.py"]
    assert "str(" in done.testcase.files["r.py"]  # the text is made: printing may be what fails
    assert "FlattenBuffer(), " in done.testcase.files["r.py"]
    assert FUNCTION in done.testcase.files["r.py"]


@pytest.mark.parametrize("use", ["opt(m)", "tvm.tir.transform.Simplify()(m)", "run(m, 3)"])
def test_lowered_tensors_may_go_to_a_function_that_may_print_them(use: str) -> None:
    """What the function prints of them is another text, so only failures without values count."""
    lines = "s = te.create_schedule(C.op)\nm = tvm.lower(s, [A, C])\n"
    done = port_testcase(python(f"{SCHEDULE}{lines}{use}\n"), "0.27.0", tvm)
    assert done is not None
    assert not done.prints_all


@pytest.mark.parametrize(
    "code",
    [
        "s = te.create_schedule(C.op)\ns[C].parallel(C.op.axis[0])\ntvm.build(s, [A, C])\n",
        "s = te.create_schedule(C.op)\nprint(s)\ntvm.build(s, [A, C])\n",
        "s = te.create_schedule(C.op)\n",
        "s = te.create_schedule(C)\ntvm.build(s, [A, C])\n",
        "s = te.create_schedule([B.op, C.op])\ntvm.build(s, [A, C])\n",
        "s = te.create_schedule(C.op)\ntvm.build(s, given)\n",
        "s = te.create_schedule(C.op)\ntvm.build(s, [A, C], target_host='c')\n",
        "s = te.create_schedule(C.op)\ntvm.build(s, [A, C], binds={A: b})\n",
        "s = te.create_schedule(C.op)\ntvm.build(s, [A, C], 'llvm', name=choose())\n",
        "s = te.create_schedule(C.op)\nassert 'for' in str(tvm.lower(s, [A, C]))\n",
        "s = te.create_schedule(C.op)\nm = tvm.lower(s, [A, C])\nm['main'].body.node()\n",
        "s = te.create_schedule(C.op)\nif a:\n    s = b\ntvm.build(s, [A, C])\n",
        "def f(s):\n    tvm.build(s, [A, C])\nf(te.create_schedule(C.op))\n",
    ],
)
def test_a_schedule_that_says_more_prevents_the_port(code: str) -> None:
    """Another use of the schedule or of a lowered text; a tensor that is not among the arguments; unknown values."""
    assert port_testcase(python(SCHEDULE + code), "0.27.0", tvm) is None


# ---------------------------------------------------------------------------------------------- TVMScript, strings

SCRIPT = """\
import tvm
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalias": T.bool(True), "note": "tir.noalias"})
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]

@T.prim_func(private=True)
def g():
    pass
"""
TIRX = """\
import tvm
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def f(A: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True, "note": "tir.noalias"})
    B = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]

@T.prim_func(private=True, s_tir=True)
def g():
    pass
"""


def test_tvmscript_gets_the_switch_of_its_dialect() -> None:
    """Every function of old releases had blocks to schedule."""
    assert ported(SCRIPT, "0.25.0") == TIRX
    assert ported(TIRX, "0.17.dev0") == SCRIPT.replace("T.bool(True)", "True")


BODY = """\
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer[(8,), "float32"], n: T.int32):
    x: T.int32 = n + 1
    p: T.handle("float32") = A.data
    q: T.handle = A.data
    B = T.Buffer((4, 2), "float32", data=p)

def g():
    x: T.int32 = 1
    B = T.Buffer((4,), data=q)
"""


def test_bindings_and_buffers_in_a_body_are_declared() -> None:
    """An annotation bound a name, and a buffer needed no declaration. Other functions stay."""
    new = BODY.replace("import tir as T", "import tirx as T").replace("prim_func\n", "prim_func(s_tir=True)\n")
    new = new.replace('[(8,), "float32"]', '((8,), "float32")').replace("x: T.int32 = n", "x: T.let[T.int32] = n")
    new = new.replace('T.handle("float32")', 'T.let[T.handle("float32")]').replace(
        "T.Buffer((4, 2)", "T.decl_buffer((4, 2)"
    )
    assert ported(BODY, "0.27.0") == new
    assert ported(BODY, "0.17.dev0") == BODY.replace('[(8,), "float32"]', '((8,), "float32")')


def test_options_are_names_where_a_configuration_is_read() -> None:
    """In other calls the strings are the testcase's own words."""
    code = textwrap.dedent("""\
        import tvm
        with tvm.transform.PassContext(config={"tir.disable_vectorize": 1}):
            print("tir.disable_vectorize", {"tir.disable_vectorize": 1})
    """)
    assert ported(code, "0.25.0") == code.replace('config={"tir.', 'config={"tirx.')


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "import tvm\nt = tvm.target.Target('llvm -mcpu=x -num-cores 4')\n",
            "import tvm\nt = tvm.target.Target({'kind': 'llvm', 'mcpu': 'x', 'num-cores': 4})\n",
        ),
        (
            "from tvm import relax\nrelax.build(m, 'llvm --jit')\n",
            "from tvm import relax\nimport tvm\nrelax.build(m, tvm.target.Target({'kind': 'llvm', 'jit': True}))\n",
        ),
        (
            "import tvm\ntarget = 'cuda -arch=sm_80 -libs=cublas,x'\n",
            "import tvm\ntarget = tvm.target.Target({'kind': 'cuda', 'arch': 'sm_80', 'libs': ['cublas', 'x']})\n",
        ),
    ],
)
def test_targets_are_dictionaries(old: str, new: str) -> None:
    """Until 0.24.0 a target was written like a command line."""
    assert ported(old, "0.25.0") == new
    assert port_testcase(python(old), "0.17.dev0", tvm) is None


@pytest.mark.parametrize("text", ["llvm", "print -x", "llvm is -fast", "nvidia/nvidia-a100", "-mcpu=x"])
def test_other_strings_are_no_targets(text: str) -> None:
    """Only a known kind with options is a target."""
    assert port_testcase(python(f"import tvm\ntarget = {text!r}\n"), "0.27.0", tvm) is None


@pytest.mark.parametrize(
    ("use", "build"), [("relax.VirtualMachine(ex, tvm.cpu())", "relax.build"), ("ex(a)", "tvm.build")]
)
def test_compile_is_replaced_on_releases_without_it(use: str, build: str) -> None:
    """Relax modules had a builder of their own."""
    code = f"import tvm\nfrom tvm import relax\nex = tvm.compile(m, target='llvm')\n{use}\n"
    assert f"ex = tvm.{build}(m".replace("tvm.tvm", "tvm") in ported(code, "0.17.dev0")


# ---------------------------------------------------------------------------------------------- registered names


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [
        ("0.25.0", "tvm.ir.Op.get('tir.isnullptr')", "tvm.ir.Op.get('tirx.isnullptr')"),
        ("0.27.0", "call('bool', \"tir.log2\", x)", "call('bool', \"prim.log2\", x)"),
        ("0.27.0", "wanted = ['tir.exp', 'relax.exp']", "wanted = ['tirx.exp', 'relax.exp']"),
        ("0.27.0", "tvm.get_global_func('arith.DetectIterMap')", "tvm.get_global_func('sym.DetectIterMap')"),
        ("0.17.dev0", "tvm.ir.Op.get('tirx.popcount')", "tvm.ir.Op.get('tir.popcount')"),
    ],
)
def test_names_of_registries_move_wherever_they_stand(version: str, old: str, new: str) -> None:
    """Operators and global functions are named in strings. The registries of the builds say where each one went."""
    assert ported(f"import tvm\n{old}\n", version) == f"import tvm\n{new}\n"


@pytest.mark.parametrize("text", ["tir.exp is slow", "my.tir.exp", "tir.no_such_operator", "tir", "exp"])
def test_other_strings_are_no_names_of_registries(text: str) -> None:
    """Only a whole name of a registry is one."""
    assert port_testcase(python(f"import tvm\nprint({text!r})\n"), "0.27.0", tvm) is None


# ---------------------------------------------------------------------------------------------- calls in another form


@pytest.mark.parametrize(
    "code",
    [
        "tvm.build(m, target='llvm')",
        "tvm.build(m, 'llvm')",
        "f = tir.PrimFunc([x], body, None)",
        "f = tir.PrimFunc([x], body, attrs=None)",
        "tir.Evaluate(x)",
    ],
)
def test_a_call_that_means_the_same_stays(code: str) -> None:
    """A form is for calls that the release does not take."""
    assert port_testcase(python(f"import tvm\nfrom tvm import tirx as tir\n{code}\n"), "0.27.0", tvm) is None


@pytest.mark.parametrize(
    "call",
    [
        "tvm.lower(f, [A])",
        "tvm.build(f, [A], 'llvm', 'cuda')",
        "tvm.build(f, name='k', more=1)",
        "tvm.tir.Call(*given)",
    ],
)
def test_a_call_that_says_more_prevents_the_port(call: str) -> None:
    """A dropped argument may be what fails."""
    assert port_testcase(python(f"import tvm\n{call}\n"), "0.27.0", tvm) is None


FUNCTION_OF_TIRX = "from tvm.script import tirx as T\n@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((4,))):\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("with T.LetStmt(3, var=x):\n        A[x] = 1.0\n", "T.Bind(3, None, var=x)\n    A[x] = 1.0\n"),
        ("with T.LetStmt(A[0]) as x:\n        A[1] = x\n", "x = T.Bind(A[0], None, var=None)\n    A[1] = x\n"),
        ("with T.let(x, 3):\n        A[x] = 1.0\n", "T.Bind(3, var=x)\n    A[x] = 1.0\n"),
        (
            "with T.allocate([4], 'int8', 'global') as B:\n        T.evaluate(B)\n    T.evaluate(0)\n",
            "B = T.alloc_buffer([4], 'int8', scope='global').data\n    T.evaluate(B)\n    T.evaluate(0)\n",
        ),
        ("with T.decl_buffer((4,)) as B:\n        B[0] = 1.0\n", "B = T.decl_buffer((4,))\n    B[0] = 1.0\n"),
    ],
)
def test_contexts_of_scripts_are_statements_before_their_body(old: str, new: str) -> None:
    """Since 0.24 a binding and an allocation hold for what follows them."""
    code = FUNCTION_OF_TIRX.replace("tirx", "tir").replace("(s_tir=True)", "")
    assert ported(f"{code}    {old}", "0.27.0") == f"{FUNCTION_OF_TIRX}    {new}"


def test_other_contexts_stay() -> None:
    """A block, an attribute and a context of the program's own are entered as before."""
    body = "    with T.attr(A.data, 'x', 1):\n        with own(A) as (x, y):\n            A[0] = x\n"
    code = FUNCTION_OF_TIRX.replace("tirx", "tir").replace("(s_tir=True)", "")
    assert ported(f"{code}{body}", "0.27.0") == f"{FUNCTION_OF_TIRX}{body}"


# ---------------------------------------------------------------------------------------------- what a run names


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("AttributeError: 'Cast' object has no attribute 'dtype'. Did you mean: 'astype'?", "dtype"),
        ("AttributeError: dtype is only available on a Var with BufferType", "dtype"),
        ("AttributeError: Module has no function 'type_key'", "type_key"),
        ("AttributeError: 'PrimFunc' object has no attribute 'buffer_map'", "buffer_map"),
    ],
)
def test_an_attribute_that_a_run_names_as_missing_is_read_in_another_way(said: str, name: str) -> None:
    """Only the release knows which objects lost the attribute. Other attributes stay."""
    code = f"import tvm\nx = tvm.te.var('x')\nprint(x.{name}, x.other)\n"
    assert port_testcase(python(code), "0.27.0", tvm) is None
    done = port_testcase(python(code), "0.27.0", tvm, said)
    assert done is not None
    text = done.testcase.files["r.py"]
    assert f"hasattr(one, '{name}')" in text
    assert text.count("hasattr") == 1
    assert "x.other" in text
    assert port_testcase(python(code), "0.17.dev0", tvm, said) is None


@pytest.mark.parametrize(
    "said", ["", "'Cast' object has no attribute 'other'", "has no attribute 'dtype_of'", "dtype"]
)
def test_a_run_that_names_nothing_known_changes_nothing(said: str) -> None:
    """A port mends what the table knows."""
    assert port_testcase(python("import tvm\nprint(x.dtype, x.other)\n"), "0.27.0", tvm, said) is None


# ---------------------------------------------------------------------------------------------- the record


def test_every_substitution_is_recorded_with_its_place() -> None:
    """The comment lists the substitutions."""
    done = port_testcase(python("from tvm import tir\nimport tvm\ntvm.arith.Analyzer()\n"), "0.27.0", tvm)
    assert done is not None
    assert {(s.old, s.new, s.where) for s in done.substitutions} == {
        ("tvm.tir", "tvm.tirx", "r.py:1"),
        ("tvm.arith.Analyzer", "tvm.sym.Analyzer", "r.py:3"),
    }
    assert done.testcase.steps == (("python", "r.py"),)


def check_second_port(name: str, version: str) -> None:
    once = port_testcase(python(PROGRAMS[name]), version, tvm)
    if once is not None:
        text = once.testcase.files["r.py"]
        ast.parse(text)
        assert text.splitlines()[:2] == PROGRAMS[name].splitlines()[:2]
        assert port_testcase(once.testcase, version, tvm) is None, name


@pytest.mark.parametrize("name", list(PROGRAMS)[::3])
def test_porting_a_port_changes_nothing(name: str) -> None:
    """A second port changes nothing, and the result is still Python with the same comments. One program in three."""
    check_second_port(name, RELEASES[-1])


@pytest.mark.thorough
@pytest.mark.parametrize("version", RELEASES)
def test_porting_any_port_changes_nothing(version: str) -> None:
    """As above, for the other programs, and for all programs on the other releases."""
    for place, name in enumerate(PROGRAMS):
        if place % 3 or version != RELEASES[-1]:
            check_second_port(name, version)


@given(st.text(max_size=300))
def test_any_text_is_ported_or_unchanged(text: str) -> None:
    """The testcase comes from a stranger: no text raises."""
    port_testcase(python(text), "0.27.0", tvm)
    port_testcase(command("iree-compile", text, mlir=text), "3.13.0", iree)


# ---------------------------------------------------------------------------------------------- command lines, MLIR


@pytest.mark.parametrize(
    ("version", "old", "new"),
    [
        ("3.13.0", "--iree-hal-target-device=llvm-cpu", "--iree-hal-target-backends=llvm-cpu"),
        ("3.4.0", "-iree-hal-target-device=vmvx", "--iree-hal-target-backends=vmvx"),
        ("3.12.0", "--iree-hip-target=gfx942", "--iree-rocm-target=gfx942"),
        ("3.10.0", "--iree-rocm-target=gfx942", "--iree-hip-target=gfx942"),
        ("20240410.859", "--iree-cuda-target=sm_80", "--iree-hal-cuda-llvm-target-arch=sm_80"),
        ("20240828.999", "--iree-hal-cuda-llvm-target-arch=sm_80", "--iree-cuda-target=sm_80"),
        ("20240129.785", "--iree-rocm-target=gfx90a", "--iree-rocm-target-chip=gfx90a"),
        ("20230209.425", "--iree-llvmcpu-target-cpu=host", "--iree-llvm-target-cpu=host"),
        ("20230815.614", "--iree-vulkan-target=ampere", "--iree-vulkan-target-triple=ampere-unknown-linux"),
        ("3.11.0", "--iree-opt-import-parameters=p.irpa", "--iree-parameter-import=p.irpa"),
    ],
)
def test_a_flag_is_renamed_and_its_value_kept(version: str, old: str, new: str) -> None:
    """The flag keeps its position."""
    done = port_testcase(command("iree-compile", "m.mlir", old, "-o", "m.vmfb"), version, iree)
    assert done is not None
    assert done.testcase.steps == (("iree-compile", "m.mlir", new, "-o", "m.vmfb"),)
    assert done.substitutions[0].where == "step 1"
    assert port_testcase(done.testcase, version, iree) is None


def test_a_value_behind_a_space_belongs_to_its_flag() -> None:
    """``--flag value`` and ``--flag=value`` are the same."""
    done = port_testcase(command("iree-compile", "--iree-hal-target-device", "llvm-cpu", "m.mlir"), "3.13.0", iree)
    assert done is not None
    assert done.testcase.steps == (("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir"),)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            ("-iree-hal-target-backends=dylib", "-iree-llvm-target-cpu=host"),
            ("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"),
        ),
        (("-iree-mlir-to-vm-bytecode-module", "m.mlir"), ("m.mlir",)),
        (("--iree-input-type", "xla"), ("--iree-input-type=stablehlo_xla",)),
        (("--iree-rocm-target-chip=gfx90a",), ("--iree-rocm-target=gfx90a",)),  # renamed twice
        (
            ("--iree-llvmcpu-enable-microkernels", "--iree-flow-enable-data-tiling=false"),
            ("--iree-llvmcpu-enable-ukernels=all", "--iree-opt-data-tiling=false"),
        ),
        (("--iree-llvmcpu-enable-microkernels=false",), ("--iree-llvmcpu-enable-ukernels=none",)),
        (
            ("--iree-flow-dispatch-linalg-on-tensors", "--iree-flow-fuse-multi-use"),
            ("--iree-dispatch-creation-fuse-multi-use",),
        ),
    ],
)
def test_flags_of_earlier_years_are_renamed(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    """Renames of several years form a chain. A flag that is not needed any more goes."""
    done = port_testcase(command("iree-compile", *old), "3.13.0", iree)
    assert done is not None
    assert done.testcase.steps == (("iree-compile", *new),)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("ireec", "--x=y", "a.mlir"), ("iree-compile", "--x=y", "a.mlir")),
        (("iree-translate", "-iree-mlir-to-vm-bytecode-module", "a.mlir"), ("iree-compile", "a.mlir")),
        (("iree-translate", "--iree-vm-ir-to-c-module", "a.mlir"), None),  # it wrote many formats
    ],
)
def test_a_compiler_with_its_old_name_is_the_compiler(old: tuple[str, ...], new: tuple[str, ...] | None) -> None:
    """Only where it does what the compiler does. The rename is a change like any other."""
    done = port_testcase(command(*old), "3.13.0", iree)
    assert (done.testcase.steps if done else None) == ((new,) if new else None)


def test_a_flag_belongs_to_its_program() -> None:
    """The runtime's ``--driver`` was renamed. Another program's flag of that name stays."""
    testcase = command("iree-run-module", "--driver=vulkan", "--module=a.vmfb")
    done = port_testcase(testcase, "3.13.0", iree)
    assert done is not None
    assert done.testcase.steps == (("iree-run-module", "--device=vulkan", "--module=a.vmfb"),)
    assert port_testcase(command("iree-opt", "--driver=vulkan"), "3.13.0", iree) is None


@pytest.mark.parametrize(
    ("version", "written", "ported"),
    [
        (
            "3.12.0",
            'ireec.compile_str(text, extra_args=["--iree-hip-target=gfx942", "--iree-opt-level=O2"])',
            "ireec.compile_str(text, extra_args=['--iree-rocm-target=gfx942', \"--iree-opt-level=O2\"])",
        ),
        (
            "3.12.0",
            'flags = ["--iree-llvm-target-cpu=host", "--iree-mlir-to-vm-bytecode-module"]',
            "flags = ['--iree-llvmcpu-target-cpu=host']",
        ),
        (
            "3.12.0",
            'flags += ("--iree-mlir-to-vm-bytecode-module", other, "--iree-hip-target=gfx942",)',
            "flags += (other, '--iree-rocm-target=gfx942',)",
        ),
        (
            "3.12.0",
            'subprocess.run(["iree-run-module", "--driver=dylib", "--iree-hip-target=gfx942"])',
            'subprocess.run(["iree-run-module", \'--device=local-task\', "--iree-hip-target=gfx942"])',
        ),
    ],
)
def test_flags_in_python_are_ported_as_on_a_command_line(version: str, written: str, ported: str) -> None:
    """Strings of lists. Without a program's name, they are flags of the compiler."""
    head = "import subprocess\nimport iree.compiler as ireec\n"
    testcase = msgspec.structs.replace(python(head + written + "\n"), toolchain="iree")
    done = port_testcase(testcase, version, iree)
    assert done is not None
    assert list(done.testcase.files.values()) == [head + ported + "\n"]


def test_a_flag_in_python_without_a_successor_prevents_the_port() -> None:
    """As on a command line."""
    testcase = python('import iree.compiler as c\nc.compile_str("", extra_args=["--iree-opt-level=O2"])\n')
    assert port_testcase(msgspec.structs.replace(testcase, toolchain="iree"), "3.0.0", iree) is None


def test_passes_in_a_pipeline_are_renamed() -> None:
    """A pass is a flag of ``iree-opt`` too. Its options and other passes stay."""
    pipeline = "--pass-pipeline=builtin.module(func.func(iree-gpu-pack-to-intrinsics,cse{a=b}),canonicalize)"
    done = port_testcase(command("iree-opt", pipeline, "m.mlir"), "3.5.0", iree)
    assert done is not None
    assert done.testcase.steps[0][1] == pipeline.replace("iree-gpu-pack", "iree-codegen-gpu-pack")


@pytest.mark.parametrize(
    ("written", "ported"),
    [
        ("canonicalize,func(cse)", "builtin.module(canonicalize,func.func(cse))"),
        ("func.func(cse)", "builtin.module(func.func(cse))"),
        ("module(cse)", "builtin.module(cse)"),
    ],
)
def test_a_pipeline_without_the_operation_that_it_runs_on_gets_one(written: str, ported: str) -> None:
    """Until 2022, a pipeline ran on the module without saying so. No release here reads such a pipeline."""
    for words in ((f"-pass-pipeline={written}",), ("--pass-pipeline", written)):
        done = port_testcase(command("iree-opt", *words, "m.mlir"), "3.13.0", iree)
        assert done is not None
        assert done.testcase.steps[0][1:] == (f"--pass-pipeline={ported}", "m.mlir")


@pytest.mark.parametrize("written", ["builtin.module(func.func(cse))", "any(cse)", ""])
def test_a_pipeline_that_names_its_operation_stays(written: str) -> None:
    assert port_testcase(command("iree-opt", f"--pass-pipeline={written}", "m.mlir"), "3.13.0", iree) is None


def test_a_program_in_a_string_is_ported() -> None:
    """TVMScript for the parser. The quotes stay, and a change has the line of the file."""
    code = """\
        import tvm
        text = \'\'\'
        @T.prim_func
        def f(a: T.Buffer((4,), "float32")):
            with T.block("b"):
                a[0] = 1.0
        \'\'\'
        tvm.script.from_source(text)
        """
    done = port_testcase(python(code), "0.27.0", tvm)
    assert done is not None
    text = done.testcase.files["r.py"]
    assert 'with T.sblock("b"):' in text
    assert "@T.prim_func(s_tir=True)" in text
    assert text.count("'''") == 2
    assert {change.where for change in done.substitutions} == {"r.py:3", "r.py:5"}


def test_mlir_in_a_string_is_ported_with_the_names_of_its_backend() -> None:
    """Notations inside the string, and the arguments of the call."""
    code = """\
        from iree.compiler import compile_str
        compile_str(\"\"\"
        func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
          %y = mhlo.negate %x : tensor<2xf32>
          return %y : tensor<2xf32>
        }\"\"\", target_backends=["dylib-llvm-aot"], input_type="mhlo")
        """
    testcase = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="iree", files={"r.py": textwrap.dedent(code)}, steps=(("python", "r.py"),)
    )
    done = port_testcase(testcase, "3.13.0", iree)
    assert done is not None
    text = done.testcase.files["r.py"]
    assert "func.func @f(" in text
    assert "stablehlo.negate" in text
    assert 'target_backends=["llvm-cpu"]' in text
    assert "input_type='stablehlo'" in text
    assert done.is_notation_only
    early = port_testcase(testcase, "20230209.425", iree)  # reads StableHLO, and calls the input type MHLO
    assert early is not None
    text = early.testcase.files["r.py"]
    assert "stablehlo.negate" in text
    assert 'input_type="mhlo"' in text


def test_a_program_of_iree_in_2020_is_ported_with_the_idioms_of_the_new_names() -> None:
    """The packages were renamed; drivers and arguments of their functions changed too."""
    code = (
        "from pyiree import compiler2 as ireec\nfrom pyiree import rt as ireert\n"
        'binary = ireec.compile_str(TEXT, target_backends=["dylib-llvm-aot"])\n'
        'config = ireert.Config("dylib")\n'
        "module = ireert.VmModule.from_flatbuffer(binary)\n"
    )
    text = port_runtime(code)
    assert "from iree import runtime as ireert" in text
    assert 'target_backends=["llvm-cpu"]' in text
    assert 'ireert.Config("local-task")' in text
    assert "from_flatbuffer(config.vm_instance, binary)" in text
    loads = 'import iree.runtime as rt\nm = rt.load_vm_flatbuffer_file("m.vmfb", backend="{}")\n'
    assert "backend='llvm-cpu'" in port_runtime(loads.format("local-task"))
    assert port_runtime(loads.format("llvm-cpu")) == loads.format("llvm-cpu")


BEFORE = "func @f(%x: tensor<2xf32>) {\n  return\n}\n"


@pytest.mark.parametrize(
    ("literal", "ported"),
    [
        ('r"""{}"""', '"""{}"""'),
        ('b"""{}"""', 'b"""{}"""'),
        ("textwrap.dedent('''{}''')", "textwrap.dedent('''{}''')"),
        ('"""{}""".strip()', '"""{}""".strip()'),
        ('[1, """{}"""][1]', '[1, """{}"""][1]'),
        ('"// it\\n" + """{}"""', '"// it\\n" + """{}"""'),
    ],
)
def test_mlir_is_ported_wherever_a_string_stands(literal: str, ported: str) -> None:
    """The literal may be raw or of bytes, and a part of an expression."""
    code = "import iree.compiler as c\nc.compile_str({})\n"
    after = BEFORE.replace("func @", "func.func @")
    assert port_runtime(code.format(literal.format(BEFORE))) == code.format(ported.format(after))


def test_mlir_with_expressions_is_ported_around_them() -> None:
    code = (
        'text = f"""\nfunc @f{"_" + name}(%x: tensor<{2 * n}xf32>) -> tensor<{2 * n}xf32> {{\n'
        "  %e = linalg.init_tensor [{2 * n}] : tensor<{2 * n}xf32>\n"
        '  return %e : tensor<{2 * n}xf32>\n}}\n"""\n'
    )
    ported = code.replace("func @", "func.func @").replace("linalg.init_tensor [{2 * n}]", "tensor.empty()")
    assert port_runtime(code) == ported


def port_runtime(code: str) -> str:
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="iree", files={"r.py": code}, steps=(("python", "r.py"),))
    done = port_testcase(testcase, "3.13.0", iree)
    return code if done is None else done.testcase.files["r.py"]


def test_an_instance_that_was_implied_is_that_of_the_only_configuration() -> None:
    """Other instances do not know its types."""
    code = "import iree.runtime as rt\ncfg = rt.Config('local-task')\nm = rt.VmModule.from_flatbuffer(blob)\n"
    assert "from_flatbuffer(cfg.vm_instance, blob)" in port_runtime(code)
    twice = code.replace("cfg =", "other = rt.Config('local-sync')\ncfg =")
    named = code.replace("(blob)", "(cfg.vm_instance, blob)")
    assert [port_runtime(text) for text in (twice, named)] == [twice, named]


@pytest.mark.parametrize(
    ("code", "ported"),
    [
        (
            "from iree.compiler import compile_str\nimport iree.compiler.api.driver\ncompile_str('')\n",
            "from iree.compiler import compile_str\npass\ncompile_str('')\n",
        ),
        (
            "import iree.compiler\nimport iree.compiler.api.driver\niree.compiler.compile_str('')\n",
            "import iree.compiler\npass\niree.compiler.compile_str('')\n",
        ),
        ("import iree.compiler.api.driver\niree.compiler.compile_str('')\n", None),
        ("import iree.compiler.api.driver as driver\ndriver.main()\n", None),
    ],
)
def test_an_import_of_a_module_that_is_gone_is_left_out_if_nothing_uses_it(code: str, ported: str | None) -> None:
    assert port_runtime(code) == (ported or code)


@pytest.mark.parametrize(
    ("code", "ported"),
    [
        ("from tvm import te, auto_scheduler, topi\nte.max\n", "from tvm import te, topi\nte.max\n"),
        ("import tvm\nfrom tvm import relay\ntvm.build\n", "import tvm\npass\ntvm.build\n"),
        ("from tvm import auto_scheduler as te, te\nte.max\n", None),
        ("from tvm import relay\ndef make():\n    return relay.var('x')\n", None),
    ],
    ids=["one-of-three", "alone", "another-binding", "used-in-a-function"],
)
def test_an_imported_name_that_is_gone_is_left_out_if_nothing_uses_it(code: str, ported: str | None) -> None:
    """The module is absent on that release, so its import has no effect there that could be lost."""
    done = port_testcase(python(code), "0.27.0", tvm)
    assert (done.testcase.files["r.py"] if done else None) == ported


def test_a_call_of_another_function_is_no_change_of_notation() -> None:
    done = port_testcase(python("import tvm\ntvm.compile(1)\n"), "0.17.dev0", tvm)
    assert done is not None


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3.3.0", ("--iree-hal-target-device=llvm-cpu",)),
        ("3.13.0", ("--iree-hal-target-device=hip", "--iree-hal-target-backends=llvm-cpu")),
        ("3.11.0", ("--iree-hal-target-device=llvm-cpu", "--iree-llvmgpu-enable-prefetch")),
        ("3.2.0", ("--iree-opt-level=O3",)),
    ],
)
def test_flags_that_work_and_flags_without_replacement_stay(version: str, words: tuple[str, ...]) -> None:
    """A testcase is ported as a whole or not at all."""
    assert port_testcase(command("iree-compile", *words, "m.mlir"), version, iree) is None


def test_an_operation_is_renamed_in_code_and_not_in_comments() -> None:
    """Only whole words are replaced, also in the generic syntax. A ``//`` in an attribute's string is no comment."""
    mlir = (
        '%0 = flow.dispatch.tensor.load %a {s = "// none"} : !flow.dispatch.tensor<4xf32> // flow.dispatch.tensor\n'
        '%1 = "flow.dispatch.tensor.load"(%a)\n'
        "%2 = myflow.dispatch.tensor.load %a, flow.dispatch.tensors\n"
    )
    done = port_testcase(command("iree-opt", "m.mlir", mlir=mlir), "3.5.0", iree)
    assert done is not None
    assert done.testcase.files["m.mlir"] == (
        '%0 = iree_tensor_ext.dispatch.tensor.load %a {s = "// none"} : !iree_tensor_ext.dispatch.tensor<4xf32>'
        " // flow.dispatch.tensor\n"
        '%1 = "iree_tensor_ext.dispatch.tensor.load"(%a)\n'
        "%2 = myflow.dispatch.tensor.load %a, flow.dispatch.tensors\n"
    )
    assert [s.where for s in done.substitutions] == ["m.mlir:1", "m.mlir:2"]
    back = port_testcase(done.testcase, "3.3.0", iree)
    assert back is not None
    assert back.testcase.files["m.mlir"] == mlir


@given(st.text(alphabet='a"/\\ \n.', max_size=80))
def test_mlir_without_the_name_stays(text: str) -> None:
    """Broken strings and comments do no harm."""
    assert port_words(text, ()) == (text, [])


# ---------------------------------------------------------------------------------------------- real releases


@pytest.fixture(scope="module")
def store() -> Store:
    return open_store()


PRELOAD = "import tvm as _\n0\n"
"""Lines before each program, so that all programs of a release have the same leading imports: each program runs in a
fork of one zygote, and only the zygote imports TVM. The name ``_`` hides no import that a port forgets."""
FORKED = Conditions(scripts=True, fork=True)


def run_all(store: Store, version: str, testcases: dict[str, Testcase]) -> dict[str, ProbeResult]:
    """Run programs one after another, each in a fork of a clean zygote."""
    engine, limits = select_engine("auto"), Limits()
    if not isinstance(engine, SessionEngine):
        pytest.skip(f"{engine.name} keeps no session")
    environment = store.get_environment(load_catalogue().find("tvm", version))
    waiting, seen = list(testcases), dict[str, ProbeResult]()
    while waiting:
        with open_probe_session(engine, make_layout(environment), limits=limits, run_id=make_name()) as session:
            while waiting and not session.spent:
                name = waiting.pop(0)
                files = {file: PRELOAD + text for file, text in testcases[name].files.items()}
                testcase = msgspec.structs.replace(testcases[name], files=files)
                seen[name] = session.run(make_task(environment, testcase, limits, conditions=FORKED))
    return seen


def promised(name: str) -> list[str]:
    return PROGRAMS[name].splitlines()[1].removeprefix("# prints: ").split(" | ")


def printed(seen: ProbeResult) -> list[str]:
    return seen.steps[-1].stdout.strip().splitlines() if seen.ended == Exited(code=0) else []


@pytest.mark.compilers
@pytest.mark.sandbox
def test_ports_to_the_oldest_build_compute_the_same_results(store: Store) -> None:
    """Programs of the newest names, of the oldest, and of Relay's functions until 0.6."""
    names = ("call-tir", "new-call-tir", "tir-matmul-sched", "target-cli", "gone-relay-functions")
    ported_programs = {name: port_testcase(python(PROGRAMS[name]), "0.17.dev0", tvm) for name in names}
    testcases = {name: done.testcase if done else python(PROGRAMS[name]) for name, done in ported_programs.items()}
    seen = run_all(store, "0.17.dev0", testcases)
    assert {name: printed(one) for name, one in seen.items()} == {name: promised(name) for name in names}


@pytest.mark.compilers
@pytest.mark.sandbox
@pytest.mark.parametrize("version", ["0.25.0.post1", "0.27.0.post1"])
def test_nine_in_ten_programs_run_ported(store: Store, version: str) -> None:
    """In the names of 0.17 … 0.27: a program fails only if a name has no replacement, and no result changes.

    Which names a release between them has, `test_drift_matches_the_wheels` reads off its wheel.
    """
    ported_programs = {name: port_testcase(python(text), version, tvm) for name, text in PROGRAMS.items()}
    testcases = {name: done.testcase if done else python(PROGRAMS[name]) for name, done in ported_programs.items()}
    seen = run_all(store, version, testcases)
    assert not {name: printed(s) for name, s in seen.items() if printed(s) and printed(s) != promised(name)}
    failed = {name for name, s in seen.items() if not printed(s)}
    assert failed <= {"gone-relay", "gone-relay-functions", "gone-schedule", "visit"}
    assert len(failed) <= len(PROGRAMS) / 10


def test_a_call_of_2021_is_ported_to_the_builds_of_2023() -> None:
    """They lack the program's old name, the switch that every call had, and the backend's old name."""
    steps = (
        ("iree-translate", "-iree-mlir-to-vm-bytecode-module", "-iree-hal-target-backends=dylib-llvm-aot", "a.mlir"),
        ("iree-run-module", "--module_file=a.vmfb", "--entry_function=f", "--driver=dylib"),
    )
    files = {"a.mlir": "func @f() -> i32 {\n  %c = constant 4 : i32\n  return %c : i32\n}\n"}
    testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files=files, steps=steps)
    done = port_testcase(testcase, "20230209.425", iree)
    assert done is not None
    assert done.is_notation_only
    assert done.testcase.steps == (
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "a.mlir"),
        ("iree-run-module", "--module=a.vmfb", "--function=f", "--device=local-task"),
    )
    assert done.testcase.files["a.mlir"].startswith("func.func @f() -> i32 {\n  %c = arith.constant 4 : i32\n")


@pytest.mark.parametrize(
    ("triple", "target"),
    [("rdna3-7900-linux", "rdna3"), ("ampere-rtx3090-windows", "rtx3090"), ("valhall-unknown-unknown", "valhall")],
)
def test_a_target_triple_of_vulkan_becomes_the_chip_or_its_family(triple: str, target: str) -> None:
    steps = (("iree-compile", "--iree-hal-target-backends=vulkan", f"-iree-vulkan-target-triple={triple}", "a.mlir"),)
    files = {"a.mlir": "func.func @f() {\n  return\n}\n"}
    testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files=files, steps=steps)
    done = port_testcase(testcase, "3.13.0", iree)
    assert done is not None
    assert done.testcase.steps[0][2] == f"--iree-vulkan-target={target}"


REJECTED = """\
iree-opt: Unknown command line argument '{old}'.  Try: '/opt/env/site/iree/compiler/_mlir_libs/iree-opt --help'
iree-opt: Did you mean '--{new}'?
"""


def port_rejected(old: str, new: str) -> Ported | None:
    """Port a call whose flag ``old`` a release rejects, and proposes ``new``."""
    said = REJECTED.format(old=old.partition("=")[0], new=new)
    return port_testcase(command("iree-opt", "m.mlir", old, mlir="module {}"), "3.13.0", iree, said)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("-canonicalizer", "canonicalize", "--canonicalize"),
        ("--iree-codegen-canonicalise", "iree-codegen-canonicalize", "--iree-codegen-canonicalize"),
        ("--linalg-fold-unit-extend-dims=x", "linalg-fold-unit-extent-dims", "--linalg-fold-unit-extent-dims=x"),
    ],
)
def test_a_misspelt_flag_runs_as_the_tool_proposes(old: str, new: str, word: str) -> None:
    """The value of the flag stays. The comment shows both names."""
    done = port_rejected(old, new)
    assert done is not None
    assert done.testcase.steps == (("iree-opt", "m.mlir", word),)
    assert [one.new for one in done.substitutions] == [f"--{new}"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--iree-hip-target", "iree-cuda-target"),
        ("--iree-llvmgpu-prefetch-num-stages", "iree-llvmgpu-prefetch-num-stage"),
        ("--tosa-to-arith-v1", "tosa-to-arith-v2"),
        ("--frobnicate", "help"),
    ],
)
def test_another_flag_is_no_misspelling(old: str, new: str) -> None:
    """Flags of other targets, releases and numbers do something else."""
    done = port_rejected(old, new)
    assert done is None or f"--{new}" not in done.testcase.steps[0]
