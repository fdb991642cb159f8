"""Whether running to its end is evidence: the checks that a testcase makes of its own result."""

from __future__ import annotations

import pytest

from bot.extract.python.reference.own_checks import has_own_check
from runners.core.protocol import Testcase, TestcaseKind


def checks_itself(code: str) -> bool:
    return has_own_check(
        Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": code}, steps=(("python", "a.py"),))
    )


@pytest.mark.parametrize(
    ("code", "checks"),
    [
        ("assert x == 1", True),
        ("np.testing.assert_allclose(a, b)", True),
        ("tvm.ir.assert_structural_equal(a, b)", True),
        ("class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(a, b)", True),
        ("class T(unittest.TestCase):\n    def test(self):\n        self.assertTrue(ok)", True),
        ("class T(unittest.TestCase):\n    def test(self):\n        self.fail('no error')", True),
        ("with pytest.raises(ValueError):\n    build()", True),
        ("with raises(ValueError):\n    build()", True),
        ("print(np.allclose(a, b))", False),
        ("def broken(:", False),
    ],
)
def test_an_assertion_is_a_check(code: str, checks: bool) -> None:
    """The statement, NumPy's and the compilers' functions, unittest's methods and pytest's."""
    assert checks_itself(code) is checks


@pytest.mark.parametrize(
    ("code", "checks"),
    [
        ("sys.exit(0 if np.allclose(a, b) else 1)", True),
        ("raise SystemExit(0 if np.allclose(a, b) else 1)", True),
        ("if bad:\n    sys.exit(1)", True),
        ("if bad:\n    raise SystemExit(1)", True),
        ("def main():\n    return int(bad)\n\nsys.exit(main())", True),
        ("def main():\n    return int(bad)\n\nraise SystemExit(main())", True),
        ("def main():\n    print(a)\n\nsys.exit(main())", False),
        ("def main():\n    print(a)\n\nraise SystemExit(main())", False),
        ("sys.exit(0)", False),
        ("raise SystemExit", False),
    ],
)
def test_a_script_that_ends_by_its_result_has_its_own_check(code: str, checks: bool) -> None:
    assert checks_itself(code) is checks


@pytest.mark.parametrize(
    "code",
    [
        "if not np.allclose(a, b):\n    raise RuntimeError('they differ')",
        "if np.abs(a - b).max() > 1e-3:\n    raise ValueError(a)",
        "if quiet:\n    pass\nelif a != b:\n    raise Mismatch",
        "if (a - b).any():\n    raise RuntimeError",
        "if np.isnan(out).any():\n    raise RuntimeError",
        "ok = np.allclose(a, b)\nif not ok:\n    raise RuntimeError",
        "bad = 0\nfor a in out:\n    bad |= a != 1\nif bad:\n    raise RuntimeError",
        "if out.shape != (1, 2):\n    raise RuntimeError(out.shape)",
        "if a != b:\n    if verbose:\n        raise RuntimeError",
        "if 'vectorized' not in str(module):\n    raise RuntimeError('nothing is vectorized')",
        "def check(got, want):\n    if got != want:\n        raise ValueError(got)",
        "def check(difference):\n    if difference > 1e-3:\n        raise ValueError(difference)",
        "def main(n):\n    out = run(n)\n    if out != 3:\n        raise RuntimeError(out)",
        "try:\n    build()\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError('no error')",
    ],
)
def test_an_exception_where_results_differ_is_a_check(code: str) -> None:
    """Without the exception the results agree."""
    assert checks_itself(code)


@pytest.mark.parametrize(
    "code",
    [
        "def helper():\n    raise NotImplementedError",
        "class Pass:\n    def run(self):\n        if self.kind != 'x':\n            raise NotImplementedError",
        "try:\n    build()\nexcept ValueError as error:\n    raise RuntimeError('it fails') from error",
        "try:\n    build()\nexcept ValueError:\n    if out != 3:\n        raise",
        "if __name__ == '__main__':\n    raise RuntimeError('it fails')",
        "if len(sys.argv) < 2:\n    raise RuntimeError('usage: a.py FILE')",
        "if tvm.__version__ < '0.9':\n    raise RuntimeError('too old')",
        "if target is None:\n    raise RuntimeError('no target')",
        "if not isinstance(x, int):\n    raise ValueError(x)",
        "if 'llvm' not in targets:\n    raise RuntimeError('no LLVM')",
        "if fast:\n    raise RuntimeError",
        "def limit(n):\n    if n > 3:\n        raise QuotaError('too many')\n    return n",
        "def multiply(a, b):\n    if a.shape[1] != b.shape[0]:\n        raise ValueError('shapes')",
        "def multiply(a, b):\n    if len(a) != len(b):\n        raise ValueError('lengths')",
        "def build(mode):\n    if mode == 'fast':\n        raise ValueError(mode)",
        "def outer(n):\n    def inner(k):\n        if n + k == 3:\n            raise ValueError(n)",
        "if a != b:\n    def helper():\n        raise ValueError",
    ],
)
def test_any_other_exception_is_no_check(code: str) -> None:
    """A program that refuses an argument, or passes an error on, says nothing about its result when it ends well."""
    assert not checks_itself(code)


@pytest.mark.timeout(20)
def test_a_long_condition_is_read_once() -> None:
    """Also if many exceptions stand below it, of which none is a check."""
    condition = " or ".join(["flag(a is None)"] * 4000)
    assert not checks_itself(f"if {condition}:\n" + "    raise TypeError\n" * 8000)


def test_a_command_that_compares_its_output_has_a_check() -> None:
    """`iree-run-module --expected_output=…` fails if they differ."""
    step = ("iree-run-module", "--module=a.vmfb", "--expected_output=1xf32=3")
    for steps, checks in [((step,), True), ((step[:2],), False)]:
        testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"a.mlir": ""}, steps=steps)
        assert has_own_check(testcase) is checks
