"""Rules of its operations that an MLIR testcase breaks in its own text: what then comes out is undefined. Pure.

Three rules, each read from the operation's own definition, each with the testcase in which only that is put right:

- a reduction accumulates into its init operand (linalg's destination style), and what ``tensor.empty`` holds is
  unspecified: the init is to be filled with the reduction's neutral element;
- iterations of a ``parallel`` dimension of ``linalg.generic`` run in any order and together: where the result does
  not depend on that dimension they write one element, and it is to be a ``reduction``;
- ``arith`` says that an integer division by zero is undefined: the zeros of a divisor that the command line or a
  constant gives are to be ones.

Nothing is concluded from the text alone: a run of the mended testcase shows whether the breach explains the failure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from runners.protocol import Testcase, TestcaseKind

MOST_CHARS = 400_000
_VALUE = r"%[A-Za-z0-9_$.-]+"
_FLOATS = {"f16": "0x{}C00", "bf16": "0x{}F80", "f32": "0x{}F800000", "f64": "0x{}FF0000000000000"}
"""Infinities as hexadecimal literals, less their first digit: 7 for the positive one, F for the negative."""
_INFINITE = {"0x7": "inf", "0xF": "-inf"}
"""As a reader calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One rule that the text breaks."""

    operation: str
    file: str
    line: int
    """1-based."""
    words: str
    """What it does and must not."""
    instead: str
    """What the mended testcase does there."""
    mended: Testcase
    traps: bool = False
    """Whether it may end the program, and not only give it undefined values."""

    def difference(self, testcase: Testcase) -> list[str]:
        """What differs between the testcase and the mended one, as lines of a diff without its header."""
        mine, mended = _as_lines(testcase, self.file), _as_lines(self.mended, self.file)
        return list(difflib.unified_diff(mine, mended, lineterm="", n=1))[2:]

    def __str__(self) -> str:
        return f"{self.operation} in {self.file}:{self.line} {self.words}"


def _as_lines(testcase: Testcase, file: str) -> list[str]:
    return [*testcase.files[file].split("\n"), *(" ".join(step) for step in testcase.steps)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A breach within one file: where, and the whole text put right."""

    operation: str
    at: int
    """Offset into the text."""
    words: str
    instead: str
    text: str
    inputs: Mapping[str, str] | None = None
    """Words of the command line that change instead: of a division, which traps on most machines."""


def find_breach(testcase: Testcase) -> Breach | None:
    """The first breach that the text shows; None where it shows none, or is no single MLIR file of moderate size."""
    sources = [name for name in testcase.files if name.endswith(".mlir")]
    if testcase.kind is not TestcaseKind.COMMAND_LINE or len(sources) != 1:
        return None
    name, text = sources[0], testcase.files[sources[0]]
    if len(text) > MOST_CHARS:
        return None
    found = next(_breaches(text, testcase), None)
    if found is None:
        return None
    changed = found.inputs or {}
    steps = tuple(tuple(changed.get(word, word) for word in step) for step in testcase.steps)
    return Breach(
        operation=found.operation,
        file=name,
        line=text.count("\n", 0, found.at) + 1,
        words=found.words,
        instead=found.instead,
        traps=found.inputs is not None,
        mended=msgspec.structs.replace(testcase, files={**testcase.files, name: found.text}, steps=steps),
    )


def _breaches(text: str, testcase: Testcase) -> Iterator[_Found]:
    bare = _without_comments(text)
    yield from _unfilled(text, bare)
    yield from _written_together(text, bare)
    yield from _zero_divisors(text, bare, testcase)


def _without_comments(text: str) -> str:
    """The text with comments blanked out: offsets stay."""
    return re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)


# ---------------------------------------------------------------------------- an accumulator that nothing filled

_EMPTY = re.compile(
    rf"(?P<to>{_VALUE})\s*=\s*tensor\.empty\([^)\n]*\)\s*:\s*(?P<type>tensor<(?:[\d?]{{1,12}}x)*(?P<of>\w+)>)"
)
_LINALG = re.compile(rf"(?P<to>{_VALUE})\s*=\s*(?P<name>linalg\.[a-z]\w*)")
_OUTS = re.compile(rf"\bouts\(\s*(?P<of>{_VALUE})\s*:")
_SUMS = re.compile(r"linalg\.(?:\w*mat(?:mul|vec)\w*|vecmat|dot|conv_\w+|depthwise_conv_\w+|pooling_\w+_sum)$")
_STATEMENT = re.compile(
    rf"^[ \t]*(?:{_VALUE}(?:\s*,\s*{_VALUE})*(?::\d+)?\s*=\s*)?(?:func\.)?return\b|^[ \t]*{_VALUE}(?::\d+)?\s*=\s",
    re.M,
)


