"""A compiler's command-line programs, and the rules that turn calls in a report into steps of a testcase."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Step = tuple[str, ...]
"""argv of one step; the first word is the bare name of a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedProgram:
    """A program that compiles and runs in one call. The wheels lack the program."""

    name: str
    split: Callable[[Sequence[str], str], tuple[Step, Step]]
    """Flags and device → a compile call without its input, and a run call without its module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckProgram:
    """A program that runs the tests in its input. The wheels lack the program."""

    name: str
    return_checked: Callable[[str], tuple[str, tuple[str, ...]]]
    """An input → the input with tests that return the values they check, and the names of these tests."""
    run_test: Callable[[Sequence[str], str], Step]
    """A call of this program, and the name of a test → the call that runs the rewritten test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLineTools:
    """The programs of a compiler that reads MLIR and writes modules for a runner.

    Fields that end in ``patterns`` hold sources of regular expressions without capturing groups.
    """

    prefix: str
    """The beginning of the names of all programs."""
    programs: frozenset[str]
    """Programs that may become steps. All others are left out, and a repair says so."""
    other_programs: frozenset[str] = frozenset()
    """Programs that are recognized as commands and never become steps."""
    compiler: str
    """The program that makes a module."""
    compilers: frozenset[str]
    """Programs whose positional argument is MLIR."""
    runners: frozenset[str]
    """Programs that load a module."""
    module_flags: tuple[str, ...]
    """Flags that name the module to load, the current flag first."""
    module_suffix: str
    data_suffixes: tuple[str, ...] = ()
    """Suffixes of this compiler's own data files."""
    compile_input: Callable[[str, str, str], Step]
    """Device, input and module → the most ordinary call of the compiler."""
    output_suffix: Callable[[Sequence[str]], str]
    """A call of the compiler → the suffix of its output file."""
    combined: CombinedProgram | None = None
    check: CheckProgram | None = None
    result_header_patterns: tuple[str, ...] = ()
    """Lines that a runner prints above its results."""
    result_value_patterns: tuple[str, ...] = ()
    """The beginning of a printed result."""
    compared_values: re.Pattern[str] | None = None
    """The two values of a failed test, as groups ``actual`` and ``expected``."""
