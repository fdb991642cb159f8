"""A text that reports no failure is recognised as such, and a failure report never is."""

from __future__ import annotations

from datetime import date

import pytest

from bot.extract import extract
from bot.extract.types import Intent
from bot.issue import Issue
from bot.verdict.judge import judge_without_running
from bot.verdict.verdict import VerdictKind
from tests.corpus.cases import cases

TRACE = """```
Traceback (most recent call last):
  File "a.py", line 3, in <module>
tvm.error.InternalError: Check failed: (n > 0) is false: no axis
```"""

LINKED = """```mlir
func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = math.exp %x : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
```

```
iree-compile a.mlir --iree-hal-target-backends=llvm-cpu -o a.vmfb
```

```
ld.lld: error: undefined symbol: __truncsfbf2
```"""


FROM_CHECKOUT = """```
git pull && git submodule update --init
mkdir -p build && cd build && cmake .. && make -j8 && cd ..
cd python && pip install .
python -c "import tvm"
```

```
RuntimeError: Cannot find libraries: ['libtvm.so']
```"""

WARNED = """```
In member function 'virtual void ConfigPass::run()':
error: storing the address of local variable 'listener' [-Werror=dangling-pointer=]
cc1plus: all warnings being treated as errors
```"""

EXPORTED = """Writing the module to a file fails:
```
Traceback (most recent call last):
  File "save.py", line 9, in <module>
    built.export_library("out/adder")
  File "/opt/src/python/tvm/runtime/module.py", line 311, in export_library
    return fcompile(file_name, files, **kwargs)
  File "/opt/src/python/tvm/contrib/cc.py", line 77, in create_shared
    _linux_compile(output, objects, options, cc, cwd)
RuntimeError: Compilation error:
/usr/bin/ld: /tmp/t/devc.o: in function `__tvm_ffi_main':
devc.c:(.text+0x9): undefined reference to `fusedadd_'
collect2: error: ld returned 1 exit status
```"""

GENERATED = """```
  File "/venv/lib/python3.10/site-packages/tvm/contrib/popen_pool.py", line 12, in worker
  File "/venv/lib/python3.10/site-packages/tvm/support/cc.py", line 190, in _linux_compile
RuntimeError: Compilation error:
/tmp/tmpq/lib0.c:41:7: error: redefinition of 'acc'
```"""

BUILT = """```
[ 71%] Linking CXX shared library libtvm.so
/usr/bin/ld: libcore.a(device.o): undefined reference to `dlopen'
collect2: error: ld returned 1 exit status
```"""

UNLOADABLE = """I moved the scheduler to a file of its own and rebuilt the project. Then
```python
import tvm
```
ends with
```
Traceback (most recent call last):
  File "/home/ida/src/tvm/python/tvm/__init__.py", line 9, in <module>
    from . import runtime
  File "/usr/lib/python3.9/ctypes/__init__.py", line 374, in __init__
    self._handle = _dlopen(self._name, mode)
OSError: /home/ida/src/tvm/build/libtvm.so: undefined symbol: _ZN3tvm3tir8SplitAllENS0_4StmtE
```"""

INSTALLED = UNLOADABLE.replace("/home/ida/src/tvm/build/", "/venv/lib/python3.9/site-packages/tvm/lib/")
INSTALLED = INSTALLED.replace("I moved the scheduler to a file of its own and rebuilt the project. Then", "Today")

TEMPLATE = """### What happened?

Only a small question, and not a bug: may one thread own two devices?

### Steps to reproduce your issue

1. Go to '...'
2. See error"""

PACKAGED = """```
Traceback (most recent call last):
  File "/home/u/tvm/python/setup.py", line 88, in <module>
  File "/usr/lib/python3/dist-packages/setuptools/__init__.py", line 108, in setup
RuntimeError: error: command 'g++' failed
tvm/_ffi/_cython/core.cpp:712:10: fatal error: dlpack.h: No such file or directory
```"""