def _unfilled(text: str, bare: str) -> Iterator[_Found]:
    empties = {found["to"]: found for found in _EMPTY.finditer(bare)}
    for found in _LINALG.finditer(bare):
        statement = _statement(bare, found.end())
        outs = _OUTS.search(bare, found.end(), statement)
        empty = empties.get(outs["of"]) if outs is not None else None
        if outs is None or empty is None or empty.start() > found.start():
            continue
        neutral = _neutral(found["name"], bare[found.end() : statement], empty["of"])
        if neutral is None:
            continue
        indent = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        scalar, tensor = empty["of"], empty["type"]
        filling = (
            f"%reprobot_neutral = arith.constant {neutral} : {scalar}\n{indent}%reprobot_filled = linalg.fill "
            f"ins(%reprobot_neutral : {scalar}) outs({outs['of']} : {tensor}) -> {tensor}\n{indent}"
        )
        at, end = outs.span("of")
        yield _Found(
            operation=found["name"],
            at=found.start(),
            words="accumulates into a tensor.empty that nothing fills, and what that holds is unspecified",
            instead=f"the accumulator filled with {_INFINITE.get(neutral[:3], neutral)}",
            text=f"{text[: found.start()]}{filling}{text[found.start() : at]}%reprobot_filled{text[end:]}",
        )


def _statement(bare: str, start: int) -> int:
    """Where the operation that begins before ``start`` ends: at its region's end, or at the next operation."""
    following = _STATEMENT.search(bare, start)
    limit = following.start() if following else len(bare)
    region = re.search(r"\{\s*\n?\s*\^bb0\(|\)\s*\{\s*\n", bare[start:])
    if region is not None and (start + region.start() < limit):
        closed = re.search(r"linalg\.yield[^\n]*\n\s*\}", bare[start:])
        return start + closed.end() if closed else limit
    return limit


_COMBINES = re.compile(rf"=\s*arith\.(?P<how>\w+)\s+(?P<a>{_VALUE})\s*,\s*(?P<b>{_VALUE})(?![\w,])")
_SHORT = re.compile(r"\{\s*arith\.(?P<how>\w+)\s*[}{]")
_INTEGERS = {"addi": 0, "ori": 0, "xori": 0, "maxui": 0, "muli": 1, "andi": -1, "minui": -1}


def _neutral(operation: str, body: str, of: str) -> str | None:
    """What an accumulator of this operation starts with; None where it does not read it, or in no way known here."""
    how = "add" if _SUMS.match(operation) else _combining(operation, body)
    if how is None:
        return None
    if of in _FLOATS:
        infinite = _FLOATS[of]
        signed = {"maximumf": "F", "maxnumf": "F", "minimumf": "7", "minnumf": "7"}.get(how)
        return {"add": "0.0", "addf": "0.0", "mulf": "1.0"}.get(how) or (infinite.format(signed) if signed else None)
    if re.fullmatch(r"i(?:8|16|32|64)", of) is None:
        return None
    largest = 2 ** (int(of[1:]) - 1) - 1
    ends = {"add": 0, "maxsi": -largest - 1, "minsi": largest, **_INTEGERS}
    return str(ends[how]) if how in ends else None


def _combining(operation: str, body: str) -> str | None:
    """The one operation through which a region uses what the output held."""
    if operation == "linalg.reduce" and (short := _SHORT.search(body)):
        return short["how"]
    if operation not in ("linalg.reduce", "linalg.generic"):
        return None
    arguments = re.search(rf"(?:\^bb0)?\((?P<all>{_VALUE}: \w+(?:, {_VALUE}: \w+)*)\)\s*:?\s*\{{?\s*\n", body)
    if arguments is None:
        return None
    held = arguments["all"].split(",")[-1].partition(":")[0].strip()
    region = body[arguments.end() :]
    uses = [found for found in _COMBINES.finditer(region) if held in (found["a"], found["b"])]
    mentioned = len(re.findall(rf"{re.escape(held)}(?![\w$.-])", region))
    return uses[0]["how"] if len(uses) == 1 and mentioned == 1 else None


# ---------------------------------------------------------------------------- one element, written by many iterations

