"""Bisect the passes of an IREE program by its run-time behaviour: all passes from the nth on are left out.

The passes that the command line writes come first: a shorter pipeline leaves them out. LLVM's passes come second: a
flag limits their number.
"""

from __future__ import annotations

import difflib
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from runners.guest.iree.commands import COMPILERS, ONE_THREAD, SHORTEST_S, StepResult, limit_lines, run_step
from runners.guest.iree.pipelines import parse_pipeline, truncate_pipeline

MOST_LLVM_PASSES = 1 << 22
_RUNNING = re.compile(
    r"BISECT: running pass \((?P<number>\d{1,9})\) (?P<name>.{1,120}?) on (?P<where>.{1,200})$", re.M
)

Json = dict[str, Any]


def bisect_written_passes(
    steps: Sequence[Sequence[str]], running: int, with_all: StepResult, deadline: float
) -> Json | None:
    """Find the first pass of a command-line pipeline with which the program behaves as with all passes."""
    for at, step in enumerate(steps[:running]):
        for place, word in enumerate(step):
            flag, _, text = word.partition("=")
            passes = parse_pipeline(text) if flag.startswith("--") and step[0] in COMPILERS else []

            def is_failing(count: int, at: int = at, place: int = place, flag: str = flag, text: str = text) -> bool:
                changed = [list(words) for words in steps]
                changed[at][place] = f"{flag}={truncate_pipeline(text, count)}"
                return is_same_result(_run_program(changed, running, deadline), with_all)

            if not passes or is_failing(0):
                continue
            low, high = _bisect_count(len(passes), is_failing, deadline)
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


def _run_program(steps: Sequence[Sequence[str]], running: int, deadline: float) -> StepResult | None:
    """Return the result of the run. None if the program does not compile."""
    if any(run_step(step, deadline).code != 0 for step in steps[:running]):
        return None
    return run_step(steps[running], deadline)


def bisect_llvm_passes(
    steps: Sequence[Sequence[str]], running: int, with_all: StepResult, deadline: float
) -> Json | None:
    """Find the first LLVM pass with which the program behaves as with all passes. None without LLVM passes."""

    def run_limited(limit: int, more: Sequence[str] = ()) -> tuple[StepResult | None, str]:
        """Run with the first ``limit`` passes. Return the result (None: it does not compile) and compiler output."""
        printed = ""
        for step in steps[:running]:
            flags = (ONE_THREAD, f"--opt-bisect-limit={limit}", *more) if step[0] in COMPILERS else ()
            ended = run_step(step, deadline, flags)
            if ended.code != 0:
                return None, ended.stderr
            printed += ended.stderr
        return run_step(steps[running], deadline), printed

    everything, printed = run_limited(MOST_LLVM_PASSES)
    count = max((int(found["number"]) for found in _RUNNING.finditer(printed)), default=0)
    if not is_same_result(everything, with_all) or count == 0:
        return None
    without, _ = run_limited(0)
    if is_same_result(without, with_all):
        return {"level": "llvm-pass", "application": 0, "of": count, "step": running}
    low, high = _bisect_count(count, lambda limit: is_same_result(run_limited(limit)[0], with_all), deadline)
    with tempfile.TemporaryDirectory() as folder:
        texts = [_print_module(run_limited, limit, os.path.join(folder, f"{limit}.ll")) for limit in (low, high)]
    _, printed = run_limited(high)
    running_high = [found for found in _RUNNING.finditer(printed) if int(found["number"]) == high]
    name, where = (running_high[-1]["name"], running_high[-1]["where"]) if running_high else ("", "")
    symbol = where[len("function (") : -1] if where.startswith("function (") else where
    return {
        "level": "llvm-pass",
        "pass": name,
        "application": high,
        "passes_without": low,
        "of": count,
        "symbol": symbol if symbol != "[module]" else "",
        "step": running,
        "difference": diff_modules(texts[0], texts[1], symbol),
    }


def _bisect_count(count: int, is_failing: Callable[[int], bool], deadline: float) -> tuple[int, int]:
    """Return the greatest passing and the least failing number up to ``count``, as close as the deadline allows."""
    low, high = 0, count
    while high - low > 1 and time.monotonic() < deadline - 2 * SHORTEST_S:
        middle = (low + high) // 2
        low, high = (low, middle) if is_failing(middle) else (middle, high)
    return low, high


def is_same_result(a: StepResult | None, b: StepResult) -> bool:
    return a is not None and (a.code, a.stdout) == (b.code, b.stdout)


def _print_module(run_limited: Callable[..., object], limit: int, path: str) -> str:
    """Return the module after the last pass that runs. Empty if that pass belongs to code generation."""
    run_limited(limit, (f"--opt-bisect-print-ir-path={path}",))
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4 << 20)
    except OSError:
        return ""


def diff_modules(before: str, after: str, symbol: str) -> list[str]:
    """Return how the pass changed the function, or the module if the pass is not limited to a function."""
    a, b = (find_function(text, symbol) or text for text in (before, after))
    if not a or not b:
        return []
    return limit_lines(
        list(difflib.unified_diff(a.splitlines(), b.splitlines(), "before", "after", n=2, lineterm=""))
    )


def find_function(text: str, symbol: str) -> str:
    found = (
        re.search(r"^define [^\n]*@\"?" + re.escape(symbol) + r"\"?\(.*?^\}$", text, re.M | re.S) if symbol else None
    )
    return found[0] if found else ""
