"""Read the reporter's claim."""

from __future__ import annotations

import time

import pytest

from bot.extract import extract
from bot.extract.claim.versions import Passage, find_good_versions, find_replaced_versions, find_versions
from runners.core.failure.printed.filters import ROWS
from runners.core.protocol import Claim, ClaimKind
from tests.bot.extract.reading import extract_repro, make_issue


def extract_claim(body: str, title: str = "[Bug] tvm") -> Claim:
    return extract(make_issue(body, title)).claim


def test_errors_that_a_report_asks_for_are_listed() -> None:
    def list_wished(title: str, body: str = "") -> set[str]:
        return set(extract_claim(body, title).wished)

    assert list_wished("tvm crashes", "The test SHOULD fail. But with a ValueError as others do.") == {"ValueError"}
    assert list_wished("tvm crashes", "I'd be happy with a ScheduleError or a clean error.") == {
        "ScheduleError",
        "error",
    }
    assert list_wished("tvm takes the interpreter down instead of raising") == {"error"}
    assert list_wished("tvm crashes", "It raises a ValueError on 0.25.") == set()
    assert list_wished("tvm", "It should not raise a ValueError.") == set()
    assert list_wished("tvm crashes", 'I\'d expect INVALID_ARGUMENT "out of range" here.') == {
        "status:INVALID_ARGUMENT"
    }
    assert list_wished("tvm", "I would expect an answer, but I get a ValueError.") == set()
    assert list_wished("tvm crashes", "It should not crash but raise a ValueError.") == {"ValueError"}


def test_a_remark_on_a_crash_of_another_program_is_not_the_claim() -> None:
    """The report shows what its program prints, and what is expected."""
    body = (
        f"The index is not clamped. The bigger program also had segfaults.{CODE}\n"
        "Actual\n```\n[10. 0.]\n```\nExpected\n```\n[10. 30.]\n```\n"
    )
    claim = extract_claim(body, "tvm reads out of bounds")
    assert (claim.kind, claim.actual, claim.expected) == (ClaimKind.WRONG_RESULT, "[10. 0.]", "[10. 30.]")
    assert extract_claim(body, "segfaults of tvm").kind is ClaimKind.CRASH


def test_the_time_that_a_wrong_output_costs_is_a_consequence() -> None:
    """A title on time speaks of the time itself."""
    shown = f"It has no features of that core, so that our kernels are 4x slower.{CODE}\nprints\n```\n{{}}\n```\n"
    wrong = extract_claim(shown.format('cpu_features = ""'), "tvm ignores target-cpu")
    assert (wrong.kind, wrong.actual) == (ClaimKind.WRONG_RESULT, 'cpu_features = ""')
    assert extract_claim(shown.format('cpu_features = ""'), "tvm is slow on that core").kind is ClaimKind.SLOW


MODULE = "\n```mlir\nfunc.func @f(%a: f32) -> f32 {\n  return %a : f32\n}\n```\n"


def test_a_printed_program_is_what_a_report_without_an_error_is_about() -> None:
    """Words such as "can't see" tell of errors elsewhere."""
    shown = "\n```mlir\n  unit.global @g : f32\n  unit.store %0, @g : f32\n```\n"
    body = f"The pass hoists it.{MODULE}result of `iree-opt --hoist`:\n{shown}The consumer can't see the constant."
    claim = extract_claim(body, "iree hoists")
    assert (claim.kind, "unit.store" in claim.actual) == (ClaimKind.WRONG_RESULT, True)
    assert extract_claim(f"{body} It fails with an error.", "iree hoists").kind is ClaimKind.ERROR


def test_operations_below_a_command_are_its_output() -> None:
    typed = "\n```\niree-opt --pad a.mlir | grep unit\n    %t = unit.turn %a : f32\n```\n"
    body = f"It transposes the filter.{MODULE}{typed}"
    assert extract_claim(body, "iree transposes").actual.strip() == "%t = unit.turn %a : f32"


def test_rows_of_a_module_in_a_section_on_output_are_the_output() -> None:
    body = (
        f'### Code{CODE}\n### Output\n\n```\nlv: R.Tensor((1, 8), dtype="float32") = R.tile(x, repeats=[2, 1])\n```\n'
    )
    assert extract_claim(body, "tvm gives the wrong layout").actual.startswith("lv: R.Tensor")


def test_an_error_that_is_called_fine_is_not_the_claim() -> None:
    said = (
        "```\na.mlir:1:1: error: the stack is too small for it\n```\n(That the program does not compile is fine.)\n"
    )
    assert extract_claim(f"The message prints all of the IR.{MODULE}{said}", "iree prints too much").intended
    assert not extract_claim(f"The message prints all of the IR.{MODULE}{said[:60]}", "iree prints too much").intended


def test_a_code_span_alone_below_words_on_output_is_the_output() -> None:
    said = f"It is in another order each time.{CODE}\nThe command prints\n\n`{{}}`\n\nwhich is wrong.\n"
    assert extract_claim(said.format('features = "+a,+b"')).actual == 'features = "+a,+b"'
    assert not extract_claim(said.format('x = "+a"').replace("prints", "takes the flag")).actual


def test_the_output_of_a_nightly_of_a_good_release_is_expected() -> None:
    body = (
        f"After updating from 0.25.0 to 0.26.0 the result is wrong.{CODE}\n"
        "0.25.0rc20260601:\n```\n[-8. 4.]\n```\n0.26.0rc20260801:\n```\n[nan nan]\n```\n"
    )
    claim = extract_claim(body, "tvm gives NaN")
    assert (claim.good, claim.actual, claim.expected) == (("0.25.0",), "[nan nan]", "[-8. 4.]")


def test_the_build_of_before_is_good_where_two_outputs_have_versions_as_captions() -> None:
    """Only a text that tells of a change says which output is right."""
    body = f"{{}}{CODE}\n0.26.0:\n\n```\nread_write A\n```\n\n0.25.0:\n\n```\nread A\n```\n"
    claim = extract_claim(body.format("Inputs used to be declared read. A tool rejects them now."), "tvm: inputs")
    assert (claim.kind, claim.good) == (ClaimKind.WRONG_RESULT, ("0.25.0",))
    assert (claim.actual, claim.expected) == ("read_write A", "read A")
    assert extract_claim(body.format("The outputs differ."), "tvm: inputs").good == ()


@pytest.mark.parametrize("caption", ["\u0660.\u0662\u0665.\u0660:", "0.26:", "v0.26.0"])
def test_a_caption_that_names_no_older_build_has_no_right_output(caption: str) -> None:
    """Digits of another script are no version, whatever compiler the text is about."""
    for toolchain in ("tvm", None):
        assert find_replaced_versions(["0.26.0:", caption], "It used to work.", toolchain) == ()


def test_a_block_that_shows_both_arrays_is_no_expected_output() -> None:
    """The sentence above names the parts of the block. An exception of another program is no value."""
    body = (
        f"No error at all.{CODE}\nFirst array is TVM, second is what it should be:\n\n```\n[2 1]\n[1 1]\n```\n\n"
        "With a float operand I get `TypeError` instead, which says that only ints are an index."
    )
    claim = extract_claim(body, "tvm folds Min of constants wrongly")
    assert (claim.kind, claim.actual, claim.expected) == (ClaimKind.WRONG_RESULT, "[2 1]\n[1 1]", "")


def test_an_error_that_one_sentence_names_beside_quoted_output_is_a_remark() -> None:
    body = (
        f"I get garbage.{CODE}\nprints\n\n```\n30064771372\n```\n\ninstead of 121. If the function returns more, "
        "loading fails: `INVALID_ARGUMENT; insufficient register storage for results`."
    )
    claim = extract_claim(body, "IREE: wrong argument values")
    assert (claim.kind, claim.actual) == (ClaimKind.WRONG_RESULT, "30064771372")
    assert extract_claim(body, "IREE: loading fails").kind is ClaimKind.ERROR


def test_a_pass_that_should_leave_its_input_is_expected_to_print_the_input() -> None:
    """The sentence may be wrapped by an editor."""
    module = "util.func @f() -> i32 {\n  %0 = util.global.load @g : i32\n  util.return %0 : i32\n}"
    printed = "util.func @f() -> i32 {\n  %c = arith.constant 1 : i32\n  util.return %c : i32\n}"
    body = (
        f"```mlir\n{module}\n```\n\n```\n$ iree-opt --fold a.mlir\n{printed}\n```\n\n"
        "The load is replaced by a constant, and I'd expect that it is not, which means that the module stays as\n"
        "it is.\n"
    )
    assert extract_claim(body, "IREE folds a global").expected.strip() == module
    assert extract_claim(body.replace("stays as", "is not as"), "IREE folds a global").expected == ""


