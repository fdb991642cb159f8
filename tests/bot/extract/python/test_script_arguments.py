"""Tests of scripts that read words from their command line."""

from __future__ import annotations

import pytest

from tests.bot.extract.reading import extract_repro, list_missing

SCRIPT = """    ```python
    import sys
    import tvm
    tvm.compile(sys.argv[1])
    ```
"""


@pytest.mark.parametrize(
    ("command", "words", "missing"),
    [
        ("", (), ["the words that the program reads from its command line"]),
        ("python run.py llvm", ("llvm",), []),
        ("$ TVM_LOG=1 python3 tools/run.py llvm -v 2>&1 | tail -3", ("llvm", "-v"), []),
        ("python run.py /models/a.onnx", ("/models/a.onnx",), ["/models/a.onnx"]),
        ("python run.py w4a16/g128 -o /tmp/m.so", ("w4a16/g128", "-o", "/tmp/m.so"), []),
        ("python run.py", (), ["the words that the program reads from its command line"]),
    ],
)
def test_a_script_gets_the_words_of_the_reports_command(
    command: str, words: tuple[str, ...], missing: list[str]
) -> None:
    shown = f"    ```console\n    {command}\n    ```\n" if command else ""
    found = extract_repro(f"{SCRIPT}{shown}    It crashes.\n", "tvm.compile crashes")
    assert found.testcase.steps == (("python", "repro.py", *words),)
    assert [name for _, name in list_missing(found)] == missing


def test_each_command_of_the_report_is_a_run() -> None:
    """Two runs of one script may be what the report compares."""
    commands = "$ python a.py llvm\n    1\n    $ python a.py c\n    2\n    $ python a.py llvm\n    1"
    shown = f"    ```console\n    {commands}\n    ```\n"
    found = extract_repro(f"{SCRIPT}{shown}    The two differ.\n", "wrong result of the C target")
    assert found.testcase.steps == (("python", "repro.py", "llvm"), ("python", "repro.py", "c"))


def test_a_script_that_checks_its_words_runs_without_any() -> None:
    text = SCRIPT.replace("sys.argv[1]", 'sys.argv[1] if len(sys.argv) > 1 else "llvm"')
    assert list_missing(extract_repro(f"{text}    It crashes.\n", "tvm.compile crashes")) == []


def test_what_the_program_has_written_is_no_other_program() -> None:
    """A console session that shows the printed module, which looks like a program."""
    session = """    ```console
    $ cat a.py
    import tvm
    mod = tvm.A()
    with open("dump.py", "w") as f:
        f.write(mod.script())
    tvm.compile(mod)
    $ python a.py
    ValueError: no way
    $ head -5 dump.py
    from tvm.script import ir as I
    @I.ir_module
    class Module:
        pass
    Module.show()
    $ python -c "import tvm; print(tvm.__version__)"
    0.26.0
    ```
"""
    found = extract_repro(session, "tvm.compile raises ValueError")
    assert "class Module" not in "".join(found.testcase.files.values())
    assert list_missing(found) == []


@pytest.mark.parametrize(
    ("reads", "missing"),
    [
        ("tvm.load(sys.argv[1])", ["net.onnx"]),
        ("path = sys.argv[1]\n    tvm.load(path)", ["net.onnx"]),
        ("open(sys.argv[1])", ["net.onnx"]),
        ("for path in sys.argv[1:]:\n        open(path).read()", ["net.onnx", "llvm"]),
        ("for path in sys.argv[1:]:\n        print(path)", []),
        ('open(sys.argv[1], "w")', []),
        ("print(sys.argv[1])", []),
    ],
)
def test_a_word_that_the_script_opens_to_read_is_a_file(reads: str, missing: list[str]) -> None:
    """A bare name may be anything; the script tells."""
    script = SCRIPT.replace("tvm.compile(sys.argv[1])", f"{reads}\n    tvm.compile(sys.argv[2])")
    found = extract_repro(
        f"{script}    ```console\n    $ python a.py net.onnx llvm\n    ```\n", "tvm.compile crashes"
    )
    assert [name for _, name in list_missing(found)] == missing
