"""Find an argument by which a testcase disables a safeguard of the compiler.

Such a safeguard ensures the right result for any program: the guard of a split whose factor does not divide the
extent, or the check of a primitive's conditions. By its documentation, the caller must ensure the conditions. The
repaired testcase keeps the safeguard.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import get_method, parse_programs, replace_expressions

_SWITCHES = {"disable_predication": True, "enable_check": False, "assume_injective_transform": True}
"""Arguments of schedules, with the value that disables a safeguard."""


def check_switches(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with its safeguards on."""
    rule = find_switched_off(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_switched_off(testcase: Testcase) -> BrokenRule | None:
    """Return the first call that disables a safeguard. None without one. The repaired testcase changes each call."""
    for word, value in _SWITCHES.items():
        for name, tree in parse_programs(testcase, word):
            found = sorted(_list_switches(tree, word, value), key=lambda one: (one[1].lineno, one[1].col_offset))
            if found:
                return _make_rule(testcase, name, found, word, value)
    return None


def _list_switches(tree: ast.Module, word: str, value: bool) -> Iterator[tuple[ast.Call, ast.Constant]]:
    """Yield each call that disables the safeguard, with the value that does so."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg == word and isinstance(keyword.value, ast.Constant) and keyword.value.value is value:
                yield call, keyword.value


def _make_rule(
    testcase: Testcase, file: str, found: Sequence[tuple[ast.Call, ast.Constant]], word: str, value: bool
) -> BrokenRule:
    first = found[0][0]
    return BrokenRule(
        operation=get_method(first) or ast.unparse(first.func),
        file=file,
        line=first.lineno,
        rule=Rule.SAFEGUARD_OFF,
        of=word,
        words=f"switches a safeguard off by {word}={value}",
        traps=True,  # an access beyond a buffer may end the program
        instead=f"{word}={not value}",
        mended=replace_expressions(testcase, file, [(given, str(not value)) for _, given in found]),
    )
