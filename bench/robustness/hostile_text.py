"""What reading and comparing failures costs on text that was made to cost much: ``python -m
bench.robustness.hostile_text``.

Each kind of text is read at three sizes. Above ``MAX_PARSED_CHARS`` only the head and the tail are read, so that from
there on the cost must stay the same but for cutting the text; below it, it may grow with the size and no faster. The
peer is ordinary text, tracebacks, of 200 k characters in the same run. Comparing is bounded by the words that are
looked at; its worst pairs are timed by themselves.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial

from runners.core.failure.compare import compare_signatures
from runners.core.failure.normalize import MAX_MESSAGE_CHARS, normalize_message
from runners.core.failure.parse import MAX_PARSED_CHARS, parse_signature
from runners.core.protocol import Exited, Signature
from runners.toolchains import ALL_FAILURES

TRACEBACK = (
    'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\n'
    '  File "/x/site-packages/tvm/relax/op.py", line 7, in f\n    g()\nValueError: no {number}\n'
)


def _repeated(piece: str) -> Callable[[int], str]:
    return lambda size: (piece * (size // len(piece) + 1))[:size]


TEXTS: Mapping[str, Callable[[int], str]] = {
    "one line of letters": _repeated("A"),
    "one line of spaces": _repeated(" "),
    "lines of dashes (paths?)": _repeated("-" * 1_999 + "\n"),
    "lines of slashes": _repeated("-/" * 999 + "\n"),
    "tracebacks": lambda size: "".join(TRACEBACK.format(number=n) for n in range(size // len(TRACEBACK) + 1))[:size],
    "causes without end": _repeated(
        "\nThe above exception was the direct cause of the following exception:\n\nValueError: x\n"
    ),
    "headers without end": _repeated("Error: " + "a.Error" * 280 + "\n"),
    "dotted names": _repeated("a." * 999 + "\n"),
    "native frames": _repeated(" #1 0x7f in a<b<c<d<e::f(g)>>> ::x(y)\n"),
    "angle brackets": _repeated(" 1: " + "<" * 590 + "\n"),
    "terminal codes begun": _repeated("\x1b[0;\x1b]"),
    "assertions begun": _repeated("Assertion `" * 50 + "\n"),
    "locations begun": _repeated("loc(" * 400 + "\n"),
    "statuses": _repeated("INTERNAL; " + "UNKNOWN" * 80 + "\n"),
    "flags begun": _repeated("for the --" + "a-" * 900 + "\n"),
    "operators begun": _repeated('Error: ir.Op(span=name="' + "a" * 60 + "\n"),
    "mismatches begun": _repeated("AssertionError:\nMismatched elements: 1 / 1 / 1 (\n(shapes (" + "1, " * 90 + "\n"),
    "files of C++ begun": _repeated('  File "x.cc", line 1, in ' + "a<(" * 600 + "\n"),
}


def _seconds(work: Callable[[], object]) -> float:
    """The best of three: what it costs, not what the machine does beside."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def reading() -> None:
    sizes = (MAX_PARSED_CHARS // 4, MAX_PARSED_CHARS, 10 * 2**20)
    ordinary = _seconds(partial(_read, TEXTS["tracebacks"](MAX_PARSED_CHARS)))
    sys.stdout.write("| text | 50 k chars | 200 k | growth | 10 MiB | 200 k, of ordinary | peak beside 10 MiB |\n")
    sys.stdout.write("|---|---|---|---|---|---|---|\n")
    for name, make in TEXTS.items():
        quarter, whole, huge = (make(size) for size in sizes)
        a, b, c = (_seconds(partial(_read, text)) for text in (quarter, whole, huge))
        peak = _peak(partial(_read, huge))
        row = (
            f"{a * 1e3:.1f} ms", f"{b * 1e3:.1f} ms", f"{b / a:.1f}", f"{c * 1e3:.1f} ms", f"{b / ordinary:.1f}",
            f"{peak / 2**20:.1f} MiB",
        )  # fmt: skip
        sys.stdout.write(f"| {name} | {' | '.join(row)} |\n")
        sys.stdout.flush()


def _read(text: str) -> object:
    return (parse_signature(text, ALL_FAILURES, Exited(code=1)), parse_signature(text, ALL_FAILURES))


def comparing() -> None:
    """Words in common and out of order are what costs; the longest messages that there are, and twice as long."""
    pieces = {
        "one word": ("a ", "a "),
        "two words, out of step": ("a b ", "b a a "),
        "no word in common": ("a ", "b "),
        "ever other words": ("", ""),
    }
    sys.stdout.write("\n| messages | half as long | as long as can be | growth |\n|---|---|---|---|\n")
    for name, (left, right) in pieces.items():
        times = []
        for size in (MAX_MESSAGE_CHARS // 2, MAX_MESSAGE_CHARS):
            said, seen = (_message(piece, size, offset) for piece, offset in ((left, 0), (right, 7)))
            one, other = (Signature(type="ValueError", message=text) for text in (said, seen))
            times.append(_seconds(partial(compare_signatures, one, other, ALL_FAILURES)))
        sys.stdout.write(
            f"| {name} | {times[0] * 1e3:.1f} ms | {times[1] * 1e3:.1f} ms | {times[1] / times[0]:.1f} |\n"
        )
    longest = max(_seconds(partial(normalize_message, make(2_000))) for make in TEXTS.values())
    sys.stdout.write(f"\nNormalising one line, at worst: {longest * 1e3:.1f} ms\n")


def _message(piece: str, size: int, offset: int) -> str:
    if piece:
        return (piece * size)[:size]
    return " ".join(f"w{'abcdefghij'[(n * 7 + offset) % 10]}{'abcdefghij'[n % 9]}" for n in range(size // 4))


def main() -> int:
    reading()
    comparing()
    return 0


if __name__ == "__main__":
    sys.exit(main())
