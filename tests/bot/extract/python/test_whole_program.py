"""A repair removes only text that does not parse; other text that may be code is recorded when it is left out."""

from __future__ import annotations

import pytest

from bot.extract import extract
from bot.extract.types import DROP_CODE, NoRepro, Repro
from bot.verdict.judge import judge_without_running
from bot.verdict.verdict import VerdictKind
from tests.bot.extract.reading import extract_repro, list_missing, list_repairs, make_issue

HEAD = "import tvm\nimport numpy as np\nvalue = int(np.int32(3))\nprint(value)\n"


def fence(code: str) -> str:
    return f"tvm fails.\n\n```python\n{code}```\n"


@pytest.mark.parametrize(
    "tail",
    [
        "raise ValueError(value)\n",
        "match value:\n    case 3:\n        raise ValueError(value)\n",
        "async def check():\n    assert value == 4\n",
        "count: int = value // 0\n",
        "del value\n",
        "print(value)[0]\n",
        "tvm.check(value) == 4\n",
        "not tvm.check(value)\n",
        "tvm.check(value).shape\n",
        "async def check():\n    assert value\n\nimport asyncio\nasyncio.run(check())\ndel value\n",
    ],
)
def test_every_statement_stays_in_the_program(tail: str) -> None:
    """A last statement of any kind is code, in a fence and below an unfenced program."""
    found = extract_repro(fence(HEAD + tail))
    assert found.testcase.files["repro.py"] == HEAD + tail
    assert not found.left_out
    unfenced = extract_repro(f"tvm fails.\n\n{HEAD}{tail}\nThat is all.\n")
    assert unfenced.testcase.files["repro.py"].strip() == (HEAD + tail).strip()
    assert not unfenced.left_out


@pytest.mark.parametrize("first", ["raise ValueError(1)\n", "flag: bool = True\n", "async def a():\n    pass\n"])
def test_statements_before_the_first_import_stay(first: str) -> None:
    """A program may begin with any statement."""
    assert extract_repro(fence(first + HEAD)).testcase.files["repro.py"] == first + HEAD


def test_code_that_parses_as_a_whole_stays_whole() -> None:
    """The parser decides what a statement is, not the scanner for damaged text."""
    code = (
        'import tvm\ntext = f(\n"""\nTraceback (most recent call last):\n""",\nx\n)\n'
        'print(\nprint("a"))\nraise Odd(text)\n'
    )
    found = extract_repro(fence(code))
    assert found.testcase.files["repro.py"] == code
    assert list_repairs(found) == []


@pytest.mark.parametrize(
    "lost",
    [
        "other.missing\n",
        "other[3]\n",
        "Output: it prints\nassert value == 4\n",
        "-----\nimport os\nvalue += 1\nassert value == 4\n",
    ],
)
def test_code_that_is_left_out_is_recorded(lost: str) -> None:
    """Text behind output may be code or more output. Whoever reads the result learns of it."""
    found = extract_repro(fence(HEAD + lost))
    assert found.left_out
    assert DROP_CODE in list_repairs(found)


@pytest.mark.parametrize(
    "output",
    [
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nValueError: no\n',
        "3\n",
        "True\n[1, 2, -3.5]\n",
        "done\n",
        "Device: cpu\n",
        "Output:\n[[1 2]\n [3 4]]\n",
        "error: 3 of 4 elements differ\n",
    ],
)
def test_output_below_the_code_is_no_lost_code(output: str) -> None:
    """Words, numbers and text that does not parse change nothing about the program."""
    found = extract_repro(fence(HEAD + output))
    assert found.testcase.files["repro.py"].strip() == HEAD.strip()
    assert not found.left_out


def test_a_magic_that_runs_code_is_lost_code() -> None:
    """``%timeit f(x)`` runs the reporter's code; ``!pip install`` only prepares the machine."""
    assert extract_repro(fence("import tvm\ntvm.a()\n%timeit tvm.b()\ntvm.c()\n")).left_out
    assert not extract_repro(fence("!pip install apache-tvm\nimport tvm\ntvm.a()\n")).left_out
    assert not extract_repro(fence("%matplotlib inline\nimport tvm\ntvm.a()\n")).left_out


@pytest.mark.parametrize("damaged", ["raise ValueError(value\n", "del value value\n", "match value!:\n"])
def test_damaged_code_is_no_output(damaged: str) -> None:
    """Code that does not parse stays, so that the program fails instead of running cleanly without it."""
    assert damaged.strip() in extract_repro(fence(HEAD + damaged)).testcase.files["repro.py"]


