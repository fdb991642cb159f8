"""The work of an extraction grows with the text, not with its square, whatever the text repeats.

Each family of texts is read at two sizes. The ratio of the processor times is compared, never a time: on a busy
machine both grow together. A quadratic reader takes sixteen times as long for four times the text.
"""

from __future__ import annotations

import ast
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings

from bot.extract import Repro, extract, parsed_issue
from bot.extract.blocks.markdown import parse_markdown
from bot.extract.claim import code_remarks
from bot.extract.parsed_issue import MAX_READ_CHARS
from bot.extract.python import parse
from bot.issue import Comment
from runners.toolchains.tvm.reports import python_names
from tests.bot.extract.reading import extract_repro, list_missing, make_issue

LARGE = 32_000
"""Characters of the longer text; the shorter one has a quarter."""
MOST = 9.0
"""Most growth of the time for four times the text. Linear readers stay below six."""
UNNOTICED = 0.2
"""Seconds for `LARGE` characters below which no growth matters: 64 KiB then take a second at most."""

Unit = Callable[[int], str]
"""The n-th part of a text."""

PROGRAM = "import tvm\nimport numpy as np\n"
MODULE = "func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n"
COMMAND = "IREE crashes\n\n```mlir\n" + MODULE + "```\n\n```\niree-compile a.mlir -o b.vmfb"
PLACES: Mapping[str, Callable[[str], str]] = {
    "program": lambda text: f"TVM fails\n```python\n{PROGRAM}{text}\n```\n",
    "function": lambda text: (
        f"TVM fails\n```python\n{PROGRAM}def main():\n  {text.replace(chr(10), chr(10) + '  ')}pass\n```\n"
    ),
    "remark": lambda text: (
        f"TVM fails\n```python\n{PROGRAM}tvm.f()\n# {text.replace(chr(10), chr(10) + '# ')}\n```\n"
    ),
    "string": lambda text: f"TVM fails\n```python\n{PROGRAM}x = '''{text}'''\nprint(x)\n```\n",
    "unfenced": lambda text: f"TVM fails\n\n{PROGRAM}{text}",
    "output": lambda text: f"TVM fails\n```python\n{PROGRAM}tvm.f()\n```\n\n```\n{text}\n```\n",
    "prose": lambda text: f"TVM fails\n```python\n{PROGRAM}tvm.f()\n```\nIt says {text}",
    "command": lambda text: f"{COMMAND} {text}\n```\n",
    "commands": lambda text: f"{COMMAND}\n{text}\n```\n",
    "module": lambda text: f"{COMMAND}\n```\n\n```mlir\n{text}\n```\n",
    "words": lambda text: f"iree-compile crashes\n\n{text}",
    "installation": lambda text: f"TVM fails\n\n```\npip install {text}x\ncmake {text}x\n```\n",
    "duration": lambda text: f"{COMMAND}\n```\n\n```\nreal 1m20.976s{text}x\n```\n",
}
UNITS: Mapping[str, Unit] = {
    "statements": lambda i: f"x{i} = tvm.f(x{i - 1})\n",
    "decorators": lambda i: f"@d{i}\ndef f{i}(): pass\n",
    "names": lambda i: f"y{i}\n",
    "imports": lambda i: f"import m{i}\n",
    "calls": lambda i: f"print('v{i}', np.load('f{i}.npy'))\n",
    "sums": lambda i: f"x = {'1+' * 80}1\n",
    "dictionaries": lambda i: f"x = {'{1:' * 40}2{'}' * 40}\n",
    "conditions": lambda i: f"if x{i}: y{i} = 1\n",
    "words": lambda i: "1_",
    "dots": lambda i: "a.b.",
    "digits": lambda i: "9",
    "blanks": lambda i: " ",
    "rows": lambda i: "#\n",
    "brackets": lambda i: "[(",
    "quotes": lambda i: "'a\" ",
    "ticks": lambda i: "`a`b",
    "spans": lambda i: f"`f{i}(x)` ",
    "files": lambda i: f"f{i}.mlir ",
    "options": lambda i: "--aaa ",
    "flags": lambda i: f"--iree-a{i}=b ",
    "diagnostics": lambda i: f"a{i}.mlir:{i}:1: error: bad\n",
    "compilations": lambda i: f"iree-compile b{i}.mlir -o b{i + 1}.vmfb\n",
    "redirections": lambda i: f"cat f{i} > f{i + 1}.mlir\n",
    "operations": lambda i: f"%{i} = arith.addi %{i}, %{i} : i32\n",
    "functions": lambda i: f"func.func @f{i}() {{ return }}\n",
    "regions": lambda i: "scf.if %a {\n",
    "messages": lambda i: f"ValueError: a{i}\n",
    "values": lambda i: f"It returns {i} instead of {i + 1}. ",
    "versions": lambda i: f"works on 0.{i}.0, fails on 0.{i + 1}.0. ",
    "lists": lambda i: "* a\n",
    "fences": lambda i: f"```python\nx{i} = 1\n```\n",
}

FOUND = {
    "program": ("decorators", "sums"),
    "remark": ("words",),
    "command": ("files",),
    "commands": ("redirections",),
    "installation": ("options",),
    "duration": ("blanks",),
}
"""Texts of which 64 KB once took from five seconds to more than a minute."""


def make_text(place: str, unit: str, size: int) -> str:
    parts, left, number = [], size, 0
    while left > 0:
        parts.append(UNITS[unit](number))
        left, number = left - len(parts[-1]), number + 1
    return PLACES[place]("".join(parts))


