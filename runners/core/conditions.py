"""Vary the conditions of runs: the order of Python's sets, the content of new memory, the number of threads. Pure.

These conditions are not part of a testcase, but can decide its result. The first run of a build uses the usual
conditions. Each further run uses others, so that runs cannot agree by accident.
"""

from __future__ import annotations

from runners.core.protocol import Testcase, Varied
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.guest import GuestFacts

USUAL = Varied()
FILLS = (0x55, 0x80)
"""Bytes whose complement fills new memory. As float32: -3.0e-13 and 3.4e38; as int32: far outside of any index."""
UNCACHED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""Turns off the thread cache of malloc, which returns small blocks unfilled (glibc malloc.c, ``tcache_get``)."""
COULD_DIFFER = frozenset({"AssertionError", "output", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE"})
"""Types of failures that may depend on the content of memory. A compiler error about the input does not."""


def choose_conditions(attempt: int, *, memory: bool) -> Varied:
    """Return the conditions of one attempt on a build (1-based). ``memory``: True if the content of memory may
    matter.

    Each run has its own hash seed. Runs 1 to 6 use all six pairs of a fill and a number of threads.
    """
    turn = attempt - 1
    if not memory:
        return Varied(hash_seed=turn)
    return Varied(hash_seed=turn, fill=(None, *FILLS)[turn % 3], threads=(None, 1)[turn % 2])


def list_start_variables(varied: Varied) -> dict[str, str]:
    """Return the environment variables that must be set before an interpreter starts."""
    order = {"PYTHONHASHSEED": str(varied.hash_seed)} if varied.hash_seed else {}
    return order | (UNCACHED if varied.fill is not None else {})


def set_threads(threads: int | None, facts: GuestFacts) -> dict[str, str]:
    """Return the variables that set the number of threads. They may be set after the compiler was imported."""
    return {} if threads is None else dict.fromkeys(_thread_variables(facts), str(threads))


def _thread_variables(facts: GuestFacts) -> tuple[str, ...]:
    return (*facts.thread_variables, "OMP_NUM_THREADS")


def is_native(testcase: Testcase, facts: GuestFacts) -> bool:
    """True if no program of the testcase reads a hash seed, a seed or a number of threads.

    Of these conditions, only the content of memory can decide the result of such programs.
    """
    return not facts.thread_variables and all(step[0].startswith(facts.programs) for step in testcase.steps)


def list_shell_variables(varied: Varied, toolchain: Toolchain) -> dict[str, str]:
    """Return the shell variables that give a program of the toolchain these conditions."""
    deciding = ("PYTHONHASHSEED", *_thread_variables(toolchain.GUEST))
    usual = {name: toolchain.VARIABLES[name] for name in deciding if name in toolchain.VARIABLES}
    fill = {} if varied.fill is None else {"MALLOC_PERTURB_": str(varied.fill)}
    return usual | list_start_variables(varied) | fill | set_threads(varied.threads, toolchain.GUEST)


def describe_conditions(varied: Varied) -> str:
    """Return ``hash seed 1, new memory filled with 0xaa, 1 thread``. Empty for the usual conditions."""
    parts = (
        f"hash seed {varied.hash_seed}" if varied.hash_seed else "",
        f"new memory filled with 0x{255 - varied.fill:02x}" if varied.fill is not None else "",
        f"{varied.threads} thread{'s' * (varied.threads != 1)}" if varied.threads is not None else "",
    )
    return ", ".join(part for part in parts if part)
