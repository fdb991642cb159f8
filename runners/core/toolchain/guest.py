"""The sandbox as the host sees it: where our programs lie inside, and the facts about one compiler that they need.

The host sends the facts with the job: the programs in `runners.guest.probe` and `runners.guest.script` know no
compiler. Reading the record of a run needs the same facts outside.
"""

from __future__ import annotations

from dataclasses import dataclass

FOLDER = "/opt/reprobot"
"""Folder inside the sandbox. It holds ``runners/guest`` only."""
GUEST = f"{FOLDER}/runners/guest"
LAUNCHER = f"{GUEST}/launch.py"

Step = tuple[str, ...]
"""The argv of one step of a testcase."""


def make_launch_step(program: str, *arguments: str) -> Step:
    """Return the step that runs a program of ``runners/guest``, such as ``tvm.diagnose``, with the environment's
    Python."""
    return ("python", LAUNCHER, program, *arguments)


def is_launch_step(step: Step, program: str = "") -> bool:
    """True if a step runs one of our programs: any of them, or the named one."""
    return step[:2] == ("python", LAUNCHER) and (not program or step[2:3] == (program,))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestFacts:
    """The traits by which a run of a compiler's program is watched. The default holds for plain Python."""

    programs: tuple[str, ...] = ()
    """Beginnings of the names of the compiler's native programs. Such a program prints its stack on a fatal signal,
    as all programs of LLVM do."""
    compilers: tuple[str, ...] = ()
    """Names of the programs that compile. Every other program runs compiled code."""
    compile_functions: tuple[str, ...] = ()
    """Dotted names of Python functions that compile. They mark the phases of a script's run."""
    compiling_files: tuple[str, ...] = ()
    """Parts of paths. Functions of such files are on the stack only during a compilation."""
    reports_at_exit: tuple[str, ...] = ()
    """Packages that report at exit which of their objects still live. A frozen fork would report more of them."""
    base_import: str = ""
    """The statement that imports the compiler, and with it what most testcases import."""
    base_packages: tuple[str, ...] = ()
    """Packages that this statement imports. Their other modules are fast to import, but for ``slow_modules``."""
    slow_modules: tuple[str, ...] = ()
    """Modules that take long to import, with the modules below them. Only time depends on these three fields."""
    thread_variables: tuple[str, ...] = ()
    """Variables that set the number of threads of the compiled program, beside OpenMP's."""
