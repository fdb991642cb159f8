"""Filters behind a command: read as data, and applied as the programs apply them."""

from __future__ import annotations

import random
import shlex
import subprocess
import time

import pytest

from runners.core.failure.printed.filters import describe_pipe, is_counting, read_pipe
from runners.guest.probe.filters import Filtered

WORDS = ("a", "b", "ab", "x.y", "loop_ = true", "flow.dispatch @m", "| z", "[1]", "^q", "A", "  %0 = b", "")
PATTERNS = (
    *("a", "a.*b", "^a", "b$", "x.y", r"x\.y", "[ab]x", r"a\|b", "loop_", "flow.dispatch @", "A", "a.*", "^$", "."),
    *("[^a]", "$", "^"),
)
LIMIT = 60_000


def apply(filters: str, *chunks: bytes) -> str | None:
    pipe = read_pipe(filters)
    assert pipe is not None
    filtered = Filtered(describe_pipe(pipe), LIMIT)
    for chunk in chunks:
        filtered.add(1, chunk)
    return filtered.finish()


def test_a_filter_leaves_what_the_program_leaves() -> None:
    """Against the programs themselves, on random rows in random pieces."""
    choose = random.Random(1)
    compared = 0
    for _ in range(400):
        rows = ("".join(choose.choices(WORDS, k=choose.randint(0, 3))) for _ in range(choose.randint(0, 7)))
        text = "".join(f"{row}\n" for row in rows)
        filters = "".join(f" | {_make_filter(choose)}" for _ in range(choose.randint(1, 3)))
        if read_pipe(filters) is None:
            continue
        compared += 1
        at = choose.randint(0, len(text))
        left = apply(filters, text[:at].encode(), text[at:].encode())
        words = ["sh", "-c", f"cat{filters}"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
        assert left == done.stdout.removesuffix("\n"), (text, filters)
    assert compared > 300


def _make_filter(choose: random.Random) -> str:
    kind = choose.random()
    if kind < 0.7:
        flags = choose.sample(["-c", "-v", "-i", "-E", "-F", "-n"], choose.choice([0, 0, 1, 1, 2]))
        return " ".join(["grep", *flags, shlex.quote(choose.choice(PATTERNS))])
    return choose.choice([f"head -{choose.randint(1, 3)}", f"tail -n {choose.randint(0, 3)}", "wc -l"])


@pytest.mark.parametrize(
    "filters",
    [
        "| grep -E '(a+)+$'",
        "| grep 'a*b'",
        "| grep -o x",
        "| grep -E 'a{1,3}'",
        "| grep a b",
        "| grep -E -F a",
        "| grep -r a",
        "| sort | uniq -c",
        "| sed s/a/b/",
        "| grep 'a",
        "| grep '[z-a]'",
        "| grep '[a&&b]'",
        "| grep '\\<a\\>'",
        "| grep -F 'a\nb'",
        "",
    ],
)
def test_a_filter_without_an_exact_equivalent_is_not_applied(filters: str) -> None:
    assert read_pipe(filters) is None
    assert not is_counting(filters)


def test_the_time_is_linear_in_a_long_row() -> None:
    """Pieces that begin at each place and are never complete make a search with repetitions quadratic or worse."""
    filters = "| grep 'a.*a.*a.*a.*b' | grep -c 'a.*c'"

    def measure(size: int) -> float:
        began = time.process_time()
        assert apply(filters, b"a" * size + b"\n") == "0"
        return time.process_time() - began

    measure(1000)
    assert measure(400_000) < 20 * measure(100_000) + 0.05


@pytest.mark.parametrize(
    ("filters", "output"),
    [
        pytest.param("| grep x", b"x" * 3_000_000, id="a-row-of-3-MB"),
        pytest.param("| grep x", b"xxxxxxxxx\n" * 50_000, id="many-rows"),
        pytest.param("| grep x | grep -n ''", b"x\n" * 29_000, id="numbers"),
        pytest.param("| grep -v y", "é\n".encode() * 29_000, id="bytes"),
        pytest.param("| wc -l", b"a\nb", id="a-row-without-an-end"),
        pytest.param("| tail -5 | wc -l", b"a\nb", id="a-row-without-an-end-is-taken"),
    ],
)
def test_a_result_that_is_too_long_or_not_exact_is_unknown(filters: str, output: bytes) -> None:
    assert apply(filters, output) is None


def test_a_long_row_in_small_pieces_takes_no_longer() -> None:
    began = time.process_time()
    assert apply("| grep -c x", *([b"x"] * 60_000), b"\n") == "1"
    assert apply("| tail -n 59000", b"\n" * 200_000) is not None
    assert time.process_time() - began < 10


def test_rows_of_two_streams_do_not_mix() -> None:
    pipe = read_pipe("2>&1 | grep -c error")
    assert pipe is not None
    assert pipe.merges
    filtered = Filtered(describe_pipe(pipe), LIMIT)
    for stream, data in ((1, b"an er"), (2, b"error: x\n"), (1, b"ror\n"), (2, b"no\n")):
        filtered.add(stream, data)
    assert filtered.finish() == "2"
