"""Promises that hold for any text."""

from __future__ import annotations

import builtins
import html
import subprocess
import sys
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from bot.extract import NoRepro, Repro, extract
from bot.extract.blocks.markdown import parse_markdown
from bot.extract.command_line.shell import TOOLS
from bot.extract.split.session import ECHO
from tests.bot.extract.reading import make_issue

LINES = st.sampled_from(
    [
        *("", "```", "```python", "````", "~~~", "~~~mlir", "'''", "> ```", "  ```py", "1. ```", "<details>"),
        *("</details>", "import tvm", "from tvm import relax", "x = tvm.f(y)", "def main():", "    return 1"),
        *("print(x)", "@I.ir_module", "class M:", "    pass", ">>> import tvm", ">>> tvm.f()", "... 1"),
        *("$ python a.py", "Traceback (most recent call last):", '  File "a.py", line 1, in <module>'),
        *("ValueError: x", "func.func @f() {", "  return", "}", "%0 = a.b %1 : i32", "iree-compile a.mlir -o a.vmfb"),
        *("$ iree-compile \\", "  --x=y \\", "iree-run-module --module=/tmp/a.vmfb", "// RUN: iree-opt %s"),
        *("a.mlir:1:1: error: bad", "# Title", "### Steps to reproduce", "### Expected behavior", "Works:"),
        *("expected `1` got `2`", "cat > a.mlir <<EOF", "EOF", "“x”", "&lt;", "\tx", "don't (", "[[ 1.0"),
        *("TVM 0.25.0", "iree 3.5.0rc20250605", "- a", "* b", "rm -rf /", "curl x | sh", "    indented = tvm.g()"),
        *("<pre>", "</pre>", "`iree-opt a.mlir`", "Program arguments: iree-compile a.mlir"),
    ]
)
PROMPTS = (
    *("", "$", "$ ", "> ", "# ", "% ", "❯ ", "➜  net ", "PS D:\\a b>", "C:\\Users\\ann>", "(env) C:\\Users\\ann> "),
    *("ann@host:~/net$ ", "(base) ann@host:~$ ", "[ann@host net]# ", "- ", "1. ", "`", "time ", "sudo ", "A=b "),
)
PROGRAMS = (
    *("tvmc", "python -m tvm.driver.tvmc", "python3 a.py", "python -c 'import tvm'", "pytest a.py"),
    *(
        "gdb --args python",
        "iree-compile",
        "../build/tools/iree-opt",
        "iree-run-module.exe",
        "iree-run-mlir",
        "./x/y",
    ),
)
ARGUMENTS = ("", "--help", "-", "--", "a.mlir", "a.mlir \\", "--x=", "a.onnx -o b.tar | tee log 2>&1", "'", "`")
COMMANDS = st.builds(lambda *words: "{}{} {}".format(*words), *map(st.sampled_from, (PROMPTS, PROGRAMS, ARGUMENTS)))
BODIES = st.lists(LINES | COMMANDS | st.text(max_size=30), max_size=60).map("\n".join) | st.text(max_size=400)
TITLES = st.sampled_from(["tvm", "IREE crash", "", "[Bug] wrong result"]) | st.text(max_size=40)

any_issue = given(body=BODIES, title=TITLES)
slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow])


@slow_to_draw
@any_issue
def test_any_text_gives_a_repro_or_a_reason(body: str, title: str) -> None:
    """No text raises. Steps use known tools, and files have plain relative names."""
    match extract(make_issue(body, title)):
        case NoRepro(reason=reason):
            assert reason.endswith(".")
        case Repro(testcase=testcase):
            assert testcase.steps
            assert {step[0] for step in testcase.steps} <= TOOLS
            for name in testcase.files:
                assert name not in ("", ".", "..")
                assert "/" not in name


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_command_behind_any_prompt_gives_a_repro_or_a_reason(program: str) -> None:
    """Alone and in a fence: the text of a prompt is no part of the program's name.

    Each program meets each prompt, each prompt each argument, and each argument each program. `COMMANDS` draws from
    all combinations.
    """
    for place, prompt in enumerate(PROMPTS, start=PROGRAMS.index(program)):
        row = f"{prompt}{program} {ARGUMENTS[place % len(ARGUMENTS)]}"
        for body in (row, f"```\n{row}\n```"):
            assert isinstance(extract(make_issue(body, "tvm")), Repro | NoRepro)


def test_each_prompt_meets_each_argument() -> None:
    """The promise above: so the test of the prompts leaves out only combinations of all three."""
    assert len(PROGRAMS) >= len(ARGUMENTS)
    assert len(PROMPTS) >= len(ARGUMENTS)


@slow_to_draw
@example(body="<pre>\nfunc.func @f() {\n&lt;", title="IREE crash")
@any_issue
def test_spans_point_at_the_source(body: str, title: str) -> None:
    """Each line of a file stands in a span of the file (possibly behind a prompt), or in a repair."""
    subject = make_issue(body, title)
    found = extract(subject)
    if not isinstance(found, Repro):
        return
    source = parse_markdown(subject.body).source
    changed = {ECHO, "straighten-quotes", "unescape", "expand-tabs", "call-main", "run-module"}
    if changed & {repair.kind for repair in found.repairs}:
        return
    added = {repair.detail for repair in found.repairs if repair.kind == "add-import"}
    for name, text in found.testcase.files.items():
        spans = [span for span in found.spans if span.file == name]
        there = "\n".join("\n".join(source[s.lines[0] - 1 : s.lines[1]]) for s in spans)
        there += html.unescape(there)  # inside <pre>, the page shows entities as characters: no repair
        for span in spans:
            assert 1 <= span.lines[0] <= span.lines[1] <= len(source)
        for line in text.split("\n"):
            assert line.strip() in there or line in added, (line, there)


@slow_to_draw
@any_issue
def test_extraction_is_a_function(body: str, title: str) -> None:
    """The same text gives the same result."""
    assert extract(make_issue(body, title)) == extract(make_issue(body, title))


def test_no_part_of_the_issue_is_executed_imported_or_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit hook sees no event while the code is read."""
    events: list[str] = []
    forbidden = ("exec", "import", "open", "socket.connect", "subprocess.Popen", "os.system")
    watching = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in forbidden:
            events.append(f"{event} {arguments[:1]}")

    body = dedent(
        """
        ```python
        import antigravity, this_module_is_not_there
        import os; os.system("touch pwned"); exec("1"); open("/etc/passwd")
        import tvm
        print(tvm.x)
        ```
        `iree-compile $(reboot) a.mlir`
        """
    )
    extract(make_issue(body))  # loads the modules that extraction itself imports lazily
    sys.addaudithook(watch)
    extract(make_issue(body))
    watching = False
    assert events == []
    assert "antigravity" not in sys.modules
    assert builtins.open is open
    assert subprocess.Popen.__module__ == "subprocess"


def test_a_text_beyond_the_limit_is_refused() -> None:
    """The reason names the limit, which is far above the size of any forge's issues."""
    found = extract(make_issue("tvm " * 300_000))
    assert isinstance(found, NoRepro)
    assert "1,000,000" in found.reason
