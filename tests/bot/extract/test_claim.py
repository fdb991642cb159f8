"""What the reporter claims."""

from __future__ import annotations

import pytest

from bot.extract import extract
from bot.extract.versions import Passage, find_versions
from runners.protocol import Claim, ClaimKind
from tests.bot.extract.reading import issue


def claim(body: str, title: str = "[Bug] tvm") -> Claim:
    return extract(issue(body, title)).claim


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
        ("IREE", "```\nx.mlir:1:2: error: 'a.b' op bad\n```", ClaimKind.ERROR),
        ("IREE", "```\nStack dump:\n0.\tProgram arguments: iree-compile a.mlir\n```", ClaimKind.CRASH),
    ],
)
def test_kind(title: str, body: str, kind: ClaimKind) -> None:
    """Quoted evidence first, then the title's words, then the prose."""
    assert extract(issue(body + CODE, title)).claim.kind is kind


def test_an_assertion_of_the_testcase_is_a_wrong_result() -> None:
    """The compiler's own assertion is an error; the reporter's check of a value is not."""
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
    assert claim(body).kind is ClaimKind.WRONG_RESULT
    assert claim("`AssertionError: bad scale` (in the frontend)" + CODE).kind is ClaimKind.ERROR


def test_quoted_output_and_the_output_expected_instead() -> None:
    """The oracle compares what a probe prints with these."""
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
    found = claim(body)
    assert (found.actual, found.expected) == ("a 1\nb 2", "a 1\nb 3")
    assert found.kind is ClaimKind.WRONG_RESULT
    assert found.signature is not None
    assert (found.signature.type, found.signature.message) == ("output", "b 2")


def test_expected_output_in_a_code_span() -> None:
    """``I expected `ok``` says it as well as a block."""
    assert claim(f"{CODE}\n    Output:\n\n    ```\n    bad\n    ```\n\n    I expected `ok` here.\n").expected == "ok"


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
    ],
)
def test_versions(text: str, toolchain: str, versions: tuple[str, ...]) -> None:
    """The builds said to fail, in every way people write them; other products and good builds are left out."""
    assert find_versions([Passage(text=text)], toolchain) == versions


def test_a_bare_number_under_a_version_heading_is_a_version() -> None:
    """Issue forms have a field for it."""
    assert find_versions([Passage(text="0.26.0", heading="Environment")], "tvm") == ("0.26.0",)


def test_devices_are_those_of_the_code_and_the_flags() -> None:
    """TVM by where it runs, IREE by backend and run-time device."""
    body = (
        "```python\nimport tvm\nex = tvm.compile(m, target='llvm')\nvm = relax.VirtualMachine(ex, tvm.cpu())\n```\n"
    )
    assert claim(body).devices == ("cpu",)
    assert claim('```python\nimport tvm\ntvm.compile(m, target="cuda -arch=sm_80")\n```\n').devices == ("cuda",)
    run = "`iree-run-module --device=local-task --module=a.vmfb`"
    assert claim(f"`iree-compile --iree-hal-target-backends=llvm-cpu a.mlir`\n{run}\n", "iree").devices == (
        "llvm-cpu",
        "local-task",
    )