@pytest.mark.parametrize("below", ["raise ValueError(value\n", "\nThen I check it.\n\nassert value == 4\n"])
def test_an_unfenced_program_that_goes_on_is_recorded(below: str) -> None:
    """Prose and damaged code end an unfenced program; code below them was left out."""
    assert extract_repro(f"tvm fails.\n\n{HEAD}{below}").left_out


@pytest.mark.parametrize(
    "below", ["\nThanks\n", "\nIt prints 4, with any target.\n", "\n## Environment\n\nOS = Linux\n"]
)
def test_prose_below_an_unfenced_program_is_no_code(below: str) -> None:
    """The rest of an issue is no part of the program."""
    assert not extract_repro(f"tvm fails.\n\n{HEAD}{below}").left_out


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("print(“a”\uff0c value)\n", 'print("a", value)\n'),
        ("if value\uff1a\n    raise ValueError\uff08value\uff09\n", "if value:\n    raise ValueError(value)\n"),
        ("value\u3000=\u3000tvm.check(‘x’)\n", "value = tvm.check('x')\n"),
    ],
)
def test_punctuation_of_other_keyboards_does_not_end_an_unfenced_program(written: str, plain: str) -> None:
    """Only a statement that needs plain punctuation gets it. Strings and comments keep theirs."""
    kept = 'print("\u597d\uff0c“a”")  # \uff1a\n'
    found = extract_repro(f"\u4ee3\u7801\u5982\u4e0b\uff1a\n\n{HEAD}{kept}{written}\n\u8bf7\u95ee\uff1f\n")
    assert found.testcase.files["repro.py"].strip() == (HEAD + kept + plain).strip()
    assert "straighten-quotes" in list_repairs(found)
    assert not found.left_out


ROWS = (
    "A = tvm.placeholder((4,), name='A')\nB = tvm.compute((4,), lambda i: A[i] * 2)\ns = tvm.create_schedule(B.op)\n"
)


def test_rows_that_call_the_compiler_are_a_program_in_a_text_without_a_fence() -> None:
    """As people wrote in the first years: no fence, no import. What is not given is asked for."""
    found = extract_repro(f"A test of mine:\n{ROWS}tvm.build(s, [A, B])\nError: Check failed : x == 1 (0 vs. 1) no\n")
    assert found.testcase.files["repro.py"] == f"import tvm\n{ROWS}tvm.build(s, [A, B])\n"
    assert found.claim.signature is not None
    assert list_missing(extract_repro(f"It fails:\n{ROWS.replace('4,', 'n,')}tvm.build(s, [A, B])\n")) == [
        ("name", "n")
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"It fails.\n\n```\nsome log\n```\n\nThe library has\n{ROWS}\n",
        "Call\ntvm.build(s, args)\nand then\nfunc(a, b)\n",
        "Neither `relay.build(mod, target)` nor `tvm.cpu` works in tvm.\n",
        "Either `tvm.cpu(0)` or `tvm.device('cpu', 0)` should work in tvm.\n",
    ],
)
def test_other_rows_and_spans_are_no_program(text: str) -> None:
    """Rows beside a fence, fewer rows, a span that needs another name, two spans."""
    found = extract(make_issue(text))
    assert isinstance(found, NoRepro) or not found.testcase.files


def test_the_only_whole_call_of_a_text_is_run() -> None:
    """What stands around it may be code too, so a clean run decides nothing."""
    found = extract_repro("With tvm 0.8, `x = relay.Wrong({})` ends with AttributeError.\n")
    assert found.testcase.files["repro.py"] == "from tvm import relay\nx = relay.Wrong({})\n"
    assert found.left_out


DEFINITION = """from tvm.script import relax as R
from tvm.script import ir as I

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x
"""


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("Segfault while parsing a module", "Segmentation fault (core dumped)"),
        ("Crash with a module", "error: no len()\n --> repro.py:7:12\n    |\nSegmentation fault (core dumped)"),
    ],
)
def test_a_definition_that_the_parser_refuses_is_a_program(title: str, said: str) -> None:
    """The compiler parses a decorated definition when the script is loaded: nothing has to use the definition."""
    found = extract_repro(f"tvm: {title}.\n\n```python\n{DEFINITION}```\n\n```\n{said}\n```\n")
    assert not found.missing
    assert found.only_defines


