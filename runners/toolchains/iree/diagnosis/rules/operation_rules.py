"""Find rules of operations that an MLIR testcase violates in its own text, so that its result is undefined. Pure.

Five rules are known, all from the definitions of the operations. Each has a repaired testcase:

- Iterations of a ``parallel`` dimension of ``linalg.generic`` run in any order and concurrently. If the result does
  not depend on that dimension, all write one element. Repaired: the dimension is a ``reduction``.
- An integer division by zero is undefined by the definition of ``arith``. Repaired: zeros of a divisor from the
  command line are ones.
- A shift by the number of bits or more is undefined by the definition of ``arith``. Repaired: such amounts from the
  command line are zeros.
- A cast of a float to an integer type that cannot represent it is undefined: ``arith.fptosi`` becomes LLVM's
  ``fptosi``, whose result is poison then. Repaired: such values from the command line are zeros.
- ``stablehlo.reduce`` and ``stablehlo.reduce_window`` combine elements in an order that an implementation chooses, so
  the reducer must be associative. A difference, a quotient and a power are not. Repaired: the reducer is a sum.

The text alone is not proof. A run of the repaired testcase shows whether the rule explains the failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice

import msgspec

from runners.core.findings.kinds import Rule
from runners.core.mlir.affine_maps import list_maps, read_named_maps
from runners.core.mlir.brackets import blank_comments, split_list
from runners.core.mlir.operations import VALUE
from runners.core.mlir.types import OtherType, match_type
from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.broken_rule import BrokenRule
from runners.toolchains.iree.reports.inputs import find_called, list_functions

MAX_CHARS, MAX_OPERATIONS = 400_000, 400
"""Limits of the text. All patterns end at the next bracket, so that no text makes the search slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Breach:
    """A violated rule within one file, and the repaired text of the file."""

    operation: str
    at: int
    """Offset into the text."""
    rule: Rule
    of: str
    words: str
    instead: str
    text: str
    inputs: Mapping[str, str] | None = None
    """For a division, which traps on most machines: words of the command line → their repaired words."""


def find_broken_rule(testcase: Testcase) -> BrokenRule | None:
    """Return the first rule that the text violates.

    None without one, or if the testcase is not one MLIR file of moderate size.
    """
    sources = [name for name in testcase.files if name.endswith(".mlir")]
    if testcase.kind is not TestcaseKind.COMMAND_LINE or len(sources) != 1:
        return None
    name, text = sources[0], testcase.files[sources[0]]
    if len(text) > MAX_CHARS:
        return None
    found = next(_find_breaches(text, testcase), None)
    if found is None:
        return None
    changed = found.inputs or {}
    steps = tuple(tuple(changed.get(word, word) for word in step) for step in testcase.steps)
    return BrokenRule(
        operation=found.operation,
        file=name,
        line=text.count("\n", 0, found.at) + 1,
        rule=found.rule,
        of=found.of,
        words=found.words,
        instead=found.instead,
        traps=found.inputs is not None,
        mended=msgspec.structs.replace(testcase, files={**testcase.files, name: found.text}, steps=steps),
    )


def _find_breaches(text: str, testcase: Testcase) -> Iterator[_Breach]:
    bare = blank_comments(text)
    yield from _find_parallel_writes(text, bare)
    yield from _find_zero_divisors(text, bare, testcase)
    yield from _find_far_shifts(text, bare, testcase)
    yield from _find_casts_out_of_range(text, bare, testcase)
    yield from _find_free_orders(text, bare)


# ---------------------------------------------------------------------------- one element, written by many iterations

_GENERIC = re.compile(r"linalg\.generic\s*\{(?P<attributes>[^{}]*)\}")
_MAPS = re.compile(r"indexing_maps\s*=\s*\[(?P<maps>(?:[^\[\]]|\[[^\[\]]*\])*)\]")
_KINDS = re.compile(r"iterator_types\s*=\s*\[(?P<kinds>[^\[\]]*)\]")