@pytest.mark.parametrize(
    ("told", "unchanged"),
    [
        ("What comes out: the function as it went in.", True),
        ("The two loops are not fused.", True),
        ("It misses a fusion.", True),
        ("I'd like to know what it does.", False),
    ],
)
def test_a_pass_that_does_nothing_prints_its_input(told: str, unchanged: bool) -> None:
    module = "util.func @f() -> i32 {\n  %0 = util.global.load @g : i32\n  util.return %0 : i32\n}"
    body = f"{told}\n\n```mlir\n{module}\n```\n\n    iree-opt a.mlir --fold-it\n\n3.10.0."
    assert (extract_claim(body, "Wrong output of a pass").actual.strip() == module) is unchanged


def test_a_program_below_a_command_is_what_the_command_prints() -> None:
    module = "util.func @f() -> i32 {\n  %0 = util.global.load @g : i32\n  util.return %0 : i32\n}"
    printed = module.replace("util.global.load", "util.other.load")
    body = f"```mlir\n{module}\n```\n\n`iree-opt --fold-it a.mlir`:\n\n```mlir\n{printed}\n```\n"
    assert extract_claim(body, "Wrong output of a pass").actual.strip() == printed
    after = f"before\n\n```mlir\n{module}\n```\n\nafter (`iree-opt --fold-it a.mlir`)\n\n```mlir\n{printed}\n```\n"
    assert extract_claim(after, "Wrong output of a pass").actual.strip() == printed


def test_the_exception_that_a_program_catches_and_prints_is_the_failure() -> None:
    """A value stands before its class, and no colon behind."""
    code = "import tvm\ntry:\n    tvm.run()\nexcept Exception as e:\n    print(name, type(e).__name__, e)\n"
    body = f"```python\n{code}```\n\n```\nsigned ok\nunsigned DiagnosticError error: cannot make -1\n```\n"
    signature = extract_claim(body, "Crash of the analysis").signature
    assert signature is not None
    assert (signature.type, signature.message) == ("DiagnosticError", "error: cannot make -1")
    uncaught = body.replace("except Exception as e", "except Exception")
    assert extract_claim(uncaught, "Crash of the analysis").signature is None


def test_a_passage_behind_still_is_no_expected_output() -> None:
    body = f"{CODE}\nOutput:\n```\n4xf16=0 0 -NAN -0\n```\nFrom a file they are still zero: 4xf16=0 0 0 -0.\n"
    assert extract_claim(body, "IREE: wrong values").expected == ""
    assert extract_claim(body.replace("are still zero", "are"), "IREE: wrong values").expected == "4xf16=0 0 0 -0"


def test_an_error_that_a_report_would_accept_is_not_its_failure() -> None:
    body = f"I could live with a ScheduleError.{CODE}\nIt prints\n\n```\n[12. 12.]\n```"
    claim = extract_claim(body, "tvm: loop_partition drops a sum")
    assert (claim.kind, claim.actual.strip()) == (ClaimKind.WRONG_RESULT, "[12. 12.]")


def test_comments_beside_prints_are_output_where_a_sentence_tells_a_value() -> None:
    code = "\n    ```python\n    import tvm\n    print(tvm.f(2))  # 0.0\n    print(tvm.f(3))  # 1.5\n    ```\n"
    told = extract_claim(f"{code}\nThe function sees 0.0.", "tvm gives wrong results")
    assert told.actual == "0.0\n1.5"
    expected = extract_claim(f"{code}\nI'd expect 3.0 and 1.5.", "tvm gives wrong results")
    assert (expected.actual, expected.expected) == ("0.0", "3.0\n1.5")
    assert extract_claim(code, "tvm gives wrong results").actual == ""


CODE = "\n    ```python\n    import tvm\n    tvm.run()\n    ```\n"


@pytest.mark.parametrize(
    ("title", "body", "kind"),
    [
        ("[Bug] tvm segfaults", "", ClaimKind.CRASH),
        ("tvm", "Segmentation Fault when I run it", ClaimKind.CRASH),
        ("tvm build never terminates", "", ClaimKind.HANG),
        ("[Bug] tvm gives wrong results for pooling", "", ClaimKind.WRONG_RESULT),
        ("[Bug] tvm InternalError in codegen", "", ClaimKind.ERROR),
        ("tvm", "it stops with `ValueError: no such op`", ClaimKind.ERROR),
        ("tvm", "```\nAssertionError: \nNot equal to tolerance rtol=1e-5\n```", ClaimKind.WRONG_RESULT),
        ("tvm question", "How do I do this?", ClaimKind.UNKNOWN),
        ("tvm fails: 1 step instead of 2", "The verifier rejects this.", ClaimKind.ERROR),
        ("tvm fails: 1 step instead of 2", "The loop is refused by the TIR verifier.", ClaimKind.ERROR),
        ("tvm prints 1 step instead of 2", "The verifier rejects this.", ClaimKind.WRONG_RESULT),
        ("tvm fails: 1 step instead of 2", "", ClaimKind.WRONG_RESULT),
        ("[Feature request] tvm should read fp8", "", ClaimKind.UNKNOWN),
        ("tvm: compile time explodes", "", ClaimKind.HANG),
        ('vm["main"] never returns with two threads', "", ClaimKind.HANG),
        ("tvm.compile doesn't return.", "", ClaimKind.HANG),
        ("max_pool2d never returns a negative number: wrong result", "", ClaimKind.WRONG_RESULT),
        ("R.argmax does not return the last index: wrong result", "", ClaimKind.WRONG_RESULT),
        ("tvm: FuseOps mutates its input", "", ClaimKind.WRONG_RESULT),
        ("tvm: argmax is off by one", "", ClaimKind.WRONG_RESULT),
        ("FuseOps cannot fuse a reshape", "tvm shows two functions.", ClaimKind.WRONG_RESULT),
        ("tvm: vectorizing a reduction does not raise an error", "", ClaimKind.ACCEPTED),
        ("tvm accepts an invalid axis", "It should raise an error.", ClaimKind.ACCEPTED),
        ("tvm: a shape of another rank should be rejected", "", ClaimKind.ACCEPTED),
        ("iree-compile: missing check of the number of results", "", ClaimKind.ACCEPTED),
        ("tvm: no shape check of an argument", "It wants 4 rows, I give 5. I expected an error.", ClaimKind.ACCEPTED),
        ("f(1.0) instead of f(x) raises INVALID_ARGUMENT", "", ClaimKind.ERROR),
        ("tvm: zeros instead of ones", "Each raise of the limit helps.", ClaimKind.WRONG_RESULT),
        ("tvm: scalars", "Each is lost. There's no error.\n\n```\nf32: 0.0\nf64: 2.5\n```", ClaimKind.WRONG_RESULT),
        ("IREE", "```\nx-lld: error: undefined symbol: exp\n>>> by -:2\n```", ClaimKind.ERROR),
        ("tvm: float scalars", "It doesn't work. Output: `(3, 0.0)`. I expect (3, 2.5).", ClaimKind.WRONG_RESULT),
        ("tvm exits with no error message", "", ClaimKind.WRONG_RESULT),
        ("tvm: a negative axis", "The builder takes it. I expected an error here.", ClaimKind.ACCEPTED),
        ("IREE: a typo", "```\n$ iree-opt a.mlir; echo $?\n0\n```\nThis should be an error.", ClaimKind.ACCEPTED),
        ("tvm: a negative axis", "It stops. It should not raise an error, and it is aborted.", ClaimKind.CRASH),
        ("tvm crashes with no error message", "", ClaimKind.CRASH),
        ("Segfault: tvm should raise an error", "", ClaimKind.CRASH),
        ("tvm raises an error for a valid axis", "It should not raise an error.", ClaimKind.ERROR),
        ("tvm: the analyzer fails to prove an inequality", "", ClaimKind.WRONG_RESULT),
        ("[CPU] iree-compile does not vectorize a transpose", "", ClaimKind.WRONG_RESULT),
        ("tvm cannot compile a loop", "", ClaimKind.ERROR),
        ("tvm: the result changes from run to run", "", ClaimKind.WRONG_RESULT),
        ("tvm runs out of memory", "", ClaimKind.ERROR),
        ("IREE: numeric failure of a convolution", "The `%out` is off.", ClaimKind.WRONG_RESULT),
        ("tvm: type mismatch: expected a tuple", "```\nTraceback (most recent call last):\n```", ClaimKind.ERROR),
        ("tvm: not simplified", "```\nsrc/op/x.cc:3: Check failed: Equal(a, b) \n```", ClaimKind.ERROR),
        ("tvm: the sum loops forever", "It prints `step 1`, then nothing. Expected `[1 2]`.", ClaimKind.HANG),
        ("tvm: the sum", "It is stuck at the old values: prints `[1 2]`, expected `[1 3]`.", ClaimKind.WRONG_RESULT),
        ("IREE", "```\n==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n```", ClaimKind.CRASH),
        ("IREE", "```\nx.mlir:1:2: error: 'a.b' op bad\n```", ClaimKind.ERROR),
        ("IREE", "```\nStack dump:\n0.\tProgram arguments: iree-compile a.mlir\n```", ClaimKind.CRASH),
    ],
)
def test_evidence_decides_the_kind_before_prose(title: str, body: str, kind: ClaimKind) -> None:
    """Quoted output decides first, then the title, then the prose."""
    assert extract(make_issue(body + CODE, title)).claim.kind is kind