@pytest.mark.parametrize(
    ("told", "complete"),
    [("A segmentation fault occurs when executing the following script.", True), ("It segfaults.", False)],
)
def test_a_definition_that_crashes_when_the_script_runs_is_a_program(told: str, complete: bool) -> None:
    """The text says that the script as it stands crashes. Another crash may need a use of the definition."""
    found = extract_repro(f"{told}\n\n```python\n{DEFINITION}```\n", "[Bug] tvm crashes")
    assert (not found.missing) is complete


def test_a_plain_definition_needs_its_driver() -> None:
    found = extract_repro(
        "tvm crashes.\n\n```python\nimport tvm\n\ndef build(mod):\n    return tvm.build(mod)\n```\n"
    )
    assert [entry.kind for entry in found.missing] == ["code"]
    assert not found.only_defines


@pytest.mark.parametrize(
    "before", ["Expected it to just work.", "I expected this to work fine:", "It should simply run without error."]
)
def test_a_hope_before_the_program_does_not_call_it_the_working_one(before: str) -> None:
    """A block is a working variant only if the text says that it works, not that it should."""
    other = "```python\ndef load(path):\n    return parse(path)\n\n\nmodule = load(config.path)\n```"
    found = extract_repro(f"{before}\n\n{fence(HEAD)}\n\nI normally use a wrapper around this:\n\n{other}\n")
    assert found.testcase.files["repro.py"] == HEAD


def test_a_program_that_never_calls_the_compiler_is_no_testcase() -> None:
    """How another framework behaves shows nothing about this compiler."""
    body = "Wrong shape from tvm.relax for:\n\n```python\nimport numpy as np\nprint(np.zeros((2, 3)).sum(0))\n```\n"
    found = extract(make_issue(body, "[Bug][Relax] sum has the wrong shape"))
    assert isinstance(found, NoRepro)
    assert "never calls the compiler" in found.reason
    assert list_missing(found) == [("call", "the code that calls the compiler")]
    verdict = judge_without_running(found)
    assert verdict is not None
    assert verdict.kind is VerdictKind.INCOMPLETE
    helped = extract(make_issue(body.replace("import numpy as np\n", "import numpy as np\nimport my_helpers\n")))
    assert isinstance(helped, Repro)
    assert [one.name for one in helped.missing] == ["my_helpers"]
    called = body.replace("import numpy as np\n", "import numpy as np\nimport tvm\n")
    assert isinstance(extract(make_issue(called, "[Bug][Relax] sum has the wrong shape")), Repro)


HYBRID = """import tvm

@tvm.hybrid.script
def double(a):
    total = allocate((1,), a.dtype, "local")
    out = output_tensor(a.shape, a.dtype)
    for i in parallel(a.shape[0]):
        total[0] = a[i]
        out[i] = total[0] + total[0]
    return out

print(double(tvm.placeholder((4,), {shown})))
"""


def extract_fenced(code: str) -> Repro | NoRepro:
    return extract(make_issue(fence(code)))


def test_names_that_a_language_defines_are_not_asked_for() -> None:
    """Python never looks up the names in a function that the compiler reads as a text."""
    assert list_missing(extract_fenced(HYBRID.format(shown='"float32"'))) == []
    assert list_missing(extract_fenced(HYBRID.format(shown="DTYPE"))) == [("name", "DTYPE")]
    assert ("name", "allocate") in list_missing(
        extract_fenced(HYBRID.format(shown='"x"').replace("@tvm.hybrid.script\n", ""))
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import tilelang\n\ntilelang.compile(None)\n", VerdictKind.UNTESTABLE),
        (
            "import tilelang.language as T\n\n@T.prim_func\ndef f(x: T.Buffer([32], 'int32')):\n    pass\n",
            VerdictKind.UNTESTABLE,
        ),
        ("import torch\n\nprint(torch.ones(2))\n", VerdictKind.INCOMPLETE),
    ],
)
def test_a_program_of_another_product_is_not_asked_for_parts(code: str, kind: VerdictKind) -> None:
    """The product has a compiler of its own. A framework has none."""
    verdict = judge_without_running(
        extract(make_issue(f"It crashes.\n\n```python\n{code}```\n", "[Bug] tvm crashes"))
    )
    assert verdict is not None
    assert verdict.kind is kind