WISHED = """### Request description

SAYS

```mlir
func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = math.exp %x : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
```

Command:

```
iree-compile a.mlir --iree-hal-target-backends=llvm-cpu -o a.vmfb
```"""


@pytest.mark.parametrize(
    ("title", "says", "intent"),
    [
        ("Add a lowering of math.exp on bf16", "This program does not compile today:", Intent.FAILURE),
        ("Support exp of small types", "The compiler currently fails on it.", Intent.FAILURE),
        ("Missing lowering of math.exp", "We are unable to legalize the operation below.", Intent.FAILURE),
        (
            "Add a lowering of math.exp on bf16",
            "It is lowered by way of f32. A direct way is faster.",
            Intent.FEATURE,
        ),
        ("Support exp of small types", "A pass of its own may simplify this.", Intent.FEATURE),
    ],
)
def test_a_request_that_shows_what_fails_is_a_failure_report(title: str, says: str, intent: Intent) -> None:
    """A program, its command and a sentence that it fails. The template of a request alone decides nothing."""
    assert _read(title, WISHED.replace("SAYS", says), "enhancement") is intent
    assert _read(title, says, "enhancement") is Intent.FEATURE


STOPPED = """```
  File "/usr/lib/python3.8/site-packages/tvm/relay/build_module.py", line 12, in build
tvm.TVMError: codegen_c.cc:10: unknown intrinsic gelu
```"""


@pytest.mark.parametrize(
    ("title", "says", "intent"),
    [
        ("Packing after the last update", "Our models are not compiling any more. Anyone else?", Intent.FAILURE),
        ("Packing stopped compiling after the last update", "Anyone else seeing that?", Intent.FAILURE),
        ("Packing after the last update", "Is it meant to be a pass of its own?", Intent.QUESTION),
    ],
)
def test_a_failure_that_is_told_in_words_is_a_report_whatever_it_asks_at_the_end(
    title: str, says: str, intent: Intent
) -> None:
    assert _read(title, says) is intent


@pytest.mark.parametrize(
    ("says", "intent"),
    [
        ("I compile a network of mine, but get an error:", Intent.FAILURE),
        ("Our model fails at this operator.", Intent.FAILURE),
        ("It would be useful for networks of language. Today there is only a message.", Intent.FEATURE),
        ("", Intent.FEATURE),
    ],
)
def test_a_title_that_asks_for_support_stands_above_a_failure_that_the_author_met(says: str, intent: Intent) -> None:
    """A request may show the error of what does not exist yet; a report says that the author met the error."""
    for shown in (STOPPED, STOPPED.strip("`\n")):  # in a fence, and among the sentences
        assert _read("Support gelu in the C backend", f"{says}\n\n{shown}") is intent


REQUESTED = """### Request description

It'd be handy to have a flag for this.

```mlir
func.func @third(%a: tensor<1xf32>) -> tensor<1xf32> {
  return %a : tensor<1xf32>
}
```

```
$ iree-compile third.mlir --iree-hal-target-backends=llvm-cpu -o third.vmfb
$ iree-run-module --module=third.vmfb --function=third --input=1xf32=1
EXEC @third
result[0]: hal.buffer_view
1xf32=0.333333
```

I write a file instead, and this doesn't work well in tests.
"""


def _read(title: str, body: str, *labels: str) -> Intent:
    issue = Issue(
        source="-", title=title, body=body, sha256="0" * 64, created=date(2025, 5, 1), labels=labels, author="ada",
        repository="apache/tvm",
    )  # fmt: skip
    return extract(issue).intent