def test_a_message_in_a_code_span_ends_with_the_span() -> None:
    """The sentence behind it may have further spans."""
    said = "IREE says `INVALID_ARGUMENT; expected f32 but have f64`. With `4xf32=1` it runs."
    found = extract_claim(f"{said}\n{CODE}", "IREE: a wrong type").signature
    assert found is not None
    assert found.message == "expected f32 but have f64"


def test_a_failed_assertion_of_the_testcase_is_a_wrong_result() -> None:
    """A failed assertion of the compiler is an error."""
    body = """
    ```python
    import tvm
    out = tvm.f()
    assert str(out) == "[1]", str(out)
    ```
    ```
    Traceback (most recent call last):
      File "a.py", line 3, in <module>
        assert str(out) == "[1]", str(out)
    AssertionError: [2]
    ```
    """
    assert extract_claim(body).kind is ClaimKind.WRONG_RESULT
    assert extract_claim("`AssertionError: bad scale` (in the frontend)" + CODE).kind is ClaimKind.ERROR


def test_printed_and_expected_output_are_told_apart() -> None:
    """The oracle compares the output of a run with both."""
    body = f"""{CODE}
    prints

    ```
    a 1
    b 2
    ```

    expected

    ```
    a 1
    b 3
    ```
    """
    found = extract_claim(body)
    assert (found.actual, found.expected) == ("a 1\nb 2", "a 1\nb 3")
    assert found.kind is ClaimKind.WRONG_RESULT
    assert found.signature is not None
    assert (found.signature.type, found.signature.message) == ("output", "b 2")


def test_a_code_span_may_hold_the_expected_output() -> None:
    """``I expected `ok``` counts like a block."""
    assert (
        extract_claim(f"{CODE}\n    Output:\n\n    ```\n    bad\n    ```\n\n    I expected `ok` here.\n").expected
        == "ok"
    )


@pytest.mark.parametrize(
    ("text", "toolchain", "versions"),
    [
        ("pip install apache-tvm==0.25.0.post1", "tvm", ("0.25.0.post1",)),
        ("TVM: 0.17.dev0, Python 3.11.4, numpy 1.26.4, CUDA 12.1, Ubuntu 22.04", "tvm", ("0.17.dev0",)),
        ("tvm v0.25 and torch 2.6.0", "tvm", ("0.25",)),
        ("TVM version: 0.26.dev1 (5a8dae4d95)", "tvm", ("0.26.dev1", "5a8dae4d95")),
        ("since commit abcdef1 it is slow", "tvm", ()),
        ("built from commit abcdef1", "tvm", ("abcdef1",)),
        ("git bisect ends at abcdef12", "iree", ()),
        ("on latest main", "tvm", ("main",)),
        ("latest nightly", "iree", ("nightly",)),
        ("iree-base-compiler 3.5.0 from pip", "iree", ("3.5.0",)),
        ("3.8.0rc20250918; 3.8.0rc20250912 is good", "iree", ("3.8.0rc20250918",)),
        ("after moving from 3.4.0 to 3.7.0 it broke", "iree", ("3.7.0",)),
        ("`iree-compile --version` gives 3.7.0rc20250904 @ b4da7b202cf2", "iree", ("3.7.0",)),
        ("candidate-20221214.358; it worked for candidate-20221213.357", "iree", ("20221214.358",)),
        ("the tolerance is 0.25 and IREE was slow", "tvm", ()),
        ("3.12.0 (pip), last worked in 3.3.0", "iree", ("3.12.0",)),
        ("Regression between 3.3.0 and 3.4.0.", "iree", ("3.4.0",)),
        ("3.3.0 → 3.4.0 broke this", "iree", ("3.4.0",)),
        ("3.3.0: good\n3.4.0: bad", "iree", ("3.4.0",)),
        (
            "Last Working Version: 3.8.0rc20250909\nFirst Broken Version: 3.8.0rc20250910",
            "iree",
            ("3.8.0rc20250910",),
        ),
        ("Both 3.8.0 and 3.9.0 show it; 3.7.1 does not.", "iree", ("3.8.0", "3.9.0")),
        ("no problem with 3.4.0, broken in 3.5.0 and today's HEAD (9bd0a7e)", "iree", ("3.5.0", "9bd0a7e")),
        ("0.25.0 worked. 0.26.0 doesn't", "tvm", ("0.26.0",)),
        ("in 0.27 (0.26 is fine)", "tvm", ("0.27",)),
        ("with 0.26.0 it prints 1, with 0.25.0 it printed 2 as it should", "tvm", ("0.26.0",)),
        ("apache_tvm-0.27.0-cp311-cp311-manylinux_2_28_x86_64.whl", "tvm", ("0.27.0",)),
        ("tvm: v0.14.dev0-595-gfa0d35b", "tvm", ("0.14.dev0", "fa0d35b")),
        ("main at cec83d1bad~1", "tvm", ("cec83d1bad~1",)),
        ("That trace is from 3.10.0; 3.6.0 compiled it with data tiling as well.", "iree", ("3.10.0",)),
        ("The output above is from 3.10.0", "iree", ("3.10.0",)),
        ("apache-tvm 0.27.0\napache-tvm-ffi 0.1.14\nnumpy 2.3.0", "tvm", ("0.27.0",)),
    ],
)
def test_versions_said_to_fail_are_found(text: str, toolchain: str, versions: tuple[str, ...]) -> None:
    """Every way to write a version counts. Other products and good builds are left out."""
    assert find_versions([Passage(text=text)], toolchain) == versions


