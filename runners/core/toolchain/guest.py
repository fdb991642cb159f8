"""Describe the sandbox as the host sees it: the place of our programs inside, and the facts about one compiler.

The host sends the facts with the job, because the programs in `runners.guest.probe` and `runners.guest.script` know
no compiler. Reading the record of a run outside needs the same facts.
"""

from __future__ import annotations

from dataclasses import dataclass

FOLDER = "/opt/reprobot"
"""Folder inside the sandbox. It contains only ``runners/guest``."""
GUEST = f"{FOLDER}/runners/guest"
LAUNCHER = f"{GUEST}/launch.py"

Step = tuple[str, ...]
"""The argv of one step of a testcase."""


def make_launch_step(program: str, *arguments: str) -> Step:
    """Return the step that runs a program of ``runners/guest``, such as ``tvm.diagnose``, with the environment's
    Python."""
    return ("python", LAUNCHER, program, *arguments)


def is_launch_step(step: Step, program: str = "") -> bool:
    """True if a step runs one of our programs: the named one, or any."""
    return step[:2] == ("python", LAUNCHER) and (not program or step[2:3] == (program,))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestFacts:
    """The facts that are needed to observe a compiler's programs. The default is for plain Python."""

    programs: tuple[str, ...] = ()
    """Prefixes of the names of the compiler's native programs. Such a program prints its stack on a fatal signal, as
    all programs of LLVM do."""
    compilers: tuple[str, ...] = ()
    """Names of the programs that compile. Every other program runs compiled code."""
    compile_functions: tuple[str, ...] = ()
    """Dotted names of Python functions that compile. They mark the phases of a script's run."""
    compiling_files: tuple[str, ...] = ()
    """Parts of paths. Functions of such files are on the stack only during compilation."""
    reports_at_exit: tuple[str, ...] = ()
    """Packages that report at exit which of their objects still live. A frozen fork would report additional ones."""
    base_import: str = ""
    """The statement that imports the compiler and, with it, most of what testcases import."""
    base_packages: tuple[str, ...] = ()
    """Packages that this statement imports. Their other modules import fast, except for ``slow_modules``."""
    slow_modules: tuple[str, ...] = ()
    """Modules that are slow to import, including the modules below them. These three fields affect only time."""
    thread_variables: tuple[str, ...] = ()
    """Variables that set the number of threads of the compiled program, in addition to OpenMP's."""