def _find_parallel_writes(text: str, bare: str) -> Iterator[_Breach]:
    named = read_named_maps(bare)
    for found in islice(_GENERIC.finditer(bare), MAX_OPERATIONS):
        kinds = _KINDS.search(bare, found.start(), found.end())
        maps = _MAPS.search(found["attributes"])
        outs = re.search(r"\bouts\((?P<names>[^:)]*):", bare[found.end() : found.end() + 4_000])
        if kinds is None or maps is None or outs is None or "," in outs["names"]:
            continue
        *_, last = list_maps(maps["maps"], named) or (None,)
        if last is None:
            continue
        listed, used = last.dimensions, frozenset(re.findall(r"[A-Za-z_]\w*", " ".join(last.results)))
        each = split_list(kinds["kinds"])
        shared = [
            n for n, name in enumerate(listed) if n < len(each) and each[n] == '"parallel"' and name not in used
        ]
        if not shared:
            continue
        put = ", ".join('"reduction"' if n in shared else word for n, word in enumerate(each))
        names = ", ".join(listed[n] for n in shared)
        yield _Breach(
            operation="linalg.generic",
            at=found.start(),
            rule=Rule.PARALLEL_WRITES,
            of=names,
            words=f"calls {names} parallel, and all iterations along it write the same element of the result",
            instead=f"{names} called a reduction",
            text=f"{text[: kinds.start('kinds')]}{put}{text[kinds.end('kinds') :]}",
        )


# ---------------------------------------------------------------------------- reductions in any order

_FREE_ORDER = r"(?:subtract|divide|remainder|power|atan2)"
_APPLIED = re.compile(rf"stablehlo\.reduce\([^\n]{{1,1000}}?\) applies stablehlo\.(?P<reducer>{_FREE_ORDER})\b")
_BODY = re.compile(
    rf"\{{\s*\^\w{{1,20}}\([^()\n]{{1,400}}\):\s*(?P<made>{VALUE})\s*=\s*stablehlo\.(?P<reducer>{_FREE_ORDER})\s[^\n]{{1,200}}\n"
    rf"\s*\"?stablehlo\.return\"?\s?\(?(?P=made)\b"
)
"""A region that is one operation on its two arguments."""
_REDUCTION = re.compile(r"\"?stablehlo\.(?P<name>reduce|reduce_window)\"?\(")
MAX_HEADER = 2_000
"""Maximum distance between the name of a reduction and its region."""


def _find_free_orders(text: str, bare: str) -> Iterator[_Breach]:
    """Yield the reductions whose reducer is a single operation that is not associative."""
    for found in islice(_REDUCTION.finditer(bare), MAX_OPERATIONS):
        end = min(len(bare), found.end() + MAX_HEADER)
        reducer = _APPLIED.match(bare, found.start(), end) or _BODY.search(bare, found.end(), end)
        if reducer is None or _REDUCTION.search(bare, found.end(), reducer.start("reducer")):
            continue
        name, at = reducer["reducer"], reducer.start("reducer")
        yield _Breach(
            operation=f"stablehlo.{found['name']}",
            at=found.start(),
            rule=Rule.NOT_ASSOCIATIVE,
            of=f"stablehlo.{name}",
            words=f"combines elements by stablehlo.{name}, which is not associative, in an order that is not defined",
            instead="a sum",
            text=f"{text[:at]}add{text[at + len(name) :]}",
        )


# ---------------------------------------------------------------------------- division by zero

_DIVISION = re.compile(rf"=\s*(?P<name>arith\.(?:div|rem|ceildiv|floordiv)[su]i)\s+{VALUE}\s*,\s*(?P<by>{VALUE})\s*:")
_INPUT = re.compile(r"^--input=(?P<type>(?:[\dx]*x)?(?:i|si|ui)\d{1,2})=(?P<values>[-\d,\[\] ]{1,20000})$")
_FLOAT_INPUT = re.compile(r"^--input=(?P<type>(?:[\dx]*x)?b?f\d{1,2})=(?P<values>[-+\w.,\[\] ]{1,20000})$")


def _list_given(
    pattern: re.Pattern[str], bare: str, testcase: Testcase, literals: re.Pattern[str] = _INPUT
) -> Iterator[tuple[re.Match[str], str, re.Match[str]]]:
    """Yield operations whose operand ``by`` is an input with known values: the operation, the flag, and its parts."""
    given = find_inputs(bare, testcase)
    for found in islice(pattern.finditer(bare), MAX_OPERATIONS):
        word = given.get(resolve_value(bare, found.start(), found["by"]))
        if word is not None and (literal := literals.match(word)) is not None:
            yield found, word, literal


def _find_zero_divisors(text: str, bare: str, testcase: Testcase) -> Iterator[_Breach]:
    for found, word, literal in _list_given(_DIVISION, bare, testcase):
        ones = re.sub(r"(?<![\d.])[-+]?0+(?![\d.])", "1", literal["values"])
        if ones == literal["values"]:
            continue
        yield _Breach(
            operation=found["name"],
            at=found.start("name"),
            rule=Rule.ZERO_DIVISOR,
            of=(given_input := word.partition("=")[2][:80]),
            words=f"divides by zero, which is undefined: the input {given_input} holds zeros",
            instead="ones in the place of the input's zeros",
            text=text,
            inputs={word: f"--input={literal['type']}={ones}"},
        )


