"""Every pure reader of untrusted text takes time in proportion to the text, whatever the text is."""

from __future__ import annotations

import re

import pytest
from hypothesis import settings

from tests.support.untrusted import READERS, SIZE, UNITS, Reader, make_texts, measure, measure_baseline

FACTOR = 600
"""Times the plain reading of as much text. Reading a program of 10,000 statements takes 240 times, nothing else more
than 105; the pattern of numbers that once was quadratic took 6,000 times."""


PARSED = {"port of Python": 10}
"""Further factors: a whole syntax tree with positions costs more for each character, at any length."""


@pytest.fixture(scope="module")
def baseline() -> float:
    return measure_baseline()


def is_slow(reader: Reader, text: str, baseline: float, times: int = 2) -> bool:
    """True if ``reader`` exceeds the bound so many times: once may be an accident of the machine."""
    bound = FACTOR * baseline * max(len(text), SIZE // 2) / SIZE
    return all(measure(reader, text) > bound for _ in range(times))


def find_slow(name: str, units: tuple[str, ...], baseline: float, size: int = SIZE) -> list[str]:
    texts = ((unit, text[:size]) for unit in units for text in make_texts(unit))
    unit_time = baseline * PARSED.get(name, 1)
    return [repr(unit) for unit, text in texts if is_slow(READERS[name], text, unit_time)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", READERS)
def test_no_reader_is_slow_on_64_kib(name: str, baseline: float) -> None:
    """Every reader gets digits before a letter, and a share of the other units."""
    place = list(READERS).index(name)
    assert find_slow(name, ("0", UNITS[place * 5 % len(UNITS)]), baseline) == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", READERS)
def test_no_reader_is_slow_on_any_unit(name: str, baseline: float) -> None:
    """All readers on all units, with 16 KiB: a quadratic reader exceeds the bound, and fixed costs do not.

    Each reader gets a sixth of the units, and each unit a sixth of the readers: all take minutes (`make fuzz`).
    """
    units = UNITS if settings.get_current_profile_name() == "fuzz" else UNITS[list(READERS).index(name) % 6 :: 6]
    assert find_slow(name, units, baseline, SIZE // 4) == []


@pytest.mark.thorough
def test_a_quadratic_reader_is_noticed(baseline: float) -> None:
    """A pattern that read numbers once took 41 seconds for an output of 64 KiB."""
    number = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan)(?!\w)|\w+")
    assert is_slow(number.findall, "0" * 16_000 + "x", baseline, times=1)
    assert not is_slow(READERS["printed output"], "0" * 20_000 + "x", baseline)


@pytest.mark.thorough
@pytest.mark.parametrize("unit", ['the message "a b" ', "`x = (`\n"])
def test_issues_of_quoted_messages_and_of_code_spans_are_read_in_time(unit: str, baseline: float) -> None:
    """60 KB of such messages once took 56 seconds, and of such spans ten."""
    assert find_slow("extract TVM's issue", (unit,), baseline, SIZE // 2) == []
