"""A comparison with a separate computation is a reference; a comparison with literals is the report's own claim."""

from __future__ import annotations

import pytest

from bot.extract.python.reference.own_reference import computes_reference, prints_reference
from runners.core.protocol import Testcase, TestcaseKind

HEAD = """\
import numpy as np
import tvm
from tvm import relax
x = np.arange(6).astype("float32")
vm = relax.VirtualMachine(tvm.compile(Module, "llvm"), tvm.cpu())
out = vm["main"](tvm.runtime.tensor(x)).numpy()
"""


def make_testcase(text: str) -> Testcase:
    return Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": text}, steps=(("python", "a.py"),))


@pytest.mark.parametrize(
    "check",
    [
        "np.testing.assert_allclose(out, np.cumsum(x))",
        "want = np.maximum(x, 0)\nassert (out == want).all()",
        "def softmax(v):\n    e = np.exp(v - v.max())\n    return e / e.sum()\nassert np.allclose(out, softmax(x))",
        "ref = x.copy()\nfor i in range(6):\n    ref[i] = x[i] * 2\nnp.testing.assert_array_equal(out, ref)",
        "def build(n):\n    x = relax.Var('x')\n    return relax.VirtualMachine(tvm.compile(x), tvm.cpu())\n"
        "got = build(4)['main'](x).numpy()\nnp.testing.assert_allclose(got, np.square(x))",
        "np.testing.assert_allclose(out, x.max(axis=0))",
        "want = np.abs(x)\nassert np.allclose(out, want)",
        "x = relax.Var('x')\nM = build(x)\nx = np.arange(4) / 10\nnp.testing.assert_allclose(\n"
        "    relax.VirtualMachine(tvm.compile(M), tvm.cpu())['main'](x).numpy(), np.tril(x))",
        "with tvm.target.Target('llvm'):\n    x = relax.Var('x')\nx = np.eye(3)\nassert (out == np.tril(x)).all()",
        "import torch\nif not torch.allclose(torch.from_numpy(out), torch.nn.functional.gelu(torch.from_numpy(x))):\n"
        "    raise SystemExit(1)",
    ],
)
def test_a_separate_computation_is_a_reference(check: str) -> None:
    assert computes_reference(make_testcase(HEAD + check))


@pytest.mark.parametrize(
    "check",
    [
        "assert out[1] == 3",
        "np.testing.assert_allclose(out, np.array([1, 2, 3, 4, 5, 6], 'float32'))",
        "assert np.isnan(out[1])",
        "want = [1.0] * 6\nassert out.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]",
        "other = vm['main'](tvm.runtime.tensor(x + 1)).numpy()\nnp.testing.assert_allclose(out, other)",
        "print(out, np.cumsum(x))",
        "want = [1.0, 2.0]\nassert out.max() == max(want)",
        "want = np.square(x)\nwant = vm['main'](want).numpy()\nassert (out == want).all()",
        "want = np.square(x)\nfor i in range(3):\n    assert (out == want).all()\n    want = vm['main'](x)",
        "assert len(out) == len(x)",
        "assert out.shape == (6,)",
        "this is no Python",
        "x = " + "-" * 3000 + "1",
    ],
)
def test_literals_and_the_compiler_itself_are_no_reference(check: str) -> None:
    assert not computes_reference(make_testcase(HEAD + check))


@pytest.mark.parametrize(
    "shown",
    [
        "print(out)\nprint(np.sort(x))",
        "print(np.sort(x), out)",
        "print('numpy', np.sort(x))\nprint(f'tvm {out}')",
        "ref = np.square(x)\nprint('got:', out.tolist())\nprint('want:', ref.tolist())\n"
        "print(np.abs(out - ref).max())",
        "def sort(v):\n    return relax.VirtualMachine(tvm.compile(v))['main'](v)\nprint(sort(x))\nprint(np.sort(x))",
        "print(x)\nprint(out)\nprint(x.max(axis=0))",
    ],
)
def test_a_result_and_a_reference_may_be_printed_together(shown: str) -> None:
    """The reader is to compare the last two printed values, whatever literal text stands beside them."""
    assert prints_reference(make_testcase(HEAD + shown))


@pytest.mark.parametrize(
    "shown",
    [
        "print(out)",
        "print(x)\nprint(out)",
        "print(out)\nprint([1.0, 2.0])",
        "print(out)\nprint(vm['main'](np.square(x)))",
        "print(out)\nprint(np.sort(x))\nprint(out.dtype)",
        "for i in range(2):\n    print(out)\n    print(np.sort(x))",
        "print(out)\nprint(np.sort(x))\nfor row in out:\n    print(row)",
        "ref = np.square(x)\nprint(ref)\nprint(out - ref)",
        "this is no Python",
    ],
)
def test_other_printed_values_are_no_pair(shown: str) -> None:
    """Inputs, literals, and differences of the two say nothing, and values behind the two hide them."""
    assert not prints_reference(make_testcase(HEAD + shown))
