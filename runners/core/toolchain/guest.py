"""Facts about one compiler that a run needs inside the sandbox, and that reading the run's record needs outside.

The host sends them with the job: the programs in `runners.guest.probe` and `runners.guest.script` know no compiler.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestFacts:
    """What a run of a compiler's program looks like from outside. The default holds for plain Python."""

    programs: tuple[str, ...] = ()
    """Beginnings of the names of the compiler's native programs. Such a program prints its stack on a fatal signal,
    as all programs of LLVM do."""
    compilers: tuple[str, ...] = ()
    """Names of the programs that compile; every other program runs what was compiled."""
    compile_functions: tuple[str, ...] = ()
    """Dotted names of Python functions that compile. They mark the phases of a script's run."""
    compiling_files: tuple[str, ...] = ()
    """Parts of paths: functions of such files are on the stack only while something is compiled."""
    reports_at_exit: tuple[str, ...] = ()
    """Packages that report at exit which of their objects still live: a frozen fork would report more."""
    thread_variables: tuple[str, ...] = ()
    """Variables that set the number of threads of the compiled program, beside OpenMP's."""
