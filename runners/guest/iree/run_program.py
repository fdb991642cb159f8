"""Which pass an IREE program owes it to that it ends or prints as it does: passes are left out from the nth on.

First those that the command line writes, which are left out by writing less; then LLVM's, for which there is a flag.
"""

from __future__ import annotations

import difflib
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from runners.guest.iree.commands import COMPILERS, ONE_THREAD, SHORTEST_S, Ended, bounded, run
from runners.guest.iree.pipelines import first_passes, passes_of

MOST_LLVM_PASSES = 1 << 22
_RUNNING = re.compile(
    r"BISECT: running pass \((?P<number>\d{1,9})\) (?P<name>.{1,120}?) on (?P<where>.{1,200})$", re.M
)

Json = dict[str, Any]


def written(steps: Sequence[Sequence[str]], running: int, with_all: Ended, deadline: float) -> Json | None:
    """Of a pipeline on the command line the pass with which the program does what it does with all of them."""
    for at, step in enumerate(steps[:running]):
        for place, word in enumerate(step):
            flag, _, text = word.partition("=")
            passes = passes_of(text) if flag.startswith("--") and step[0] in COMPILERS else []

            def fails(count: int, at: int = at, place: int = place, flag: str = flag, text: str = text) -> bool:
                changed = [list(one) for one in steps]
                changed[at][place] = f"{flag}={first_passes(text, count)}"
                return alike(_ran(changed, running, deadline), with_all)

            if not passes or fails(0):
                continue
            low, high = 0, len(passes)
            while high - low > 1 and time.monotonic() < deadline - 2 * SHORTEST_S:
                middle = (low + high) // 2
                low, high = (low, middle) if fails(middle) else (middle, high)
            return {
                "level": "written",
                "pass": passes[high - 1].name,
                "application": high,
                "passes_without": low,
                "of": len(passes),
                "step": at,
                "place": place,
            }
    return None


def _ran(steps: Sequence[Sequence[str]], running: int, deadline: float) -> Ended | None:
    """None where it does not compile."""
    if any(run(step, deadline).code != 0 for step in steps[:running]):
        return None
    return run(steps[running], deadline)


def llvm(steps: Sequence[Sequence[str]], running: int, with_all: Ended, deadline: float) -> Json | None:
    """The first LLVM pass with which the program does what it does with all of them; None without LLVM passes."""

    def limited(limit: int, more: Sequence[str] = ()) -> tuple[Ended | None, str]:
        """How it runs with the first ``limit`` passes (None: it does not compile), and what compiling printed."""
        said = ""
        for step in steps[:running]:
            flags = (ONE_THREAD, f"--opt-bisect-limit={limit}", *more) if step[0] in COMPILERS else ()
            ended = run(step, deadline, flags)
            if ended.code != 0:
                return None, ended.stderr
            said += ended.stderr
        return run(steps[running], deadline), said

    everything, said = limited(MOST_LLVM_PASSES)
    count = max((int(found["number"]) for found in _RUNNING.finditer(said)), default=0)
    if not alike(everything, with_all) or count == 0:
        return None
    without, _ = limited(0)
    if alike(without, with_all):
        return {"level": "llvm-pass", "application": 0, "of": count, "step": running}
    low, high = 0, count
    while high - low > 1:
        if time.monotonic() > deadline - 2 * SHORTEST_S:
            break  # what is known by now is a range, and still says where
        middle = (low + high) // 2
        ended, _ = limited(middle)
        if alike(ended, with_all):
            high = middle
        else:
            low = middle
    with tempfile.TemporaryDirectory() as folder:
        texts = [_printed(limited, limit, os.path.join(folder, f"{limit}.ll")) for limit in (low, high)]
    _, said = limited(high)
    named = [found for found in _RUNNING.finditer(said) if int(found["number"]) == high]
    name, where = (named[-1]["name"], named[-1]["where"]) if named else ("", "")
    symbol = where[len("function (") : -1] if where.startswith("function (") else where
    return {
        "level": "llvm-pass",
        "pass": name,
        "application": high,
        "passes_without": low,
        "of": count,
        "symbol": symbol if symbol != "[module]" else "",
        "step": running,
        "difference": llvm_difference(texts[0], texts[1], symbol),
    }


def alike(a: Ended | None, b: Ended) -> bool:
    return a is not None and (a.code, a.stdout) == (b.code, b.stdout)


def _printed(limited: Callable[..., object], limit: int, path: str) -> str:
    """The module after the last pass that runs, where LLVM keeps one at that point: not among code generation's."""
    limited(limit, (f"--opt-bisect-print-ir-path={path}",))
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4 << 20)
    except OSError:
        return ""


def llvm_difference(before: str, after: str, symbol: str) -> list[str]:
    """What the pass did to the function, or to the module where it is not of one function."""
    a, b = (function_in(text, symbol) or text for text in (before, after))
    if not a or not b:
        return []
    return bounded(list(difflib.unified_diff(a.splitlines(), b.splitlines(), "before", "after", n=2, lineterm="")))


def function_in(text: str, symbol: str) -> str:
    found = (
        re.search(r"^define [^\n]*@\"?" + re.escape(symbol) + r"\"?\(.*?^\}$", text, re.M | re.S) if symbol else None
    )
    return found[0] if found else ""