@pytest.mark.parametrize(
    ("intent", "title", "body", "labels"),
    [
        (Intent.FAILURE, "A fused exp of bf16 needs a symbol that is not there", LINKED, ()),
        (
            Intent.FAILURE,
            "A whole core while it waits",
            "The whole pipeline gets slow. Anyone else?",
            ("performance",),
        ),
        (Intent.FEATURE, "Faster waits", "We could sleep in between.", ("performance",)),
        (Intent.FAILURE, "from_fx: KeyError in the norm", f"{TRACE}\n\nDid somebody see that? Any workaround?", ()),
        (Intent.FEATURE, "Handle ValueError in the importer", "Please add it.", ()),
        (Intent.QUESTION, "How do I print the generated source?", "I could not find a function for this.", ()),
        (
            Intent.QUESTION,
            "ToMixedPrecision: how do I keep one call as it is?",
            "I see the `fp16_input_names` argument.\n\n```python\nimport tvm\ntvm.relax.x().show()\n```",
            ("question",),
        ),
        (Intent.FEATURE, "[tools] print all digits", REQUESTED, ("enhancement",)),
        (Intent.QUESTION, "[Question] Tuning without a GPU", "Is there a way to tune on a CPU only?", ("question",)),
        (Intent.FEATURE, "Add a cost model for convolutions", "It would be nice to have one.", ("enhancement",)),
        (Intent.FEATURE, "[RFC] A second memory planner", "## Motivation\n\nPlans get long.\n", ()),
        (Intent.TRACKING, "[Tracking] Remove the old executor", "- [x] docs\n- [ ] tests\n", ()),
        (Intent.TRACKING, "Roadmap for the next release", "### Tasks\n\n- [ ] scan\n", ()),
        (Intent.DOCUMENTATION, "[Docs] The page on targets has a typo", "See https://x.org/docs/target.html", ()),
        (Intent.BUILD, "Build error on Fedora", "```\nCMake Error at CMakeLists.txt:4 (find_package)\n```", ()),
        (
            Intent.BUILD,
            "[CI] tests/python/test_rpc.py is flaky",
            "https://github.com/a/b/actions/runs/77123",
            ("ci",),
        ),
        (Intent.FAILURE, "[Bug] Reduction over an empty axis", TRACE, ("type: bug",)),
        (Intent.FAILURE, "Why does this raise an InternalError?", f"### Actual behavior\n\n{TRACE}", ()),
        (Intent.FAILURE, "Support for empty axes is broken", f"### What happened?\n\n{TRACE}", ("bug",)),
        (Intent.FAILURE, "Exporting a module without a suffix ends in a linker error", EXPORTED, ()),
        (Intent.FAILURE, "The generated C code is refused by gcc", GENERATED, ()),
        (Intent.BUILD, "Release build broken by a warning", WARNED, ("bug",)),
        (Intent.BUILD, "RuntimeError: Cannot find libraries after `pip install .`", FROM_CHECKOUT, ()),
        (Intent.BUILD, "The built tool does not start", "I build from source with `-DBUILD_SHARED_LIBS=ON`.", ()),
        (Intent.FAILURE, "[VM] Initialization is very slow on big models", "It takes two minutes.", ("performance",)),
        (Intent.BUILD, "The last link step ends in an error", BUILT, ()),
        (Intent.BUILD, "Cython part cannot be compiled", PACKAGED, ()),
        (Intent.BUILD, "Import fails after a change of mine", UNLOADABLE, ()),
        (Intent.FAILURE, "The new wheel cannot be imported", INSTALLED, ()),
        (Intent.QUESTION, "Two devices in one thread", TEMPLATE, ()),
        (
            Intent.QUESTION,
            "Level of the build",
            "I want to ask which level this uses.\n\n```python\nimport tvm\n```",
            (),
        ),
        (Intent.QUESTION, "Role of a pass", "It is off:\n\n```\nx.on = 0;\n```\n\nIs my understanding correct?", ()),
        (Intent.FAILURE, "Level", "It crashes. I want to know why.\n\n```python\nimport tvm\n```", ()),
        (
            Intent.QUESTION,
            "A name is gone in 0.26 - what should I use?",
            f"I assume it's intentional. Is there a page on the migration?\n\n{TRACE}",
            (),
        ),
        (
            Intent.FEATURE,
            "One flag for large indices",
            "A coarse flag would make this easier to find. Dispatches cannot index beyond 32 bits.",
            (),
        ),
        (Intent.FEATURE, "Port the memory planner to C", "Needed for the second runtime.", ()),
        (
            Intent.FAILURE,
            "The pass loses a name",
            "```python\nimport tvm\ntvm.relax.x().show()\n```\n\nThe checker complains.\n\nSo it is known?",
            (),
        ),
        (Intent.FEATURE, "Example request: a dynamic loop", "I can't work out how. Could you add one? Thanks.", ()),
        (Intent.FEATURE, "Add the newest chip to the targets", f"Today it ends with:\n\n{TRACE}", ()),
        (Intent.FAILURE, "Add of two axes is wrong", f"### Actual behavior\n\n{TRACE}", ()),
        (
            Intent.FAILURE,
            "Vectorizing relies on a branch",
            "A failure on https://ci.example.org/job/7 blocks me. One can reproduce the bug without my change.\n\n"
            "```\nfor (i, 0, 4) {\n  a[i] = b[i]\n}\n```",
            (),
        ),
        (
            Intent.FAILURE,
            "module 'tvm.auto_scheduler._ffi_api' has no attribute 'RandomModel'",
            "I installed it from source, but this error was raised. Can anyone help me?",
            (),
        ),
        (Intent.DISCUSSION, "Nothing in particular", "The text says little.", ()),
        (Intent.FAILURE, "Tuning on two devices", "Since the update, the second device gets wrong results.", ()),
        (Intent.FAILURE, "Tuning on two devices", "It segfaults.", ()),
        (Intent.FAILURE, "Tuning on two devices", "ubsan: the product of two indices.", ()),
        (Intent.FAILURE, "The lowering of a product has undefined behavior", "See `vm_mul`.", ()),
        (Intent.FAILURE, "Tuning on two devices", "Nothing in particular.", ("type: bug",)),
        (Intent.DISCUSSION, "Tuning on two devices", "There are two ways. The first may fail.", ()),
        (
            Intent.TRACKING,
            "Two devices",
            "State of the work, so that it is seen:\n\n* [ ] tuning fails\n* [x] link",
            (),
        ),
    ],
)
def test_the_intent_of_a_text(intent: Intent, title: str, body: str, labels: tuple[str, ...]) -> None:
    assert _read(title, body, *labels) is intent