_ALIAS = re.compile(r"^[ \t]*(?P<name>#\w+)\s*=\s*affine_map<(?P<map>[^>\n]*->[^\n]*)>\s*$", re.M)
_GENERIC = re.compile(r"linalg\.generic\s*\{(?P<attributes>[^{}]*)\}")
_MAP = re.compile(r"#\w+|affine_map<[^<>]*->[^<>]*>")
_KINDS = re.compile(r"iterator_types\s*=\s*\[(?P<kinds>[^\]]*)\]")


def _written_together(text: str, bare: str) -> Iterator[_Found]:
    aliases = {found["name"]: found["map"] for found in _ALIAS.finditer(bare)}
    for found in _GENERIC.finditer(bare):
        kinds = _KINDS.search(bare, found.start(), found.end())
        maps = re.search(r"indexing_maps\s*=\s*\[(?P<maps>.*?)\]\s*(?:,|$)", found["attributes"], re.S)
        outs = re.search(r"\bouts\((?P<names>[^:)]*):", bare[found.end() : found.end() + 4_000])
        if kinds is None or maps is None or outs is None or "," in outs["names"]:
            continue
        last = _MAP.findall(maps["maps"])[-1:]
        shape = _dims(aliases.get(last[0], last[0])) if last else None
        if shape is None:
            continue
        listed, used = shape
        each = [word.strip() for word in kinds["kinds"].split(",")]
        shared = [
            n for n, name in enumerate(listed) if n < len(each) and each[n] == '"parallel"' and name not in used
        ]
        if not shared:
            continue
        put = ", ".join('"reduction"' if n in shared else word for n, word in enumerate(each))
        names = ", ".join(listed[n] for n in shared)
        yield _Found(
            operation="linalg.generic",
            at=found.start(),
            words=f"calls {names} parallel, and all iterations along it write the same element of the result",
            instead=f"{names} called a reduction",
            text=f"{text[: kinds.start('kinds')]}{put}{text[kinds.end('kinds') :]}",
        )


def _dims(affine: str) -> tuple[list[str], set[str]] | None:
    """The dimensions of an affine map, and those of them that its results use."""
    found = re.search(r"\((?P<dims>[^()]*)\)\s*->\s*\((?P<results>.*)\)", affine)
    if found is None:
        return None
    return [d.strip() for d in found["dims"].split(",") if d.strip()], set(
        re.findall(r"[A-Za-z_]\w*", found["results"])
    )


# ---------------------------------------------------------------------------- division by zero

_DIVISION = re.compile(
    rf"=\s*(?P<name>arith\.(?:div|rem|ceildiv|floordiv)[su]i)\s+{_VALUE}\s*,\s*(?P<by>{_VALUE})\s*:\s*(?:tensor<|i\d|index)"
)
_FUNCTION = re.compile(r"(?:func|util)\.func\s+(?:public\s+)?@(?P<name>[\w$.-]+)\((?P<arguments>[^\n]*)")
_INPUT = re.compile(r"^--input=(?P<type>(?:[\dx]*x)?(?:i|si|ui)\d{1,2})=(?P<values>[-\d,\[\] ]{1,20000})$")


def _zero_divisors(text: str, bare: str, testcase: Testcase) -> Iterator[_Found]:
    given = _given(bare, testcase)
    for found in _DIVISION.finditer(bare):
        word = given.get(found["by"])
        literal = _INPUT.match(word) if word is not None else None
        if word is None or literal is None:
            continue
        ones = re.sub(r"(?<![\d.])[-+]?0+(?![\d.])", "1", literal["values"])
        if ones == literal["values"]:
            continue
        yield _Found(
            operation=found["name"],
            at=found.start("name"),
            words=f"divides by zero, which is undefined: the input {word.partition('=')[2]} holds zeros",
            instead="ones in the place of the input's zeros",
            text=text,
            inputs={word: f"--input={literal['type']}={ones}"},
        )


def _given(bare: str, testcase: Testcase) -> dict[str, str]:
    """Arguments of the function that is called, each with its word of the command line."""
    words = [word for step in testcase.steps for word in step]
    named = [word.partition("=")[2] for word in words if word.startswith("--function=")]
    functions = {found["name"]: found["arguments"] for found in _FUNCTION.finditer(bare)}
    listed = functions.get(named[0]) if named else next(iter(functions.values()), None)
    if listed is None or (not named and len(functions) != 1):
        return {}
    names = re.findall(rf"({_VALUE})\s*:", listed.partition(" -> ")[0])
    return dict(zip(names, (word for word in words if word.startswith("--input=")), strict=False))