def test_a_bare_number_under_a_version_heading_is_a_version() -> None:
    """Issue forms have a field for the version."""
    assert find_versions([Passage(text="0.26.0", heading="Environment")], "tvm") == ("0.26.0",)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "9",
            "9.",
            "9.9",
            "a",
            "a1",
            ".",
            "1.2+",
            "9 also",
            "f0",
            "(",
            "= ",
            " ",
            "version ",
            "latest ",
            "`",
            "tvm ",
        ),
        *("tvm-", "0.1.dev", "good ", "commit ", "main ", "(from versions: ", "3.4.0 takes ", "9,", "- "),
        "used to work a ",
    ],
)
def test_versions_are_found_in_linear_time(piece: str) -> None:
    """A long run of digits, dots or words delays no report; 8,000 digits once took 14 s."""
    text = "tvm 0.25.dev0 . " + piece * (16_384 // len(piece)) + " x"
    start = time.process_time()
    for heading in ("", "Version"):
        find_versions([Passage(text=text, heading=heading)], "tvm")
        find_good_versions([Passage(text=text, heading=heading)], "iree")
    assert time.process_time() - start < 5


def test_devices_are_those_of_the_code_and_the_flags() -> None:
    """TVM's device is the place of the run; IREE has a backend and a run-time device."""
    body = (
        "```python\nimport tvm\nex = tvm.compile(m, target='llvm')\nvm = relax.VirtualMachine(ex, tvm.cpu())\n```\n"
    )
    assert extract_claim(body).devices == ("cpu",)
    assert extract_claim('```python\nimport tvm\ntvm.compile(m, target="cuda -arch=sm_80")\n```\n').devices == (
        "cuda",
    )
    run = "`iree-run-module --device=local-task --module=a.vmfb`"
    assert extract_claim(f"`iree-compile --iree-hal-target-backends=llvm-cpu a.mlir`\n{run}\n", "iree").devices == (
        "llvm-cpu",
        "local-task",
    )


def test_output_may_stand_in_paragraphs_quotes_and_quotation_marks() -> None:
    """Reporters do not always use a fence."""
    body = f"""{CODE}
    gives

    > 4xf32=1 2 3 4

    instead of

    > 4xf32=4 3 2 1
    """
    assert (extract_claim(body).actual, extract_claim(body).expected) == ("4xf32=1 2 3 4", "4xf32=4 3 2 1")
    assert extract_claim(f'{CODE}\n\nThis prints "sum: 168.0" here.\n').actual == "sum: 168.0"


def test_figures_of_a_numpy_mismatch_are_part_of_the_message() -> None:
    """The line with the exception's name may be missing."""
    found = extract_claim(
        CODE + "\n    ```\n    Not equal to tolerance rtol=1e-5\n\n    Mismatched elements: 4 / 8 (50%)\n    ```\n"
    )
    assert found.signature is not None
    assert found.signature.type == "AssertionError"
    assert "Mismatched elements: 4 / 8 (50%)" in found.signature.message


def test_a_stack_dump_gives_the_compilers_frames() -> None:
    """The line "Program arguments:" of a stack dump also holds a command."""
    body = """
    ```
    0.\tProgram arguments: /x/iree-compile --iree-hal-target-backends=llvm-cpu /tmp/a.mlir
     #0 0x00007f81677b49a8 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (/x/lib.so+0x1)
     #4 0x00007f81694b77a8 mlir::iree_compiler::RaisePass::run(mlir::Op) const Raise.cpp:0:0
    ```
    ```mlir
    func.func @a() { return }
    ```
    """
    found = extract_claim(body, "IREE stops")
    assert found.kind is ClaimKind.CRASH
    assert found.signature is not None
    assert found.signature.frames == ("mlir::iree_compiler::RaisePass::run",)


def test_an_assertion_failure_is_a_crash_of_iree_and_an_error_of_tvm() -> None:
    """LLVM's assertions abort the process; TVM's checks raise exceptions."""
    for repository, kind in (("iree-org/iree", ClaimKind.CRASH), ("apache/tvm", ClaimKind.ERROR)):
        assert extract(make_issue("See below.", "Assertion failure in SomePass", repository)).claim.kind is kind


@pytest.mark.parametrize("above", ["PyTorch 2.7:", "The border is wrong.\n\n**NumPy** gives:", "onnxruntime:"])
def test_output_below_the_name_of_another_implementation_is_expected(above: str) -> None:
    claim = extract_claim(
        f"{CODE}\n{above}\n\n```\n[1. 2. 3.]\n```\n\nTVM:\n\n```\n[1. 2. 4.]\n```\n", "wrong values"
    )
    assert (claim.actual, claim.expected) == ("[1. 2. 4.]", "[1. 2. 3.]")


@pytest.mark.parametrize(
    ("call", "is_expected"), [("torch.exp(x)", True), ("tvm.run(x)", False), ("np.load('o.npy')", False)]
)
def test_what_a_session_of_another_framework_prints_is_expected(call: str, is_expected: bool) -> None:
    """The compiler's own run follows in a shell. NumPy may read what that wrote."""
    session = f"```\n>>> {call}\ntensor([1., 2., 3.])\n```\n\n{CODE}\nIt dies:\n\n"
    session += "```\n$ python r.py\nSegmentation fault\n```\n"
    assert extract_claim(session, "tvm segfaults").expected == ("tensor([1., 2., 3.])" if is_expected else "")


def test_a_wrong_value_of_the_compiler_that_ends_in_an_error_is_an_error() -> None:
    """The compiler's own shapes are wrong, and the program stops. No value is printed."""
    told = "The export fails since tvm thinks that it is longer. numpy gives `[4, 3, 2, 1]`."
    assert extract_claim(f"{told}{CODE}", "wrong inferred shape of arange in tvm").kind is ClaimKind.ERROR
    told = told.replace("export fails since tvm thinks", "export of tvm thinks")
    assert extract_claim(f"{told}{CODE}", "wrong inferred shape of arange in tvm").kind is ClaimKind.WRONG_RESULT


def test_output_of_a_good_version_is_the_expected_output() -> None:
    """Each output is introduced by its version. Another sentence says which version is good."""
    body = f"""{CODE}
    It is off, and nobody expects all digits. 0.27.0:

    ```
    sum 256
    ```

    With 0.26.0:

    ```
    sum 393
    ```

    ### Version

    0.27.0, was fine with 0.26.0
    """
    found = extract_claim(body)
    assert (found.actual, found.expected, found.versions) == ("sum 256", "sum 393", ("0.27.0",))


def test_a_failed_structural_comparison_of_the_testcase_is_a_wrong_result() -> None:
    """The comparison raises ValueError, but the check is the reporter's own."""
    body = """
    ```python
    import tvm
    tvm.ir.assert_structural_equal(a(), b())
    ```
    `ValueError: StructuralEqual check failed, caused by lhs at <root>`
    """
    assert extract_claim(body).kind is ClaimKind.WRONG_RESULT


def test_versions_that_pip_offers_are_not_the_reporters() -> None:
    """If no version fits, pip lists every existing version."""
    said = "ERROR: Could not find apache-tvm==0.26.9 (from versions: 0.25.0rc0, 0.25.0, 0.26.0)"
    assert find_versions([Passage(text=said)], "tvm") == ("0.26.9",)


@pytest.mark.parametrize(
    "said",
    [
        "This fails in about half of the runs.",
        "It is flaky: every second run or so.",
        "Sometimes the result is wrong.",
        "The output is non-deterministic.",
        "It randomly crashes.",
        "I get different values each time.",
        "The error is not always there.",
        "Every few compilations the result is 0.",
        "Wrong in 3 of 10 runs.",
        "The values vary between executions.",
        "From one attempt to the next, the sum changes.",
        "Each run prints another value.",
        "It rarely prints nan.",
    ],
)
def test_words_of_an_intermittent_failure_are_recognized(said: str) -> None:
    """Two runs with the same result do not settle such a report."""
    assert extract_claim(said).sometimes


@pytest.mark.parametrize(
    "said",
    [
        "This always fails.",
        "Every time I compile it, it crashes.",
        "Random inputs are drawn.",
        "Run it twice.",
        "Every second element is zero.",
        "3 of 10 elements are wrong.",
        "One of the calls is dropped.",
        "The time between compilation and run is long.",
        "Results differ between CPU and GPU.",
        "It crashes on each call.",
    ],
)
def test_a_failure_in_every_run_is_not_intermittent(said: str) -> None:
    """Similar words do not count."""
    assert not extract_claim(said).sometimes


def test_headings_and_punctuation_of_other_keyboards_are_read() -> None:
    """Chinese headings of the issue form and full-width colons are read like English ones."""
    read = extract_claim(
        "### 期望行为\n\n可以导入\n\n### 实际行为\n\n```\ntvm.error.OpNotImplemented: no Blur\n```\n\n"
        "### 环境\n\n- TVM\N{FULLWIDTH COLON}0.26.0\n- Python\N{FULLWIDTH COLON}3.11\n\n"
        "### 复现步骤\n\n```python\nimport tvm\ntvm.blur()\n```\n"
    )
    assert read.kind is ClaimKind.ERROR
    assert read.signature is not None
    assert (read.signature.type, read.versions) == ("OpNotImplemented", ("0.26.0",))


@pytest.mark.parametrize(
    ("said", "actual", "expected"),
    [
        ("I see `2xi64=2 4`, numpy gives 1, 0.", "2xi64=2 4", "1, 0"),
        ("It prints 1.3333334. A mean of ones should be 1.", "1.3333334", "1"),
        ("numpy gives 2.5", "", "2.5"),
        ("It prints 3 lines.", "", ""),
        ("It returns 0.26.0", "", ""),
    ],
)
def test_values_in_a_sentence_may_be_output(said: str, actual: str, expected: str) -> None:
    """A printed figure is output. Counts and versions are not."""
    read = extract_claim(f"The mean is wrong. {said}\n\n```python\nimport tvm\nprint(tvm.mean())\n```\n")
    assert (read.actual, read.expected) == (actual, expected)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("onnxruntime gives `[1.5, 3.5, 5.0]` for these", "[1.5, 3.5, 5.0]"),
        ("numpy: `[8., 1., 9., 2.]`", "[8., 1., 9., 2.]"),
        ("It prints `4xf32=4 4 4 4`. Right would be `4xf32=2 2 2 2`.", "4xf32=2 2 2 2"),
        ("numpy gives `np.float32` back", ""),
        ("numpy and torch both give `[4, 3, 2, 1]`.", "[4, 3, 2, 1]"),
        ("It should be 7 and 6.5.", "7\n6.5"),
        (
            "\n\n- onnxruntime: 2 rows `[[0, 0], [0, 2]]`\n- here: shape `(3, 2)`, and the last row is garbage",
            "[[0, 0], [0, 2]]",
        ),
    ],
)
def test_values_of_another_implementation_are_the_expected_output(said: str, expected: str) -> None:
    """The values stand in a code span after its name. The name of a type is not a value."""
    assert extract_claim(f"The output of tvm is wrong. {said}\n{CODE}").expected == expected


COMPILED = """
```mlir
// a.mlir
func.func @p(%x: i32) -> i32 {
  return %x : i32
}
```
"""


def test_a_result_below_a_label_without_a_fence_is_output() -> None:
    body = "IREE 3.6.0 returns -1 instead of 1.\n\noutput:\nEXEC @p\nresult[0]: i32=-1\n\nThanks!\n" + COMPILED
    assert extract_claim(body, "IREE: wrong sign").actual == "EXEC @p\nresult[0]: i32=-1"


@pytest.mark.parametrize(
    ("said", "actual", "expected"),
    [
        ("expected:\nEXEC @p\nresult[0]: i32=1", "-1", "EXEC @p\nresult[0]: i32=1"),
        ("output:\nresult[0]: i32=-1\nexpected:\nresult[0]: i32=1", "result[0]: i32=-1", "result[0]: i32=1"),
    ],
)
def test_a_label_without_a_fence_names_the_side(said: str, actual: str, expected: str) -> None:
    claim = extract_claim(f"IREE 3.6.0 returns -1 instead of 1.\n\n{said}\n\nThanks!\n{COMPILED}", "IREE: wrong sign")
    assert (claim.actual, claim.expected) == (actual, expected)