def measure(text: str) -> float:
    issue = make_issue(text, title="")
    code_remarks.find_in_code.cache_clear()
    begin = time.thread_time()
    extract(issue)
    return time.thread_time() - begin


def grows_too_fast(place: str, unit: str, *, large: int = LARGE, tries: int = 3) -> bool:
    """True if every try exceeds the ratio: noise makes one large time, and never a small one."""
    short, long = make_text(place, unit, large // 4), make_text(place, unit, large)
    return all((took := measure(long)) > UNNOTICED and took > MOST * measure(short) for _ in range(tries))


@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
def test_no_text_makes_an_extraction_slow(place: str) -> None:
    """Each place of an issue, filled with a fourth of the units; all of them take minutes (`make fuzz`)."""
    extract(make_issue(make_text(place, "statements", 500), title=""))  # imports what it needs
    whole = settings.get_current_profile_name() == "fuzz"
    units = [*list(UNITS)[0 if whole else list(PLACES).index(place) % 4 :: 1 if whole else 4], *FOUND.get(place, ())]
    assert [unit for unit in dict.fromkeys(units) if grows_too_fast(place, unit)] == []


@pytest.mark.thorough
def test_a_quadratic_reader_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With this pattern, 64 KB once took more than a minute."""
    assert not grows_too_fast("remark", "words")
    monkeypatch.setattr(code_remarks, "_NAME", re.compile(r"[\w.]*(?:Error|Exception)\b|Check failed|Traceback"))
    assert grows_too_fast("remark", "words", large=12_000, tries=1)


def count_work(monkeypatch: pytest.MonkeyPatch, size: int) -> Counter[str]:
    """Return how often an extraction of ``size`` statements parses its longest text, and searches all of it."""
    counts: Counter[str] = Counter()

    def count(module: object, name: str, key: Callable[[Any], str]) -> None:
        original = getattr(module, name)

        def counted(*given: Any, **named: Any) -> object:
            counts[key(given)] += 1
            return original(*given, **named)

        monkeypatch.setattr(module, name, counted)

    with monkeypatch.context() as patched:
        monkeypatch = patched
        count(ast, "parse", lambda given: f"parse {given[0]}")
        count(parsed_issue, "find_signature", lambda _: "signature")
        text = "".join(f"@d{i}\ndef f{i}(x): pass\n" for i in range(size))
        extract(make_issue(PLACES["program"](text)))
    return counts


@pytest.mark.parametrize("size", [100, 400])
def test_a_text_is_parsed_once_for_all_readers(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the quoted failure is looked for once, in however long a program. Only equal texts share a tree."""
    counts = count_work(monkeypatch, size)
    assert counts["signature"] == 1
    longest = max((name for name in counts if name != "signature"), key=len)
    assert counts[longest] == 1


def test_a_walk_yields_the_nodes_of_the_standard_library() -> None:
    """In its order, without contexts."""
    tree = ast.parse(
        "async def f(a, *b: int, c=1, **d) -> None:\n  x[0:1], y = {1: [z async for z in y]}, lambda: f'{a!r}'\n"
    )
    expected = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert list(parse.walk(tree)) == expected


def test_no_default_is_searched_for_other_names() -> None:
    """A program has thousands of names, and each search reads the whole report."""
    searched: list[str] = []

    class Pattern:
        def search(self, text: str) -> None:
            searched.append(text)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(python_names, "_ACCELERATOR", Pattern())
        assert python_names.PYTHON.choose_default("d17", "x") is None
        assert searched == []
        assert python_names.PYTHON.choose_default("target", "x") == '"llvm"'
        assert searched == ["x"]


NEEDS_FILE = "TVM fails\n```python\nimport numpy as np, tvm\ny = np.load('weights.npz')\ntvm.f(y)\n```\n"


def reply(*sizes: int) -> tuple[Comment, ...]:
    return tuple(Comment(author="reporter", body="```\n" + "x\n" * (size // 2) + "```\n") for size in sizes)


def count_readings(comments: tuple[Comment, ...], monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], Repro]:
    """Return the length of each text that is read, and the result."""
    sizes: list[int] = []
    original = parse_markdown

    def counted(text: str, **named: Any) -> object:
        sizes.append(len(text))
        return original(text, **named)

    monkeypatch.setattr(parsed_issue, "parse_markdown", counted)
    return sizes, extract_repro(NEEDS_FILE, comments=comments)


@pytest.mark.thorough
def test_replies_share_one_budget_of_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reply lets all text be read again, so the text so far counts again. The answer says what was left out."""
    sizes, found = count_readings(reply(*[60_000] * 5), monkeypatch)
    assert sum(sizes) + sizes[1] <= MAX_READ_CHARS < 7 * 60_000
    (_, name), (kind, told) = list_missing(found)
    assert (name, kind) == ("weights.npz", "rest")
    assert "its author's first 2 of 5 replies were read" in told
    assert "200,000 characters" in told


def test_usual_replies_are_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, found = count_readings(reply(*[2_000] * 5), monkeypatch)
    assert len(sizes) == 6
    assert [kind for kind, _ in list_missing(found)] == ["file"]


@pytest.mark.thorough
def test_replies_to_a_report_without_code_share_the_budget() -> None:
    """None of them is read again."""
    issue = make_issue("TVM fails for me.\n", comments=reply(*[60_000] * 5))
    last = list_missing(extract(issue))[-1]
    assert last[0] == "rest"
    assert "its author's first 3 of 5 replies were read" in last[1]
    whole = list_missing(extract(replace(issue, comments=issue.comments[:3])))
    assert all(kind != "rest" for kind, _ in whole)