def test_a_program_that_calls_the_compiler_beside_a_product_is_one_of_the_compiler() -> None:
    found = extract(make_issue(fence("import tvm\nimport tilelang\n\nprint(tvm.__version__)\n")))
    assert isinstance(found, Repro)


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("python tests/python/relay/test_op_level1.py", "tests/python/relay/test_op_level1.py"),
        ("python3 -m pytest -v ~/tvm/tests/python/unittest/test_x.py::test_y", "tests/python/unittest/test_x.py"),
        ("$ TVM_LOG=1 pytest ../tests/python/test_z.py", "tests/python/test_z.py"),
        ("Run `python vta/tutorials/matrix.py` on the board.", "vta/tutorials/matrix.py"),
    ],
)
def test_a_script_of_the_source_tree_is_named_and_not_asked_for(command: str, script: str) -> None:
    """No wheel contains the script, so no answer of the reporter about it lets a release run it."""
    text = f"It crashes with TVM 0.6.\n\n```\n{command}\n```\n\n```\nSegmentation fault (core dumped)\n```\n"
    verdict = judge_without_running(extract(make_issue(text, "[Bug] tvm crashes")))
    assert verdict is not None
    assert verdict.kind is VerdictKind.UNTESTABLE
    assert f"`{script}`" in verdict.headline


@pytest.mark.parametrize("command", ["python repro.py", "python my/tests/repro.py", "pytest -k x", "python apps.py"])
def test_the_reporters_own_script_is_asked_for(command: str) -> None:
    text = f"It crashes with TVM 0.6.\n\n```\n{command}\n```\n\n```\nSegmentation fault (core dumped)\n```\n"
    verdict = judge_without_running(extract(make_issue(text, "[Bug] tvm crashes")))
    assert verdict is not None
    assert verdict.kind in (VerdictKind.NO_REPRO, VerdictKind.INCOMPLETE)


def test_a_program_that_reaches_the_compiler_through_another_package_is_out_of_reach() -> None:
    """The quoted stack shows the way. Without it, the compiler has no part in the program."""
    program = "```python\nimport jax.numpy as jnp\nprint(jnp.linalg.inv(jnp.ones((2, 2))))\n```\n"
    stack = """```
Traceback (most recent call last):
  File "/x/lib/python3.10/site-packages/jax/_src/iree.py", line 186, in compile
  File "/x/lib/python3.10/site-packages/iree/compiler/tools/core.py", line 278, in compile_str
RuntimeError: failed to legalize operation 'mhlo.triangular_solve'
```
"""
    issue = make_issue(program + stack, "[JAX + IREE] inv fails to legalize", repository="iree-org/iree")
    found = extract(issue)
    assert isinstance(found, NoRepro)
    assert "through `jax`" in found.reason
    verdict = judge_without_running(found)
    assert verdict is not None
    assert verdict.kind is VerdictKind.UNTESTABLE
    named = make_issue(program.replace("jnp\n", "jnp  # JAX_PLATFORMS=iree_cpu\n", 1), repository="iree-org/iree")
    by_comment = extract(named)
    assert isinstance(by_comment, NoRepro)
    assert "through `jax`" in by_comment.reason


def test_a_whole_script_is_the_program_whatever_the_words_above_it() -> None:
    """Words such as "get" announce output elsewhere. The row of printed code below the script is output."""
    script = "import tvm\nfrom tvm import te\n\nA = te.placeholder((4,), name='A')\nprint(te.create_prim_func([A]))\n"
    found = extract_repro(
        f"It uses the fast functions, with no option to get the precise ones:\n\n```python\n{script}```\n\n"
        'The last line of the body:\n\n```\nB[v_i] = T.call_pure_extern("float32", "__expf", A[v_i])\n```\n\n'
        "I would expect `expf` here.\n",
        "tvm lowers exp to the wrong function",
    )
    assert not found.missing
    assert "create_prim_func" in found.testcase.files["repro.py"]
    assert found.claim.actual == 'B[v_i] = T.call_pure_extern("float32", "__expf", A[v_i])'


UNDEFINED = """import tvm
from tvm.script import tir as T

@T.prim_func
def f(a: T.int32):
    T.evaluate(a * scale)
print(f)
"""


@pytest.mark.parametrize(
    ("said", "lacks"), [("Undefined variable: scale", []), ("Check failed: n", [("name", "scale")])]
)
def test_a_name_that_the_quoted_error_calls_undefined_is_not_asked_for(
    said: str, lacks: list[tuple[str, str]]
) -> None:
    """The report is about that error."""
    text = f"It points at the wrong line:\n\n```python\n{UNDEFINED}```\n\n```\nerror: {said}\n --> a.py:2\n```\n"
    assert list_missing(extract_repro(text)) == lacks