def test_a_command_in_a_section_on_the_behaviour_is_no_output() -> None:
    command = "`iree-compile --iree-hal-target-backends=vmvx a.mlir && iree-run-module --function=p --input=7`"
    body = f"### What happened?\n\nIREE 3.6.0 clamps.\n{COMPILED}\n{command}\n\n| in | IREE |\n|--|--|\n| 7 | 8 |\n"
    assert extract_claim(body, "IREE: wrong values").actual == ""


def test_a_result_below_commands_without_a_fence_is_output() -> None:
    """Prompts, commands and the tool's result may be one paragraph."""
    body = """
    IREE 3.6.0 is wrong:

    $ iree-compile --iree-hal-target-backends=llvm-cpu a.mlir -o a.vmfb
    $ iree-run-module --module=a.vmfb --device=local-task --function=p
    EXEC @p
    result[0]: hal.buffer_view
    4xf32=8 -NAN 9 2

    ```mlir
    // a.mlir
    func.func @p() -> tensor<4xf32> {
      %c = arith.constant dense<1.0> : tensor<4xf32>
      return %c : tensor<4xf32>
    }
    ```
    """
    assert "4xf32=8 -NAN 9 2" in extract_claim(body, "powf").actual


def test_a_version_may_follow_the_name_and_a_dash() -> None:
    """Wheels and reporters write ``tvm-0.26.0``. A remark in parentheses may stand before a version too."""
    assert find_versions([Passage(text="I use tvm-0.26.0 here.")], "tvm") == ("0.26.0",)
    assert find_versions([Passage(text="(The other backend is fine.) 3.7.0")], "iree") == ("3.7.0",)


@pytest.mark.parametrize(
    ("sentence", "printed"),
    [
        ("Output of the run: `3`", "3"),
        ("What comes out: `[[-1. -1.]]` and `[[nan nan]]`", "[[-1. -1.]]\n[[nan nan]]"),
        ("The result is 3.", "3"),
        ("It prints -0.5, on every run.", "-0.5"),
        ("The result is 3 times too large.", ""),
        ("It fails in `build` since 3.4.", ""),
    ],
)
def test_values_in_the_section_on_the_actual_behaviour_are_printed(sentence: str, printed: str) -> None:
    """Under such a heading a value needs no verb before it. Elsewhere a single figure may count anything."""
    program = "```python\nimport tvm\nprint(tvm.mean())\n```"
    found = extract_repro(
        f"### Actual behavior\n\nWrong numbers. {sentence}\n\n### Steps\n\n{program}\n", "tvm: mean is wrong"
    )
    assert found.claim.actual == printed


def test_code_without_a_fence_is_no_description_of_the_failure() -> None:
    """A traceback quotes the lines of the testcase, whatever the failure is."""
    body = """
    from tvm import te
    stage = te.compute((4, 4), lambda i, j: i * 4 + j, name="row_major_index")
    print(stage.op.missing)

    It fails since the last update.
    """
    told = extract_claim(body, "[Bug] tvm te.compute fails").told
    assert "It fails since the last update." in told
    assert "row_major_index" not in told


OUTPUT = """
    ### Actual behavior

    {said}

    ### Steps to reproduce

    ```python
    import tvm
    x = tvm.run()
    print(x.low, x.high){comment}
    ```
    {more}
"""


@pytest.mark.parametrize(
    ("said", "comment", "more", "actual", "expected"),
    [
        ("The numbers are wrong.", "  # gives 7 3", "", "7 3", ""),
        ("The numbers are wrong.", "  # expected 3 7", "", "", "3 7"),
        ("The numbers are wrong.", "  # 7 3", "\n    Expected 3 7 here.", "7 3", "3 7"),
        ("The numbers are wrong.", "  # 3 7", "\n    Expected 3 7 here.", "", "3 7"),
        ("The numbers are wrong.", "  # 7 3, expected 3 7", "", "7 3", "3 7"),
        ("The numbers are wrong.", "  # [7 3] (numpy gives [3 7])", "", "[7 3]", "[3 7]"),
        ("The numbers are wrong.", "  # [7 3]\n    # expected something like [3 7]", "", "[7 3]", "[3 7]"),
        ("The numbers are wrong.", "  # the bounds of 3 ranges", "", "", ""),
        ("The numbers are wrong. What comes out: `low 7 high 3`", "", "", "low 7 high 3", ""),
        ("Wrong numbers.\n\n    `low 7 high 3`", "", "", "low 7 high 3", ""),
        ("Wrong numbers.", "", "\n    gives 2xf32=7 nan", "2xf32=7 nan", ""),
        ("Wrong: it prints `[7.]` and `[3.]`", "", "", "[7.]\n[3.]", ""),
    ],
)
def test_output_is_read_from_comments_rows_and_spans(
    said: str, comment: str, more: str, actual: str, expected: str
) -> None:
    claim = extract_claim(OUTPUT.format(said=said, comment=comment, more=more), "[Bug] tvm: wrong result")
    assert (claim.actual, claim.expected) == (actual, expected)


@pytest.mark.parametrize(
    ("title", "actual"),
    [
        ("cbrt(inf) is NaN", "nan"),
        ("softmax on CPU: NaNs for rows of zeros", "nan"),
        ("max with NaN inputs is wrong", ""),
        ("relu turns NaN into 0", ""),
    ],
)
def test_a_title_may_say_that_a_result_is_not_a_number(title: str, actual: str) -> None:
    said = "I get it on Ubuntu 22.04. I see the `axis` argument.\n\n```python\nimport tvm\nprint(tvm.x(3))\n```"
    assert extract_claim(said, f"tvm: {title}" if actual == "" else title).actual == actual


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("[Performance] Compiling a model became ten times slower", ClaimKind.SLOW),
        ("Compile time regression with large constants", ClaimKind.SLOW),
        ("Building takes 8x as long since the last release", ClaimKind.SLOW),
        ("Memory leak when a module is loaded in a loop", ClaimKind.MEMORY),
        ("Peak memory of a small program grows with every call", ClaimKind.MEMORY),
        ("Wrong result on the slow path of softmax", ClaimKind.WRONG_RESULT),
        ("Segfault, and slow before that", ClaimKind.CRASH),
        ("Tuning never terminates and is slow", ClaimKind.HANG),
    ],
)
def test_claims_about_time_and_memory_have_kinds_of_their_own(title: str, kind: ClaimKind) -> None:
    assert extract_claim("```python\nimport tvm\nprint(tvm.__version__)\n```", title).kind is kind


PRINTED = "import tvm\nx = tvm.var('x')\nprint(tvm.abs(x))\n"


@pytest.mark.parametrize(
    ("body", "actual", "expected"),
    [
        (f"```\n{PRINTED}\nOutput:\n(x - x)\n```\n", "(x - x)", ""),
        (f"```python\n{PRINTED}```\n\n```\nExpected:\n3.0 4.0\n\nGot:\n0.0 4.0\n```\n", "0.0 4.0", "3.0 4.0"),
        (f"```python\n{PRINTED}```\n\n```\n# actual output:\n0.5\n# the expected result:\n0.7\n```\n", "0.5", "0.7"),
        (f"```python\n{PRINTED}```\n\ngives\n\n```\n3.0 4.0\nresult: 5\n```\n", "3.0 4.0\nresult: 5", ""),
        (f"```python\n{PRINTED}```\n\n### Expected\n\n```\nOutput:\n1.0\n```\n", "", "1.0"),
    ],
)
def test_a_label_inside_a_block_names_the_output_below_it(body: str, actual: str, expected: str) -> None:
    """The label itself is no output."""
    claim = extract_repro(body, title="abs gives wrong values").claim
    assert (claim.actual, claim.expected) == (actual, expected)
    assert claim.signature is None or claim.signature.message == actual.split("\n")[0]


def test_comments_below_a_print_state_its_output() -> None:
    """Only those that name what they hold, and only below the print."""
    found = extract_claim(
        """
        tvm gives wrong values.

        ```python
        import tvm
        # prints: 9
        out = tvm.runtime.tensor([1])
        print(out)
        # prints:  [1.]
        # should print: [128.]
        # see line 12
        ```
        """
    )
    assert (found.actual.strip(), found.expected.strip()) == ("[1.]", "[128.]")


PROGRAM = "import tvm\nfrom tvm import relax\nx = relax.Var('x')\n"


@pytest.mark.parametrize(
    "remark",
    [
        "relax.blur(x)\n\n'''\nTraceback (most recent call last):\nTypeError: blur takes two inputs\n'''\n",
        "relax.blur(x)\n'''\nTypeError: blur takes two inputs\n'''\nrelax.blend(x)\n",
        "relax.blur(x)\n# Traceback (most recent call last):\n#   File\n# TypeError: blur takes two inputs\n",
        "relax.blur(x)\n# TypeError: blur takes two inputs\n",
        "relax.blur(x)  # raises TypeError: blur takes two inputs\n",
    ],
)
def test_a_failure_may_be_stated_in_the_program_alone(remark: str) -> None:
    """In a string that stands alone, in comments below the program, beside the call that fails."""
    found = extract_claim(f"It does not work.\n\n```python\n{PROGRAM}{remark}```\n", "tvm: blur is refused")
    assert found.signature is not None
    assert (found.signature.type, found.signature.message) == ("TypeError", "blur takes two inputs")