MISSING = """```
Traceback (most recent call last):
  File "a.py", line 2, in <module>
    {code}
AttributeError: module 'tvm' has no attribute '{name}'
```

```python
import tvm
{code}
```"""


@pytest.mark.parametrize(("shown", "intent"), [(TRACE, Intent.FAILURE), ("```\n3 4\n```", Intent.QUESTION)])
def test_a_program_and_the_error_it_ends_with_are_a_failure_report(shown: str, intent: Intent) -> None:
    """Whatever its author asks: the answer is about the error."""
    program = "```python\nimport tvm\nprint(tvm.compile(tvm.IRModule({})))\n```"
    body = f"I port a model.\n\n{program}\n{shown}\n\nIs there a way around? I want not to cast. How can I do this?"
    assert _read("bucketize when input is float ??", body) is intent


@pytest.mark.parametrize(
    ("says", "intent"),
    [
        ("TVM prints no error, but the answer is wrong:", Intent.FAILURE),
        ("I wonder how the answer is computed:", Intent.QUESTION),
    ],
)
def test_a_program_whose_values_the_author_calls_wrong_is_a_failure_report(says: str, intent: Intent) -> None:
    """Also below a title that asks whether something can be done."""
    program = "```python\nimport tvm\nprint(tvm.compile(tvm.IRModule({}))([1, 2]))\n```"
    body = f"I reduce over one axis.\n\n{program}\n\n{says}\n\n```\n[3.5, 4.5]\n```"
    assert _read("Is it possible to vectorize a reduction?", body) is intent


