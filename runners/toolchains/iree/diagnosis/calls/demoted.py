"""Find a testcase with a type that the compiler replaces, by default or on request, and correct the call.

By default, ``iree-compile`` turns f64 into f32 (``--iree-input-demote-f64-to-f32``; the flags for i64 and f32 are
off). Then the compiled function refuses an f64 argument, although the text declares f64. Or it accepts its arguments,
and computes f32 values. The flag is documented, so f32 values are not wrong: this is the only wrong call that
explains more than an error. The same applies to flags that a testcase sets itself
(``--iree-input-demote-i64-to-i32``): its 64-bit values then wrap around.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import msgspec

from runners.core.failure.oracle import CHECKS, OUTPUT
from runners.core.findings.calls import DemotedType, ReplacedType
from runners.core.protocol import Exited, Signature, Testcase, TestcaseKind
from runners.core.toolchain.diagnosis import Failure
from runners.core.toolchain.wrong_call import WrongCall
from runners.toolchains.iree.diagnosis.reference import demote_floats, has_other_values

KEEP = "--iree-input-demote-f64-to-f32=false"
_REFUSED = re.compile(r"element type mismatch; expected f32 \(\w+\) but have f64\b")
_COMPILES = frozenset({"compile_str", "compile_file"})
_COMPUTES = re.compile(r"(?:\dx|\?x|[:<>,(]\s?)f64(?!\w)")
"""The type in a program: ``4xf64``, ``: f64``, ``<f64>``."""
MAX_CHARS = 200_000


def find_demoted_argument(testcase: Testcase, signature: Signature) -> WrongCall | None:
    """Return the refusal of an f64 argument by a function that is declared with f64, corrected by the flag."""
    declared = any("f64" in text for text in testcase.files.values())
    if not declared or _REFUSED.search(signature.message) is None:
        return None
    wrong = _mend(testcase, DemotedType(flag=KEEP, given="f64", taken="f32"))
    # Some operations cannot be compiled with f64 at all. Then only f32 arguments fit the function.
    narrow = _narrow_arguments(testcase)
    return wrong if wrong is None or narrow is None else replace(wrong, mended=(*wrong.mended, narrow))


def _narrow_arguments(testcase: Testcase) -> Testcase | None:
    """Return the commands with f32 instead of f64 in the arguments. None without one."""
    steps = tuple(
        tuple(re.sub(r"(?<=x)f64(?==|$)", "f32", word) if word.startswith("--input=") else word for word in step)
        for step in testcase.steps
    )
    return None if steps == testcase.steps else msgspec.structs.replace(testcase, steps=steps)


def find_demoted_values(failure: Failure) -> WrongCall | None:
    """Return the f64 computation whose printed or checked values the report calls wrong, corrected by the flag.

    A crash or a refusal has another cause. So do values that f32 does not explain, by the definitions of the
    operations.
    """
    testcase, seen = failure.testcase, failure.seen
    checked = seen.signature is not None and seen.signature.type in (OUTPUT, *CHECKS)
    if failure.is_flaky or not checked or not isinstance(seen.ended, Exited):
        return None
    if testcase.kind is TestcaseKind.COMMAND_LINE and not any(
        step[0] == "iree-run-module" for step in testcase.steps
    ):
        return None
    if not any(_COMPUTES.search(text) for text in testcase.files.values()) or _is_wrong_in_f32(failure):
        return None
    return _mend(testcase, DemotedType(flag=KEEP, given="f64", taken="f32", values=True))


_ASKED = re.compile(r"(?P<flag>--iree-input-demote-(?P<given>[a-z]\d+)-to-(?P<taken>[a-z]\d+))(?:=(?:true|1))?")


def find_asked_demotion(failure: Failure) -> WrongCall | None:
    """Return the testcase's flag that replaces the type of the values which the report calls wrong.

    The corrected commands keep the type, and pass arguments of this type. The control run must then print other
    values.
    """
    testcase, seen = failure.testcase, failure.seen
    checked = seen.signature is not None and seen.signature.type in (OUTPUT, *CHECKS)
    if failure.is_flaky or not checked or not isinstance(seen.ended, Exited):
        return None
    asked = [found for step in testcase.steps if step[0] == "iree-compile" for found in map(_ASKED.fullmatch, step)]
    for one in asked:
        if one is None or not any(re.search(rf"{one['given']}(?!\w)", text) for text in testcase.files.values()):
            continue
        steps = tuple(tuple(_keep_type(word, one) for word in step) for step in testcase.steps)
        call = ReplacedType(flag=f"{one['flag']}=false", given=one["given"], taken=one["taken"])
        mended = msgspec.structs.replace(testcase, steps=steps)
        return WrongCall(call=call, mended=(mended,))
    return None


def _keep_type(word: str, asked: re.Match[str]) -> str:
    """Return a word of a command, changed to the type that the program declares."""
    if word == asked[0]:
        return f"{asked['flag']}=false"
    if word.startswith("--input="):
        return re.sub(rf"(?<=x){asked['taken']}(?==|$)", asked["given"], word)
    return word


def _mend(testcase: Testcase, call: DemotedType) -> WrongCall | None:
    texts = (*testcase.files.values(), *map(" ".join, testcase.steps))
    if any("demote-f64" in text for text in texts):
        return None
    mended = _mend_program(testcase) if testcase.kind is TestcaseKind.PYTHON else _mend_commands(testcase)
    return None if mended is None else WrongCall(call=call, mended=(mended,))


def _is_wrong_in_f32(failure: Failure) -> bool:
    """True if the same program with f32 instead of f64 has other values than the printed ones."""
    narrow = demote_floats(failure.testcase)
    return narrow is not None and has_other_values(narrow, failure.seen.excerpt)


def _mend_commands(testcase: Testcase) -> Testcase | None:
    steps = tuple((*step, KEEP) if step[0] == "iree-compile" else step for step in testcase.steps)
    return None if steps == testcase.steps else msgspec.structs.replace(testcase, steps=steps)


def _mend_program(testcase: Testcase) -> Testcase | None:
    """Return the program with the flag in each call of the compiler. None if a call has another form."""
    files = dict(testcase.files)
    for name, text in testcase.files.items():
        if name.endswith(".py") and len(text) <= MAX_CHARS:
            files[name] = _add_flag(text)
    return None if files == dict(testcase.files) else msgspec.structs.replace(testcase, files=files)


def _add_flag(text: str) -> str:
    """Add the flag to ``extra_args`` of each call that compiles."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    rows = text.split("\n")
    for call in sorted(_list_compiling(tree), key=lambda one: (one.end_lineno, one.end_col_offset), reverse=True):
        listed = next((one.value for one in call.keywords if one.arg == "extra_args"), None)
        if isinstance(listed, ast.List):
            row, column, word = listed.lineno, listed.col_offset + 1, f"{KEEP!r}, "
        elif listed is None and call.end_lineno is not None and call.end_col_offset is not None:
            row, column, word = call.end_lineno, call.end_col_offset - 1, f", extra_args=[{KEEP!r}]"
        else:
            continue
        line = rows[row - 1].encode()  # the columns of a syntax tree count bytes
        before, after = line[:column], line[column:]
        rows[row - 1] = (before.rstrip(b", ") if word[0] == "," else before).decode() + word + after.decode()
    return "\n".join(rows)


def _list_compiling(tree: ast.AST) -> list[ast.Call]:
    """Return the calls that compile a text."""
    calls = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _COMPILES:
                calls.append(node)
            case _:
                pass
    return calls