@pytest.mark.parametrize(
    "remark",
    [
        "relax.blur(x)  # should raise TypeError: blur takes two inputs\n",
        "relax.blur(x)  # with one input it works, no TypeError: fine\n",
        "# relax.blur(y)  # TypeError: blur takes two inputs\nrelax.blur(x)\n",
        "relax.blur(x)  # a TypeError\n",
    ],
)
def test_a_remark_about_another_program_is_no_failure(remark: str) -> None:
    """What ought to happen, what works, a call that is left out, a name without a message."""
    found = extract_claim(f"It does not work.\n\n```python\n{PROGRAM}{remark}```\n", "tvm: blur is refused")
    assert found.signature is None


@pytest.mark.parametrize(
    ("title", "said", "named"),
    [
        (
            "[Bug] ValueError: the axis check is too strict",
            "A `ValueError` occurs in the import with the message `axis 3 is out of the range of rank 2`.",
            ("ValueError", "axis 3 is out of the range of rank 2"),
        ),
        (
            "[Bug] import fails",
            'A TypeError is thrown. The error message is: "cannot read a tensor of rank two".',
            ("TypeError", "cannot read a tensor of rank two"),
        ),
        (
            "The pass breaks dominance",
            "It makes a cycle, and the verifier says `operand #0 does not dominate this use`.",
            ("mlir-error", "operand #0 does not dominate this use"),
        ),
    ],
)
def test_a_message_that_a_sentence_quotes_comes_before_the_title(
    title: str, said: str, named: tuple[str, str]
) -> None:
    """The title has the reporter's own words behind the name of the exception."""
    found = extract_repro(f"{said}\n\n```python\nimport tvm\ntvm.build(0)\n```\n", title).claim.signature
    assert found is not None
    assert (found.type, found.message) == named


def test_a_message_that_the_reporter_wishes_is_no_failure() -> None:
    said = 'The TypeError should have the message "cannot read a tensor of rank two".'
    found = extract_repro(f"{said}\n\n```python\nimport tvm\ntvm.build(0)\n```\n", "[Bug] import fails").claim
    assert found.signature is None or found.signature.message != "cannot read a tensor of rank two"


@pytest.mark.parametrize(
    ("title", "body", "kind"),
    [
        ("Size mismatch of a slice", "This is rejected with an error.", ClaimKind.ERROR),
        ("Mismatched types in a cast", "An exception is raised.", ClaimKind.ERROR),
        ("Size mismatch of a slice", "The last rows are wrong.", ClaimKind.WRONG_RESULT),
        ("Mismatch with NumPy", "Comparing them raises an error in my script.", ClaimKind.WRONG_RESULT),
    ],
)
def test_types_that_do_not_fit_together_are_no_wrong_values(title: str, body: str, kind: ClaimKind) -> None:
    """If the text says that an error is raised. A mismatch of values stays one."""
    program = "\n\n```mlir\nfunc.func @f(%x: i32) -> i32 {\n  return %x : i32\n}\n```\n"
    assert extract(make_issue(body + program, title, "iree-org/iree")).claim.kind is kind


SESSION = """The folder is wrong, by this definition:

```
if (is_bool(out)) {{
    out = in != 0
}}
```

{below}

```
$ iree-opt a.mlir --canonicalize
func.func @f() -> i1 {{
  %c = arith.constant false
  return %c : i1
}}
```

```mlir
func.func @f() -> i1 {{
  %0 = arith.constant true
  return %0 : i1
}}
```
"""


def test_what_a_typed_command_printed_is_its_output() -> None:
    """A block that nothing introduces may be a part of a specification. A block that is introduced is output."""
    alone = extract(make_issue(SESSION.format(below=""), "Wrong constant", "iree-org/iree")).claim
    assert "arith.constant false" in alone.actual
    assert "is_bool" not in alone.actual
    shown = "It prints:\n\n```\nresult = 7\n```"
    assert (
        "result = 7"
        in extract(make_issue(SESSION.format(below=shown), "Wrong constant", "iree-org/iree")).claim.actual
    )


def test_a_comment_that_states_two_values_is_a_claim_of_wrong_values() -> None:
    """The words around it may name no failure: "it rounds half up"."""
    found = extract_repro(
        """
        ```python
        import tvm
        print(tvm.round([0.5, 2.5]))   # got [1. 3.], want [0. 2.]
        ```
        """,
        "round() rounds half up",
    )
    assert found.claim.kind is ClaimKind.WRONG_RESULT
    assert (found.claim.actual, found.claim.expected) == ("[1. 3.]", "[0. 2.]")


PRINTING = """
        ```mlir
        func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
          return %a : tensor<4xf32>
        }
        ```
        ```sh
        iree-compile --iree-hal-target-backends=vmvx f.mlir -o f.vmfb
        iree-run-module --module=f.vmfb --input=4xf32=1
        ```
"""


def test_the_output_of_a_good_release_is_expected() -> None:
    """The sentence names the release last before the value, and the title says what comes out today."""
    found = extract_repro(
        f"""{PRINTING}
        With 3.13.0 it comes out as NaN. It used to be right: with 3.1.0 the same commands print `4xf32=1 2 3 4`.
        """,
        "powf returns NaN",
        "iree-org/iree",
    )
    assert (found.claim.actual, found.claim.expected) == ("nan", "4xf32=1 2 3 4")
    assert found.claim.versions == ("3.13.0",)


def test_a_whole_row_counts_beside_a_single_value() -> None:
    found = extract_repro(
        f"""{PRINTING}
        `-8 rem 3` must be `-2`. The backend gives `1` for the last element.

        Result: `4xf32=-1 1 1.5 1`
        """,
        "remf has the wrong sign",
        "iree-org/iree",
    )
    assert (found.claim.actual, found.claim.expected) == ("1\n4xf32=-1 1 1.5 1", "-2")


def test_a_failure_in_an_aside_is_not_the_claim() -> None:
    """A block shows what the program prints, the report tells what is right, and the title names no error."""
    aside = "Wrapping the value is no way out, that dies with `FAILED_PRECONDITION; variant is not a value type`."
    found = extract_repro(
        f"""{PRINTING}
        Output:
        ```
        4xf32=0 0 0 0
        ```
        I expected about 0.05 and `4xf32=1 2 3 4`.

        {aside}
        """,
        "float arguments arrive as zero",
        "iree-org/iree",
    )
    assert found.claim.kind is ClaimKind.WRONG_RESULT
    assert (found.claim.actual, found.claim.expected) == ("4xf32=0 0 0 0", "4xf32=1 2 3 4")


@pytest.mark.parametrize(
    "intro",
    [
        "With 3.9.0:",
        "With 3.9.0 (tail of each):",
        "3.9.0 gives",
        "3.9.0 prints:",
        "Output with 3.9.0, which is also what `np.add` says:",
    ],
)
def test_the_block_below_a_good_release_is_expected(intro: str) -> None:
    found = extract_repro(
        f"""{PRINTING}
        3.9.0 works. {intro}
        ```
        4xf32=1 2 3 4
        ```
        With 3.13.0:
        ```
        4xf32=0 0 0 0
        ```
        """,
        "wrong values since the upgrade",
        "iree-org/iree",
    )
    assert (found.claim.actual, found.claim.expected) == ("4xf32=0 0 0 0", "4xf32=1 2 3 4")


PRINTS_ROW = """
    ```python
    import tvm
    print(tvm.__version__)
    print(tvm.run())
    ```
    Output:
    ```
    0.27.0
    [2 -1 -1]
    ```
"""


def test_a_value_behind_a_name_is_no_version() -> None:
    found = extract_repro(PRINTS_ROW.replace("[2 -1 -1]", "float32 1.6e-07\n    float16 0.2031"), "wrong values")
    assert found.claim.actual == "float32 1.6e-07\nfloat16 0.2031"


def test_the_version_of_the_build_is_no_result() -> None:
    found = extract_repro(f"{PRINTS_ROW}\n    I expected `[2 0 0]`.", "wrong indices from argmax")
    assert (found.claim.actual, found.claim.expected) == ("[2 -1 -1]", "[2 0 0]")
    assert found.claim.versions == ("0.27.0",)


@pytest.mark.parametrize(
    ("remark", "kind"),
    [
        ("(One process died with SIGSEGV, which I cannot repeat.)", ClaimKind.WRONG_RESULT),
        ("Then the process dies with SIGSEGV.", ClaimKind.CRASH),
    ],
)
def test_a_crash_in_parentheses_is_no_claim_beside_a_printed_output(remark: str, kind: ClaimKind) -> None:
    assert extract_repro(f"{PRINTS_ROW}\n    {remark}", "argmax of masked rows").claim.kind is kind


