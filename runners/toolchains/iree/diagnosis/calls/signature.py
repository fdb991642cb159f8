"""Compare the call of a compiled program with the signature that the text of the testcase declares. Pure.

The comparison is careful: an extent ``?``, an input from a file, an unknown type or notation, and several modules in
one run agree with anything. Each difference has a testcase in which only the call is corrected. A run of it shows
whether the difference explains the failure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import msgspec

from runners.core.findings.calls import CallDifference, NoFunction, OtherCount, OtherSize, OtherType, PrivateFunction
from runners.core.mlir.brackets import blank_comments
from runners.core.mlir.types import DYNAMIC, ScalarType, TensorType, fits_shape, parse_type
from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.wrong_call import WrongCall
from runners.toolchains.iree.reports.inputs import Function, find_called, list_functions, write_value

RUNNERS = ("iree-run-module", "iree-benchmark-module")
MAX_CHARS, MAX_INPUTS = 2_000_000, 200


@dataclass(slots=True)
class _Mending:
    """Changes of one testcase: words of its steps, and the text of a file."""

    steps: list[list[str]]
    files: dict[str, str] = field(default_factory=dict)

    def apply(self, testcase: Testcase) -> Testcase:
        steps = tuple(tuple(word for word in step if word) for step in self.steps)
        return msgspec.structs.replace(testcase, steps=steps, files={**testcase.files, **self.files})


def find_wrong_call(testcase: Testcase) -> WrongCall | None:
    """Return the first difference between a run and the signature of the function that the run calls."""
    if testcase.kind is not TestcaseKind.COMMAND_LINE:
        return None
    mending = _Mending([list(step) for step in testcase.steps])
    found = [one for at in range(len(testcase.steps)) for one in _compare_step(testcase, at, mending)]
    if not found:
        return None
    return WrongCall(call=found[0], mended=(mending.apply(testcase),))


def _compare_step(testcase: Testcase, at: int, mending: _Mending) -> Iterator[CallDifference]:
    """Yield the differences of one run, and correct them. Several of them may need a correction together."""
    step = testcase.steps[at]
    source = _find_source(testcase, step) if step[0] in RUNNERS else None
    if any(re.match(r"--?flagfile", word) for word in step):
        return  # the file may name the function and contain inputs
    if source is None or any("benchmark-funcs" in word for other in testcase.steps for word in other):
        return
    text = blank_comments(testcase.files[source])
    functions = list_functions(text)
    asked = find_called(step)
    called, differing = _find_function(functions, asked, len(_list_inputs(step)))
    yield from differing
    if called is None:
        return
    if called.private:
        mending.files[source] = _make_public(testcase.files[source], called)
    words = mending.steps[at]
    for place, word in enumerate(step):
        if word.startswith("--expected_output"):
            words[place] = ""  # this was the input of another call
        elif differing and find_called((word,)) is not None:
            words[place] = f"{word.partition('=')[0]}={called.name}"
    yield from _compare_inputs(called, step, words, _changes_types(testcase))


def _make_public(text: str, function: Function) -> str:
    return text[: function.at] + re.sub(r"\bprivate[ \t]+", "", text[function.at :], count=1)


def _find_source(testcase: Testcase, step: Sequence[str]) -> str | None:
    """Return the file that was compiled to the only module of a run. None if this is uncertain."""
    modules = [word.partition("=")[2] for word in step if re.match(r"--?module(?:_file)?=", word)]
    made = [other for other in testcase.steps if other[0] == "iree-compile" and len(modules) == 1]
    made = [other for other in made if _bare(modules[0]) in map(_bare, _list_outputs(other))]
    if len(made) != 1:
        return None
    sources = [name for word in made[0][1:] for name in testcase.files if _bare(word) == _bare(name)]
    text = testcase.files[sources[0]] if len(sources) == 1 else ""
    return sources[0] if sources and text and len(text) <= MAX_CHARS else None


def _bare(path: str) -> str:
    return path.removeprefix("./")


def _list_outputs(step: Sequence[str]) -> list[str]:
    after = [word for flag, word in pairwise(step) if flag in ("-o", "--o")]
    return [*after, *(word.partition("=")[2] for word in step if re.match(r"--?o=", word))]


def _find_function(
    functions: Sequence[Function], asked: str | None, inputs: int
) -> tuple[Function | None, tuple[CallDifference, ...]]:
    """Return the function that a run calls, or should call, and the difference in its name or visibility."""
    public = [one for one in functions if not one.private]
    if asked is None:
        return public[0] if len(public) == 1 else None, ()
    name = asked.rpartition(".")[2].removesuffix("$async")
    same = [one for one in functions if one.name == name]
    if same:
        hidden: tuple[CallDifference, ...] = (PrivateFunction(function=name),) if same[0].private else ()
        return (same[0], hidden) if len(same) == 1 else (None, ())
    fitting = public if len(public) == 1 else [one for one in public if len(one.types) == inputs]
    if len(fitting) != 1:
        return None, ()
    return fitting[0], (NoFunction(function=name, functions=tuple(one.name for one in public[:4])),)


# ---------------------------------------------------------------------------------------------- inputs

_INPUT = re.compile(r"--?input=(?P<value>.*)$", re.S)
_GIVEN = re.compile(
    r"(?P<shape>(?:\d{1,9}x){0,8})(?P<element>[fsu]?i\d{1,2}|bf16|f\d{1,2}|index)(?:=(?P<values>[^@*]*))?$", re.S
)
_NUMBER = re.compile(r"[-+]?[\d.][\w.+-]*$")
_UNKNOWN_ARGUMENTS = re.compile(r"!(?!torch\.vtensor<|hal\.buffer_view$)")
"""Types of arguments that the compiler may supply itself, such as fences."""
_OTHER_INPUTS = re.compile(r"--?input=[@*+]|--?[\w-]*input(?!=)|--?\w+[_-]input\b")
"""Inputs from files, which may contain several arrays, and flags of other years for inputs."""
_CHANGES_TYPES = re.compile(r"--iree-[\w-]*(?:demote|promote)-")


def _list_inputs(step: Sequence[str]) -> list[int]:
    return [place for place, word in enumerate(step) if _INPUT.match(word)]


def _changes_types(testcase: Testcase) -> bool:
    return any(_CHANGES_TYPES.match(word) for step in testcase.steps for word in step)


def _compare_inputs(
    called: Function, step: Sequence[str], words: list[str], changed: bool
) -> Iterator[CallDifference]:
    """Yield the differences between the inputs and the arguments, and correct the words."""
    places, types = _list_inputs(step), called.types
    uncertain = any(map(_OTHER_INPUTS.match, step)) or len(types) > MAX_INPUTS
    if uncertain or any(_UNKNOWN_ARGUMENTS.match(one) for one in types):
        return
    if len(places) != len(types):
        mended = [write_value(kind.replace("?", "1")) for kind in types[len(places) :]]
        for place in places[len(types) :]:
            words[place] = ""
        words.extend(f"--input={value}" for value in mended if value is not None)
        yield OtherCount(function=called.name, count=len(types), passed=len(places))
    for number, (place, kind) in enumerate(zip(places, types, strict=False)):
        found = _INPUT.match(step[place])
        given = found["value"] if found else ""
        differing = _compare_input(called.name, number + 1, kind, given, changed)
        if differing is None:
            continue
        mended_value = _mend_value(kind, given)
        if mended_value is not None:
            words[place] = f"--input={mended_value}"
        yield differing


def _compare_input(function: str, argument: int, declared: str, given: str, changed: bool) -> CallDifference | None:
    bare = given.strip().strip("\"'")
    wanted, passed = _read_declared(declared), _GIVEN.match(bare)
    if isinstance(wanted, TensorType) and _NUMBER.match(bare) and passed is None:
        # The tool takes a bare number as a scalar alone.
        return OtherType(function=function, argument=argument, declared=declared, given=bare)
    if wanted is None or passed is None:
        return None
    shape = tuple(int(extent) for extent in passed["shape"].split("x")[:-1])
    word = f"{passed['shape']}{passed['element']}"
    alike = changed or _are_alike(wanted.element, passed["element"])
    if not alike or not fits_shape(wanted.shape, shape):
        return OtherType(function=function, argument=argument, declared=declared, given=word)
    values = [one for one in re.split(r"[\s,\[\]]+", passed["values"] or "") if one]
    size = math.prod(shape)
    if len(values) > 1 and all(map(_NUMBER.match, values)) and len(values) != size:
        return OtherSize(function=function, argument=argument, given=word, count=size, passed=len(values))
    return None


def _read_declared(kind: str) -> TensorType | ScalarType | None:
    match parse_type(kind):
        case (TensorType(encoding="") | ScalarType()) as declared:
            return declared
        case _:
            return None


_NARROWER = {("f64", "f32"), ("i64", "i32"), ("i1", "i8"), ("index", "i32"), ("index", "i64")}
"""Pairs of declared and given element types that may agree: by demotion, or as types of one byte."""
_ELEMENT = re.compile(r"(?:i\d{1,2}|bf16|f\d{1,2}|index)$")


def _are_alike(declared: str, given: str) -> bool:
    """True if an argument may take such an element. Integers are signless at this boundary."""
    one, other = (name.removeprefix("s").removeprefix("u") for name in (declared, given))
    return one == other or (one, other) in _NARROWER or not _ELEMENT.match(one) or not _ELEMENT.match(other)


def _mend_value(kind: str, given: str) -> str | None:
    """Return an input of this type; a bare number becomes the value of a tensor with one element."""
    declared, bare = _read_declared(kind), given.strip()
    if isinstance(declared, TensorType) and _NUMBER.match(bare) and all(n == 1 for n in declared.shape):
        return f"{'1x' * len(declared.shape)}{declared.element}={bare}"
    return write_value(_settle_extents(kind, given))


def _settle_extents(kind: str, given: str) -> str:
    """Return a type without dynamic extents. They become those of the given value if the ranks agree, else 1."""
    declared, passed = parse_type(kind), _GIVEN.match(given)
    if not isinstance(declared, TensorType):
        return kind
    sizes = [int(extent) for extent in passed["shape"].split("x")[:-1]] if passed else []
    known = sizes if len(sizes) == len(declared.shape) else [1] * len(declared.shape)
    shape = tuple(one if n == DYNAMIC else n for n, one in zip(declared.shape, known, strict=True))
    return str(replace(declared, shape=shape))
