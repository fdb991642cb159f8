"""Find an argument with which a testcase switches off a safeguard of the compiler.

Such a safeguard keeps the result right for any program: the guard of a split whose factor does not divide the extent,
or the check of a primitive's conditions. Its documentation leaves the conditions to the caller. The mended testcase
leaves the safeguard on.
"""

from __future__ import annotations

import ast

import msgspec

from runners.core.findings import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import get_method, parse_programs

_SWITCHES = {"disable_predication": True, "enable_check": False, "assume_injective_transform": True}
"""Arguments of schedules, with the value that switches a safeguard off."""


def check_switches(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with its safeguards on."""
    rule = find_switched_off(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_switched_off(testcase: Testcase) -> BrokenRule | None:
    """Return the first call that switches a safeguard off; None without one. The mended testcase changes each."""
    for word, value in _SWITCHES.items():
        for name, tree in parse_programs(testcase, word):
            calls = [
                node for node in ast.walk(tree) if isinstance(node, ast.Call) and _find_switch(node, word, value)
            ]
            if calls:
                return _make_rule(testcase, name, sorted(calls, key=lambda node: node.lineno), word, value)
    return None


def _find_switch(call: ast.Call, word: str, value: bool) -> ast.Constant | None:
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(arg=name, value=ast.Constant(value=given) as constant) if (
                name == word and given is value
            ):
                return constant
            case _:
                pass
    return None


def _make_rule(testcase: Testcase, file: str, calls: list[ast.Call], word: str, value: bool) -> BrokenRule:
    lines = [line.encode() for line in testcase.files[file].split("\n")]
    for call in reversed(calls):
        constant = _find_switch(call, word, value)
        assert constant is not None
        line = lines[constant.lineno - 1]
        kept = str(not value).encode()
        lines[constant.lineno - 1] = line[: constant.col_offset] + kept + line[constant.end_col_offset :]
    mended = b"\n".join(lines).decode()
    return BrokenRule(
        operation=get_method(calls[0]) or ast.unparse(calls[0].func),
        file=file,
        line=calls[0].lineno,
        rule=Rule.SAFEGUARD_OFF,
        of=word,
        words=f"switches a safeguard off by {word}={value}",
        instead=f"{word}={not value}",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, file: mended}),
    )