@pytest.mark.parametrize(
    ("remark", "kind"),
    [
        ("The error itself is right, please look at the last line.", ClaimKind.WRONG_RESULT),
        ("The error is wrong.", ClaimKind.ERROR),
    ],
)
def test_an_error_that_is_meant_is_no_claim(remark: str, kind: ClaimKind) -> None:
    """The report is about what the run prints beside the error."""
    found = extract_repro(
        f"""{PRINTING}
        3.9.0 works. With 3.9.0:
        ```
        INVALID_ARGUMENT; input0 shape dimension 0 mismatch; expected 4 but have 3
        at a.mlir:2:3
        ```
        With 3.13.0:
        ```
        INVALID_ARGUMENT; input0 shape dimension 0 mismatch; expected 4 but have 3
        at -
        ```
        {remark}
        """,
        "places are gone since the upgrade",
        "iree-org/iree",
    )
    assert found.claim.kind is kind


@pytest.mark.parametrize(
    ("command", "said", "actual"),
    [
        ("iree-opt --cse a.mlir", "In my output dims 1, 3 and 5 (so must be 0) are wrong.", ""),
        ("iree-opt --cse a.mlir", "It prints `1, 3`, which must be 0.", "1, 3"),
    ],
)
def test_a_number_of_a_sentence_is_no_output_of_a_pass(command: str, said: str, actual: str) -> None:
    """A pass prints a program, in which most numbers occur. A number in a code span is quoted."""
    body = f"{said}\n\n```mlir\nfunc.func @f() {{\n  return\n}}\n```\n\n```\n{command}\n```\n"
    assert extract_repro(body, "wrong ids", "iree-org/iree").claim.actual == actual


def test_the_output_of_time_is_a_claim_about_time() -> None:
    program = "```mlir\nfunc.func @f() {\n  return\n}\n```"
    body = f"{program}\n\n```\ntime iree-compile a.mlir -o a.vmfb\n\nreal    1m20.976s\n```"
    claim = extract_repro(body, "compiling takes more than a minute", "iree-org/iree").claim
    assert (claim.kind, claim.actual, claim.signature) == (ClaimKind.SLOW, "", None)


def test_a_message_that_quotes_a_name_in_two_backticks_is_read_whole() -> None:
    """A single backtick ends the code span. The sentence after it is no part of the message."""
    said = "`RuntimeError: Global Function ``my.f`` is already registered` and that is all."
    found = extract_claim(f"{said}\n\n```python\nimport tvm\ntvm.f()\n```\n", "tvm registers no function").signature
    assert found is not None
    assert found.message == "Global Function ``my.f`` is already registered"


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("I expect `[FAILED]` for such values.", ClaimKind.ACCEPTED),
        ("It should exit with code 1.", ClaimKind.ACCEPTED),
        ("It should not report FAILED.", ClaimKind.WRONG_RESULT),
    ],
)
def test_a_tool_that_should_report_a_failure_accepts(sentence: str, kind: ClaimKind) -> None:
    body = f"{PRINTING}\n        ```\n        [SUCCESS] all function outputs matched\n        ```\n        {sentence}"
    assert extract_repro(body, "the comparison reports SUCCESS for NaN", "iree-org/iree").claim.kind is kind


def test_an_expression_like_the_printed_one_is_the_expected_output() -> None:
    """A span that the code has, or a name in use, is none."""
    printed = PRINTS_ROW.replace("[2 -1 -1]", "T.load(meta[0], i, j) * T.load(meta[1], j) + T.f32(1.0)")
    notes = "My notes have `A[i, j] * B[j] + T.f32(1.0)` there; `tvm.run()` and `meta[0]` stay."
    found = extract_repro(f"{printed}\n    {notes}", "expressions print as soup: wrong output")
    assert found.claim.expected == "A[i, j] * B[j] + T.f32(1.0)"


def test_a_program_that_compares_what_it_prints_claims_wrong_values() -> None:
    """No error is quoted, and the title names none."""
    found = extract_repro(
        """
        ```python
        import numpy as np, tvm
        x = np.arange(8, dtype="uint8")
        print("tvm  ", tvm.compile(x)(x).numpy())
        print("numpy", x * 100)
        ```
        A byte can't hold 900.
        """,
        "tvm floordiv of bytes is off",
    )
    assert found.claim.kind is ClaimKind.WRONG_RESULT


def test_the_output_below_the_program_counts_before_that_of_another_way_to_run_it() -> None:
    found = extract_repro(
        """
        ```py
        import iree.compiler as ic, iree.runtime as rt
        code = ic.compile_str("func.func @f(%a: f32) -> f32 { return %a : f32 }", target_backends=["llvm-cpu"])
        open("f.vmfb", "wb").write(code)
        print(rt.load_vm_flatbuffer(code, driver="local-sync").f(2.0))
        ```

        ```
        0.0
        ```

        should be 2.0. the same with the tool:

        ```
        $ iree-run-module --module=f.vmfb --function=f --input=2.0
        result[0]: f32=2
        ```
        """,
        "float arguments arrive as zero",
        "iree-org/iree",
    )
    assert found.testcase.steps == (("python", "repro.py"),)
    assert (found.claim.actual, found.claim.expected) == ("0.0", "2.0")


def test_a_version_in_parentheses_may_have_two_parts() -> None:
    assert extract_claim("tvm is whatever pip gave me this week (0.26)").versions == ("0.26",)
    assert extract_claim("it takes a ratio (0.25)").versions == ()


def test_the_result_of_a_run_that_is_no_step_is_not_the_claim() -> None:
    """Another backend is named in a sentence, and its result stands below."""
    found = extract_repro(
        f"""{PRINTING}
        ```
        EXEC @f
        result[0]: hal.buffer_view
        4xf32=0 1 1 2
        ```
        The same with `--iree-hal-target-backends=llvm-cpu`:
        ```
        EXEC @f
        result[0]: hal.buffer_view
        4xf32=0 0 0 1
        ```
        """,
        "vmvx gives other values than llvm-cpu",
        "iree-org/iree",
    )
    assert "0 1 1 2" in found.claim.actual
    assert "0 0 0 1" not in found.claim.actual


def test_quoted_outputs_decide_before_a_title_that_says_cannot() -> None:
    printed = PRINTS_ROW.replace("[2 -1 -1]", "T.load(meta[0], i, j) + T.f32(1.0)")
    found = extract_repro(f"{printed}\n    I want `x[i, j] + T.f32(1.0)` there.", "can't read printed expressions")
    assert found.claim.kind is ClaimKind.WRONG_RESULT
    assert found.claim.expected == "x[i, j] + T.f32(1.0)"


def test_output_in_the_section_on_the_actual_behaviour_is_printed() -> None:
    """``there is no error`` above it does not make it right."""
    body = """
        ### Expected behavior
        [1 0]
        ### Actual behavior
        The sum works and there is no error, but the ones are in the wrong places:
        ```
        [1 1]
        ```
        ### Steps to reproduce
        ```python
        import tvm
        print(tvm.run())
        ```
    """
    assert "[1 1]" in extract_repro(body, "wrong gradient").claim.actual


def test_a_list_of_packages_is_neither_a_command_nor_output() -> None:
    packages = "iree-base-compiler  3.6.0\n    iree-base-runtime   3.6.0\n    numpy 2.x, python 3.11, linux"
    found = extract_repro(f"{PRINTS_ROW}\n    I expected `[2 0 0]`.\n\n    ```\n    {packages}\n    ```\n", "argmax")
    assert found.claim.actual == "[2 -1 -1]"
    assert found.testcase.steps == (("python", "repro.py"),)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("module 'tvm.runtime' has no attribute 'queue'", "AttributeError"),
        ("'Module' object has no attribute 'queue'", "AttributeError"),
        ("No module named 'tvm.queue'", "ModuleNotFoundError"),
        ("cannot import name 'queue' from 'tvm.runtime'", "ImportError"),
        ("compile() got an unexpected keyword argument 'queue'", "TypeError"),
    ],
)
def test_a_message_of_python_tells_its_exception(message: str, name: str) -> None:
    for title, body in ((message, "It worked yesterday."), ("tvm fails", f"I see {message} since yesterday.")):
        signature = extract_claim(body, title).signature
        assert signature is not None
        assert (signature.type, signature.message) == (name, message)


def test_what_a_compiler_does_not_do_is_an_error() -> None:
    """Whatever words for wrong things the sentences have."""
    for verb in ("lower", "legalize", "parse", "bufferize"):
        claim = extract_claim("An illegal cast comes out of it. It goes wrong in a pass.", f"conv does not {verb}")
        assert claim.kind is ClaimKind.ERROR


def test_a_told_exit_status_is_a_signal() -> None:
    """The output shows the status, and a remark names the signal."""
    body = (
        "It should print zeros, 245 is -11 I think (SIGSEGV).\n"
        f"{CODE}\nOutput:\n```\nEXEC @sum\nexit 245\n```\nExpected `4xf32=0 0 0 0`\n"
    )
    claim = extract_claim(body, "sum of an empty tensor dies with exit code 245")
    assert (claim.kind, claim.signature and claim.signature.type) == (ClaimKind.CRASH, "SIGSEGV")


