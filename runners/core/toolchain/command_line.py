"""A compiler's command-line programs, and how the calls in a report become the steps of a testcase."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Step = tuple[str, ...]
"""argv of one step; the first word is the bare name of a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedProgram:
    """A program that compiles and runs in one call, and that the wheels lack."""

    name: str
    split: Callable[[Sequence[str], str], tuple[Step, Step]]
    """Flags and device → the call that compiles, without input, and the call that runs, without module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProgram:
    """A program that runs the tests in its input, and that the wheels lack."""

    name: str
    return_checked: Callable[[str], tuple[str, tuple[str, ...]]]
    """Rewrite an input so that each test returns the values that it checks: the new text, the names of the tests."""
    run_test: Callable[[Sequence[str], str], Step]
    """A call of this program and the name of a test → the call that runs the rewritten test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLineTools:
    """The programs of a compiler that reads MLIR and writes modules for a runner.

    Fields that end in ``patterns`` hold sources of regular expressions without capturing groups.
    """

    prefix: str
    """How the names of all programs begin."""
    programs: frozenset[str]
    """Programs that may become steps. All others in a report's command lines are left out, and said so."""
    other_programs: frozenset[str] = frozenset()
    """Programs that are recognised as commands and never become steps."""
    compiler: str
    """The program that makes a module."""
    compilers: frozenset[str]
    """Programs whose positional argument is MLIR."""
    runners: frozenset[str]
    """Programs that load a module."""
    module_flags: tuple[str, ...]
    """Flags that name the module to load; the first is the current one."""
    module_suffix: str
    data_suffixes: tuple[str, ...] = ()
    """Suffixes of this compiler's own data files."""
    compile_input: Callable[[str, str, str], Step]
    """Device, input and module → the most ordinary call of the compiler."""
    output_suffix: Callable[[Sequence[str]], str]
    """The suffix of what a call of the compiler writes."""
    combined: CombinedProgram | None = None
    check: CheckProgram | None = None
    result_header_patterns: tuple[str, ...] = ()
    """Lines that a runner prints above its results."""
    result_value_patterns: tuple[str, ...] = ()
    """How a printed result begins."""
    compared_values: re.Pattern[str] | None = None
    """A failed test's two values, as groups ``actual`` and ``expected``."""
