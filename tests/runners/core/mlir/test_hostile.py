"""No text makes the readers of MLIR raise, recurse deeply, or work for longer than its length explains.

The ratio of processor times for four times the text is compared, never a time: on a busy machine both grow together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, strategies as st

from runners.core.mlir import brackets, operations, types

SIZE = 64 * 1024
MOST = 9.0
"""Most growth of the time for four times the text. Linear readers stay below six."""
UNNOTICED = 0.2
"""Seconds for `SIZE` characters below which no growth matters."""
UNITS = (
    *("(", ")", "<", "{", "[({<", ">})]", "{}", "({\n", "tensor<", "tensor<4x", "!a.b<", "!a.b<>", "1x", "?x"),
    *('"', '\\"', '"\\', "//", "// \n", '"//"', "->", "-> (", ": ", ",", "%a", "%a,", "%a,\n", "%a = ", "%a:2, "),
    *(
        "a.b\n",
        "%a = a.b\n",
        "a.b {%\n",
        "{%}",
        "^a(",
        "^a:\n",
        "%0 = a.b ({\n^c(%d: i1):\n",
        " to ",
        " ",
        "\n",
        "x",
        "1",
    ),
)
READERS: Mapping[str, Callable[[str], object]] = {
    "blank_comments": brackets.blank_comments,
    "remove_comments": brackets.remove_comments,
    "count_opened": brackets.count_opened,
    "find_closing": lambda text: brackets.find_closing(f"({text}", 0),
    "split_list": brackets.split_list,
    "partition": lambda text: brackets.partition(text, "->"),
    "rpartition": lambda text: brackets.rpartition(text, ":"),
    "strip_parentheses": brackets.strip_parentheses,
    "parse_type": types.parse_type,
    "parse_tensor": lambda text: types.parse_type(f"tensor<{text}>"),
    "find_types": lambda text: list(types.find_types(text)),
    "replace_types": lambda text: types.replace_types(text, str),
    "remove_types": types.remove_types,
    "split_operations": lambda text: list(operations.split_operations(text)),
    "split_types": operations.split_types,
}


def measure(read: Callable[[str], object], text: str) -> float:
    begin = time.thread_time()
    read(text)
    return time.thread_time() - begin


def grows_too_fast(read: Callable[[str], object], unit: str) -> bool:
    """True if each of three tries exceeds the ratio."""
    short, long = (unit * (size // len(unit)) for size in (SIZE // 4, SIZE))
    return all((took := measure(read, long)) > UNNOTICED and took > MOST * measure(read, short) for _ in range(3))


@pytest.mark.thorough
@pytest.mark.parametrize("name", READERS)
def test_work_grows_with_the_text(name: str) -> None:
    assert [unit for unit in UNITS if grows_too_fast(READERS[name], unit)] == []


@pytest.mark.thorough
def test_a_quadratic_reader_is_noticed() -> None:
    assert grows_too_fast(lambda text: [text.count("<", at) for at in range(len(text))], "<")


@given(st.lists(st.sampled_from(UNITS), max_size=20).map("".join))
def test_every_text_is_read(text: str) -> None:
    for read in READERS.values():
        read(text)
    for one in operations.split_operations(text):
        assert one.text in brackets.blank_comments(text)
    assert types.replace_types(text, lambda _: None) == text