def test_shown_values_make_a_report_about_values() -> None:
    """No word calls them wrong."""
    table = "| i | spec | 0.27.0 |\n|---|---|---|\n| -1 | 2 4 | 7 0 |\n| 2 | 10 12 | 10 12 |\n"
    body = f"The start is not clamped.\n\n{table}{CODE}"
    claim = extract_claim(body, "gather does not clamp")
    assert (claim.kind, claim.shown) == (ClaimKind.WRONG_RESULT, ("-1 2", "2 4", "7 0", "10 12"))


def test_a_comment_may_call_its_value_wanted() -> None:
    body = (
        "**TVM 0.27.0, CPU**\n\n```python\nimport tvm\nprint(tvm.f())  # 3, 6, 9 wanted\n```\nI get\n"
        "```\n[9.0, 9.0, 9.0]\n```\n"
    )
    claim = extract_claim(body, "outputs are reused")
    assert (claim.actual, claim.expected, claim.versions) == ("[9.0, 9.0, 9.0]", "3, 6, 9", ("0.27.0",))


def test_a_name_behind_the_right_value_is_no_right_value() -> None:
    body = f"ord(NaN, 1) must be 0 by definition, `one` also.{CODE}\nIt prints\n\n```\n1\n```\n"
    assert extract_claim(body, "wrong comparison").expected != "one"


def test_a_single_value_of_an_expected_row_is_no_row() -> None:
    body = (
        f"`(-3)^3` should be -27 and `0^0` should be 1.{CODE}\nIt prints\n```\n8 nan nan\n```\nExpected: `8 -27 1`\n"
    )
    assert extract_claim(body, "nan for a negative base").expected == "8 -27 1"


def test_a_result_that_is_different_is_wrong_whatever_is_slow() -> None:
    body = f"After the pass the label map is different.{CODE}\nWorkaround: leave the pass out (slow on our board)."
    assert extract_claim(body, "ConvertLayout does not remap an axis").kind is ClaimKind.WRONG_RESULT


@pytest.mark.parametrize(
    ("title", "said", "system"),
    [
        ("JIT fails", "It aborts on my MacBook (macOS 15). On my Linux box the same commit prints ones.", "macOS"),
        ("JIT fails", "Windows 11 only, not on Linux.", "Windows"),
        ("[macOS] JIT fails", "It aborts.", "macOS"),
        ("JIT fails", "It says `OSError: dlopen(libtvm.dylib): image not found`", "macOS"),
        ("JIT fails", "TVM 0.25, macOS 15.5, M2.", ""),
        ("Schedules reject arguments on Python 3.14", "With 3.13 it works.", "Python 3.14"),
        ("Schedules reject arguments on Python 3.11", "It fails.", ""),
        ("JIT fails", "It fails on Ubuntu too, as on the MacBook.", ""),
        ("Pooling windows overlap", "The windows are right on Linux with another compiler.", ""),
    ],
)
def test_another_system_is_read_where_the_report_is_about_it(title: str, said: str, system: str) -> None:
    """A machine that the report only names may show what every machine shows."""
    assert extract_claim(f"{said}\n\n```python\nimport tvm\ntvm.f()\n```\n", title).system == system


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("util.func accepts an index that does not exist", "It prints the program."),
        ("An index beyond the operands", "It prints the program. There should be a verifier error."),
    ],
)
def test_a_text_that_misses_an_error_is_about_what_is_accepted(title: str, said: str) -> None:
    assert extract_claim(f"{said}\n\n```python\nimport tvm\ntvm.f()\n```\n", title).kind is ClaimKind.ACCEPTED


@pytest.mark.parametrize(
    ("block", "said", "actual", "expected"),
    [
        ("$ iree-opt --cse a.mlir | grep -c math.exp\n3", "The count should be 2 in both cases.", 3, 2),
        ("iree-opt --cse a.mlir | grep math.exp | wc -l", "prints 4 here. I expect 1.", 4, 1),
        ("iree-opt --cse a.mlir | grep -c math.exp", "gives 0", 0, None),
        ("iree-opt --cse a.mlir | grep -c math.exp", "`iree-opt a.mlir | grep -c x` prints 7.", 7, None),
        ("$ iree-opt --cse a.mlir | grep -c math.exp\n3\n$ iree-opt a.mlir | grep -c math.exp\n3", "", 3, None),
    ],
)
def test_the_number_that_a_filter_counts_is_the_claim(
    block: str, said: str, actual: int, expected: int | None
) -> None:
    program = "func.func @f(%a: f32) -> f32 {\n  return %a : f32\n}"
    claim = extract_claim(f"It goes wrong.\n\n```mlir\n{program}\n```\n\n```\n{block}\n```\n{said}\n", "--cse")
    told = ROWS.read(claim.actual), ROWS.read(claim.expected)
    assert (claim.kind, *told) == (ClaimKind.COUNT, actual, expected)


@pytest.mark.parametrize(
    "after", ["Too many.\n", "It gives 2 tensors of garbage.\n", "The command returns 0, so CI does not notice.\n"]
)
def test_a_number_elsewhere_in_the_text_is_not_what_a_filter_counts(after: str) -> None:
    program = "func.func @f(%a: f32) -> f32 {\n  return %a : f32\n}"
    claim = extract_claim(
        f"The model returns 2 tensors. Tiles should be 64 in both.\n\n```mlir\n{program}\n```\n\n"
        "```\niree-opt --cse a.mlir | grep -c math.exp\n```\n" + after,
        "--cse",
    )
    assert claim.kind is not ClaimKind.COUNT


def test_a_number_that_an_unknown_filter_prints_is_no_output() -> None:
    """Neither is what a program says of its version."""
    claim = extract_claim(
        "Nothing at all is changed.\n\n```mlir\nfunc.func @f(%a: f32) -> f32 {\n  return %a : f32\n}\n```\n\n"
        "```\n$ iree-opt --cse a.mlir | grep -c -E '(expand)+_shape'\n0\n```\n\n"
        "iree-opt --version:\n\n```\nIREE, at 3\n```\n",
        "--cse does nothing",
    )
    assert claim.actual.startswith("func.func @f")


@pytest.mark.parametrize(("said", "kind"), [("once", ClaimKind.WRONG_RESULT), ("now always", ClaimKind.CRASH)])
def test_a_crash_that_was_met_once_beside_printed_values_is_a_remark(said: str, kind: ClaimKind) -> None:
    shown = "It prints this:\n\n```\n[[0. 1.]\n [6.9e-44 0.]]\n```\n\n"
    body = f"{shown}With a large batch I {said} got a segfault.\n{CODE}"
    assert extract_claim(body, "tvm returns random numbers").kind is kind


def test_an_exception_in_parentheses_is_the_failure() -> None:
    body = f"The constructor does not accept these keys (ValueError about an unknown option).\n{CODE}"
    found = extract_claim(body, "tvm: export fails").signature
    assert found is not None
    assert (found.type, found.message) == ("ValueError", "")


def test_a_printed_script_below_a_program_is_output() -> None:
    """Rows that import or call are a program."""
    shown = "```python\nwith R.dataflow():\n    y = R.add(x, z)\n```\n"
    body = f"{CODE}\nresult:\n\n{shown}\nI would expect `R.add(x, x)` to survive."
    assert "R.add(x, z)" in extract_claim(body, "tvm folds too much").actual
    assert extract_claim(body.replace("with R", "import tvm\nwith R"), "tvm folds too much").actual == ""


def test_rows_that_should_be_printed_are_the_claim_beside_a_slower_program() -> None:
    row = "    %2 = linalg.generic {{loops = {count}}} ins(%x : tensor<{count}xf32>)\n\n"
    rows = f"**Expected**\n\n{row.format(count=1)}**Actual**\n\n{row.format(count=4)}"
    program = "```mlir\nfunc.func @f(%x: tensor<4xf32>) {\n  return\n}\n```\n\n    iree-opt a.mlir --cse\n\n"
    body = f"It became 3x slower with the nightlies.\n\n{program}{rows}"
    read = extract_claim(body, "iree-opt: the pass gave up on generics")
    assert (read.kind, "loops = 4" in read.actual) == (ClaimKind.WRONG_RESULT, True)
    assert extract_claim("It became 3x slower with the nightlies.", "iree: slow").kind is ClaimKind.SLOW


def test_an_exit_status_that_a_shell_shows_is_no_output() -> None:
    shell = "```\n$ iree-run-module --module=a.vmfb\n$ echo $?\n245\n```\n"
    assert (
        extract_claim(f"{shell}The shell says `Segmentation fault (core dumped)`.", "iree-run-module dies").kind
        is ClaimKind.CRASH
    )


def test_a_row_below_i_want_is_expected() -> None:
    body = f"{CODE}\nI get\n\n```\nv = T.axis(m, f % 4)\n```\n\nand I want\n\n```\nv = T.axis(m, f)\n```\n"
    read = extract_claim(body, "tvm leaves a modulo")
    assert (read.actual, read.expected) == ("v = T.axis(m, f % 4)", "v = T.axis(m, f)")
