"""How extraction time grows with the size of the text, on text made to make it grow.

    python bench/robustness/extract.py [SIZE]

Each shape is read at SIZE / 4, SIZE / 2, SIZE and 2 × SIZE characters (SIZE defaults to 60,000); a ratio of 2 from
one to the next is linear. Exit status 1 when eight times the text takes more than sixteen times as long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import date
from itertools import pairwise

from bot.extract import extract
from bot.issue import Issue

NOISE_S = 0.2
"""Below this a ratio says nothing: the collector and other processes decide it."""
WORST_RATIO = 16.0
"""Over the whole range, where linear is 8: quadratic would be 64."""

_PYTHON = "```python\nimport tvm\n"
SHAPES: dict[str, Callable[[int], str]] = {
    "10,000 fences per 100 KB": lambda n: "```\na\n```\n" * (n // 10),
    "python fences": lambda n: "```python\nimport tvm\nx = tvm.a(y)\n```\n" * (n // 40),
    "fences of another length": lambda n: "````\n```\n" * (n // 9),
    "one line of quote marks": lambda n: "> " * (n // 2) + "tvm",
    "50-fold quotes": lambda n: ("> " * 50 + "import tvm\n") * (n // 112),
    "list items": lambda n: "tvm\n" + "- a\n" * (n // 4),
    "bold headings": lambda n: "tvm\n\n" + "**a**\n\n" * (n // 7),
    "details": lambda n: "<details>\n" * (n // 10) + "tvm",
    "less-than signs": lambda n: "tvm " + "<" * n,
    "growing runs of backticks": lambda n: "tvm " + "".join("`" * i + " " for i in range(1, int((2 * n) ** 0.5))),
    "code spans": lambda n: "tvm " + "expected `a` got `b` " * (n // 21),
    "unfenced imports": lambda n: "import tvm\n" * (n // 11),
    "unfenced imports and junk": lambda n: "import tvm\n? ?\n" * (n // 15),
    "open brackets": lambda n: _PYTHON + "(" * n + "\n```",
    "minus signs": lambda n: _PYTHON + "x=" + "-" * n + "1\n```",
    "triple quotes": lambda n: _PYTHON + "'''\n" * (n // 4) + "\n```",
    "escaped apostrophes": lambda n: _PYTHON + "\\'" * (n // 2) + "\n```",
    "functions": lambda n: _PYTHON + "".join(f"def f{i}(): return g{i}()\n" for i in range(n // 24)) + "\n```",
    "typographic quotes": lambda n: _PYTHON + "x = “a”\n" * (n // 8) + "```\n",
    "prompts": lambda n: "tvm\n```\n" + ">>> import tvm\n1\n" * (n // 17) + "```\n",
    "blank lines": lambda n: "tvm\n" + "\n" * n + "```\n" + "\n" * n + "```\nimport tvm",
    "spaces": lambda n: "tvm " + " " * n + "\n```\n" + " " * n + "\n```",
    "commands": lambda n: "```sh\n" + "iree-compile a.mlir -o a.vmfb \\\n --x\n" * (n // 38) + "```\n",
    "one command of pipes": lambda n: "```sh\niree-compile " + "| iree-opt a " * (n // 13) + "\n```\n",
    "one command of continuations": lambda n: "```sh\niree-compile " + "\\\n --x=y " * (n // 9) + "\n```\n",
    "one path": lambda n: "```sh\niree-compile " + "/a" * (n // 2) + ".mlir\n```\niree",
    "MLIR functions": lambda n: "```mlir\n" + "func.func @a() {\n}\n" * (n // 19) + "```\niree",
    "MLIR fences": lambda n: "iree-compile a.mlir\n" + "```mlir\nfunc.func @a() {\n}\n```\n" * (n // 30),
    "unfenced MLIR never closed": lambda n: "func.func @a() {\n" * (n // 17) + "iree",
    "diagnostics": lambda n: "```\n" + "a.mlir:1:1: error: x\n" * (n // 21) + "```\niree-compile a.mlir\n",
    "versions": lambda n: "tvm 0.25.0 and " * (n // 15),
    "numbers with dots": lambda n: "tvm " + "1.2." * (n // 4),
    "commits": lambda n: "commit abcdef0123 tvm " * (n // 22),
    "traceback": lambda n: (
        "tvm\n```\nTraceback (most recent call last):\n"
        + '  File "a", line 1, in b\n' * (n // 25)
        + "ValueError: x\n```\n"
    ),
}


def main(size: int) -> int:
    slow = 0
    for name, shape in SHAPES.items():
        seconds = [_seconds(shape(n)) for n in (size // 4, size // 2, size, 2 * size)]
        ratios = [b / a for a, b in pairwise(seconds)]
        bad = seconds[-1] > WORST_RATIO * seconds[0] and seconds[-1] > NOISE_S
        slow += bad
        figures = " ".join(f"{s:7.3f}" for s in seconds), " ".join(f"{r:4.1f}" for r in ratios)
        sys.stdout.write(f"{name:30} {figures[0]} s   × {figures[1]}{'   slower than linear' if bad else ''}\n")
        sys.stdout.flush()
    return 1 if slow else 0


def _seconds(body: str) -> float:
    """The best of three, since everything that disturbs only adds."""
    issue = Issue(source="bench", title="[Bug] tvm crash", body=body, sha256="", created=date(2026, 1, 1))
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        extract(issue)
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000))