@pytest.mark.parametrize(
    ("says", "command", "intent"),
    [
        ("Both arguments share the extent, so %a should be made static by a cast.", "", Intent.FEATURE),
        ("%a should be made static by a cast. It fails to compile.", "", Intent.FAILURE),
        ("%a should be made static by a cast.", "\n\n```\niree-opt --cse a.mlir\n```", Intent.FAILURE),
    ],
)
def test_ir_with_a_sentence_on_what_should_be_made_of_it_is_a_request(
    says: str, command: str, intent: Intent
) -> None:
    """A word on a failure or a command makes it a report."""
    body = "For\n\n```mlir\nfunc.func @f(%a: tensor<?xf32>) -> tensor<?xf32> {\n  return %a : tensor<?xf32>\n}\n```"
    assert _read("[LinalgExt] Static shapes of arguments", f"{body}\n\n{says}{command}") is intent


@pytest.mark.parametrize(
    ("name", "intent"), [("placeholder", Intent.MOVED), ("lower", Intent.MOVED), ("no_such_name", Intent.FAILURE)]
)
def test_a_missing_name_that_was_moved_on_purpose_is_no_failure(name: str, intent: Intent) -> None:
    """A name that nothing moved may be missing by mistake."""
    title = f"[Bug] AttributeError: module 'tvm' has no attribute '{name}'"
    assert _read(title, MISSING.format(name=name, code=f"tvm.{name}((3,))")) is intent


def test_a_submodule_that_needs_its_own_import_has_not_moved() -> None:
    """The name exists: the report is about a failure, and the runs show which line is missing."""
    title = "[Bug] AttributeError: module 'tvm.relax.frontend' has no attribute 'onnx'"
    body = MISSING.format(name="onnx", code="tvm.relax.frontend.onnx.from_onnx(None)")
    assert _read(title, body) is Intent.FAILURE


def test_all_failure_reports_of_the_corpus_are_failure_reports() -> None:
    """A failure report that is taken for something else is never answered."""
    for case in cases():
        if case.expected.get("verdict"):
            claims = case.expected["verdict"] != "no-claim"
            assert (extract(case.issue).intent is Intent.FAILURE) is claims, case.name


def test_a_text_without_a_claim_is_not_run_unless_someone_asks() -> None:
    body = "It would be nice.\n\n```python\nimport tvm\n\nprint(tvm.__version__)\n```\n"
    issue = Issue(
        source="-", title="[Feature request] Print versions", body=body, sha256="0" * 64, created=date(2025, 5, 1),
        repository="apache/tvm",
    )  # fmt: skip
    extraction = extract(issue)
    verdict = judge_without_running(extraction)
    assert verdict is not None
    assert (verdict.kind, verdict.labels) == (VerdictKind.NO_CLAIM, ())
    assert judge_without_running(extraction, anyway=True) is None


PROGRAM_AND_ERROR = """```python
import tvm
tvm.compile(tvm.nest(), target="llvm")
```

```
  File "/opt/lib/python3.11/site-packages/tvm/driver.py", line 9, in compile
tvm.error.InternalError: Check failed: (!inner) is false: a nest is not supported, fuse the loops
```"""


@pytest.mark.parametrize(
    ("questions", "intent"),
    [
        (("Can I rely on the order?", "Is there a page on it?"), Intent.QUESTION),
        (("Is there a faster way?",), Intent.FAILURE),
        (("Is this a bug?", "Where can I read more?"), Intent.FAILURE),
        (("The order is wrong.", "Is there a page on it?"), Intent.FAILURE),
    ],
    ids=["two questions", "one question", "a suspicion", "a statement"],
)
def test_a_text_that_ends_with_a_list_of_questions_wants_advice(questions: tuple[str, ...], intent: Intent) -> None:
    """Its author knows why the program ends as it does."""
    listed = "\n".join(f"{number}. {text}" for number, text in enumerate(questions, 1))
    body = f"I use 0.27.0.\n\n{PROGRAM_AND_ERROR}\n\nThat is what I want here.\n\n{listed}"
    assert _read("the order of nested loops", body) is intent