_SHIFT = re.compile(rf"=\s*(?P<name>arith\.sh(?:l|rs|ru)i)\s+{VALUE}\s*,\s*(?P<by>{VALUE})\s*:")


def _find_far_shifts(text: str, bare: str, testcase: Testcase) -> Iterator[_Breach]:
    for found, word, literal in _list_given(_SHIFT, bare, testcase):
        bits = _find_bits(bare, found.end())
        near = replace_numbers(literal["values"], partial(_drop_far, bits)) if bits else literal["values"]
        if near == literal["values"]:
            continue
        yield _Breach(
            operation=found["name"],
            at=found.start("name"),
            rule=Rule.SHIFT_TOO_FAR,
            of=(given_input := word.partition("=")[2][:80]),
            words=f"shifts by {bits} bits or further, which is undefined: the input {given_input}",
            instead="zeros in the place of such amounts",
            text=text,
            inputs={word: f"--input={literal['type']}={near}"},
        )


def _find_bits(bare: str, at: int) -> int | None:
    """Return the width of the integers of the type at an offset. None for any other text."""
    kind = match_type(bare, at)
    element = "" if kind is None or isinstance(kind, OtherType) else kind.element
    return int(element[1:]) if re.fullmatch(r"i\d{1,2}", element) else None


def _drop_far(bits: int, amount: int) -> int:
    return amount if 0 <= amount < bits else 0


_CAST = re.compile(rf"=\s*(?P<name>arith\.fpto(?P<sign>[su])i)\s+(?P<by>{VALUE})\s*:\s*[^\n]{{1,200}}?\bto\s")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,40}(?:\.\d{0,40})?(?:e[-+]?\d{1,3})?|nan|inf)(?![\w.])", re.I)


def _find_casts_out_of_range(text: str, bare: str, testcase: Testcase) -> Iterator[_Breach]:
    for found, word, literal in _list_given(_CAST, bare, testcase, _FLOAT_INPUT):
        bits = _find_bits(bare, found.end())
        keep = partial(_keep_in_range, bits or 0, found["sign"] == "s")
        held = _NUMBER.sub(keep, literal["values"]) if bits else literal["values"]
        if held == literal["values"]:
            continue
        yield _Breach(
            operation=found["name"],
            at=found.start("name"),
            rule=Rule.CAST_OUT_OF_RANGE,
            of=(given_input := word.partition("=")[2][:80]),
            words=f"casts to {bits} bits, which cannot hold each value of the input {given_input}",
            instead="zeros in the place of such values",
            text=text,
            inputs={word: f"--input={literal['type']}={held}"},
        )


def _keep_in_range(bits: int, signed: bool, number: re.Match[str]) -> str:
    """Return the number, or a zero if the integer type cannot represent the number without its fraction."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    return number[0] if low - 1 < float(number[0]) < high else "0"


# ---------------------------------------------------------------------------- values from the command line


def replace_numbers(values: str, change: Callable[[int], int]) -> str:
    """Return the values of an input with each integer changed."""
    return re.sub(r"[-+]?\d{1,18}(?![\d.])", lambda found: _write_number(found[0], change), values)


def _write_number(word: str, change: Callable[[int], int]) -> str:
    changed = change(int(word))
    return word if changed == int(word) else str(changed)


_BLOCK = re.compile(r"\^\w{1,40}\((?P<arguments>[^)]{1,2000})\)[ \t]*:")
_INS = re.compile(r"\bins\([ \t]*(?P<names>[^:)]{1,400}):")


def resolve_value(bare: str, at: int, name: str) -> str:
    """Return the input, of the ``linalg.generic`` around an offset, whose element is a value of its body.

    Any other value is returned unchanged.
    """
    begin = bare.rfind("linalg.generic", 0, at)
    block = _BLOCK.search(bare, begin, at) if begin >= 0 else None
    inputs = _INS.search(bare, begin, block.start()) if block else None
    if block is None or inputs is None:
        return name
    names = split_list(inputs["names"])
    elements: list[str] = re.findall(rf"({VALUE})\s*:", block["arguments"])
    return dict(zip(elements, names, strict=False)).get(name, name)


def find_inputs(bare: str, testcase: Testcase) -> dict[str, str]:
    """Return the arguments of the called function, each with its word on the command line."""
    words = [word for step in testcase.steps for word in step]
    called = find_called(words)
    functions = [one for one in list_functions(bare) if not one.private and called in (None, one.name)]
    if len(functions) != 1:
        return {}
    return dict(zip(functions[0].names, (word for word in words if word.startswith("--input=")), strict=False))