@pytest.mark.parametrize(
    ("says", "intent"),
    [
        ("It would be nice if a pass fused them. Would you take a PR for that?", Intent.FEATURE),
        ("It would be nice if a pass fused them. Would you be open to that?", Intent.FEATURE),
        ("It would be nice if a pass fused them.", Intent.FAILURE),
        ("I am happy to send a fix.", Intent.FAILURE),
        ("It would be nice to have this fixed, I am happy to send a PR. Is this a bug?", Intent.FAILURE),
    ],
)
def test_a_wish_with_an_offer_is_a_request(says: str, intent: Intent) -> None:
    """The quoted error is what the compiler says today."""
    assert _read("a parallel loop inside a parallel loop", f"{PROGRAM_AND_ERROR}\n\n{says}") is intent


@pytest.mark.parametrize(
    ("title", "intent"),
    [
        ("How to compile a nest of loops?", Intent.QUESTION),
        ("A nest of loops is refused?", Intent.FAILURE),
    ],
)
def test_a_title_that_seeks_advice_may_have_its_questions_in_a_paragraph(title: str, intent: Intent) -> None:
    asks = "I see why. What is the recommended way? Should I fuse them by hand? Thanks!"
    assert _read(title, f"{PROGRAM_AND_ERROR}\n\n{asks}") is intent


@pytest.mark.parametrize(
    ("title", "says", "intent"),
    [
        ("How to write a scan?", "The error is clear enough, I understand scan isn't covered.", Intent.QUESTION),
        ("Docs: mention the new syntax", "There is nothing to fix in the compiler.", Intent.QUESTION),
        ("scan fails", "The error is clear enough, I understand scan isn't covered.", Intent.FAILURE),
        ("scan", "I understand that it isn't supported, but the message is wrong output.", Intent.FAILURE),
    ],
)
def test_an_author_who_takes_the_error_for_right_reports_no_failure(title: str, says: str, intent: Intent) -> None:
    body = f"```python\nimport tvm\ntvm.scan()\n```\n\n{says}\n\n{TRACE}"
    assert _read(title, body) is intent


def test_a_question_may_have_the_word_error_in_its_title() -> None:
    listed = "1. Is there a bound?\n2. Should I measure again?"
    assert _read("Accuracy of tanh, which error bound should tests assume?", f"{PROGRAM_AND_ERROR}\n\n{listed}") is (
        Intent.QUESTION
    )


@pytest.mark.parametrize(
    ("says", "intent"),
    [
        ("I see that it was taken out on purpose. What is the intended replacement?", Intent.QUESTION),
        ("I see that it was taken out. It should come back.", Intent.FAILURE),
    ],
)
def test_a_removal_that_the_author_knows_to_be_meant_is_no_failure(says: str, intent: Intent) -> None:
    assert _read("the order of nested loops", f"{PROGRAM_AND_ERROR}\n\n{says}") is intent


@pytest.mark.parametrize(
    ("asks", "intent"),
    [
        ("`--help` shows `--iree-new-flag`. Was this renamed on purpose?", Intent.MOVED),
        ("Were the old flags dropped intentionally?", Intent.MOVED),
        ("`--help` shows `--iree-new-flag`. Please bring it back.", Intent.FAILURE),
    ],
)
def test_a_question_whether_a_lost_name_is_meant_is_about_a_moved_name(asks: str, intent: Intent) -> None:
    body = f"""After the update our scripts stop:

```
$ iree-compile --iree-old-flag=4 add.mlir -o add.vmfb
iree-compile: Unknown command line argument '--iree-old-flag=4'.  Try: 'iree-compile --help'
```

```mlir
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
  return %a : tensor<4xf32>
}}
```

{asks}
"""
    assert _read("--iree-old-flag is gone in 3.12.0?", body) is intent
