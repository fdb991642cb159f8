"""Under what a run is made besides the usual: the order of Python's sets, what new memory holds, how many threads.

None of it is part of a testcase, and all of it can decide a result that nothing else decides. The first run of a
build is made as usual; each one after it under other conditions, so that runs do not agree by one accident. Pure.
"""

from __future__ import annotations

from runners.core.protocol import Varied
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.guest import GuestFacts

USUAL = Varied()
FILLS = (0x55, 0x80)
"""New memory is filled with the complement: as float32, -3.0e-13 and 3.4e38; as int32, far outside of any index."""
UNCACHED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
"""Small blocks that a thread keeps for itself are handed out unfilled (glibc malloc.c, ``tcache_get``)."""
COULD_DIFFER = frozenset({"AssertionError", "output", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE"})
"""Types of failures that may depend on what memory holds. An error of the compiler about its input does not."""


def choose_conditions(attempt: int, *, memory: bool) -> Varied:
    """The conditions of the given run of a build (1-based). ``memory``: whether what memory holds could matter.

    No two runs share their hash seed; patterns and numbers of threads come in all six pairs from run 1 to run 6.
    """
    turn = attempt - 1
    if not memory:
        return Varied(hash_seed=turn)
    return Varied(hash_seed=turn, fill=(None, *FILLS)[turn % 3], threads=(None, 1)[turn % 2])


def list_start_variables(varied: Varied) -> dict[str, str]:
    """The process environment that must be there when an interpreter starts."""
    order = {"PYTHONHASHSEED": str(varied.hash_seed)} if varied.hash_seed else {}
    return order | (UNCACHED if varied.fill is not None else {})


def set_threads(threads: int | None, facts: GuestFacts) -> dict[str, str]:
    """The variables for a number of threads. They may be set in a process that has imported the compiler."""
    return {} if threads is None else dict.fromkeys(_thread_variables(facts), str(threads))


def _thread_variables(facts: GuestFacts) -> tuple[str, ...]:
    return (*facts.thread_variables, "OMP_NUM_THREADS")


def list_shell_variables(varied: Varied, toolchain: Toolchain) -> dict[str, str]:
    """All variables with which a shell gets these conditions for a program of the toolchain."""
    deciding = ("PYTHONHASHSEED", *_thread_variables(toolchain.GUEST))
    usual = {name: toolchain.VARIABLES[name] for name in deciding if name in toolchain.VARIABLES}
    fill = {} if varied.fill is None else {"MALLOC_PERTURB_": str(varied.fill)}
    return usual | list_start_variables(varied) | fill | set_threads(varied.threads, toolchain.GUEST)


def describe_conditions(varied: Varied) -> str:
    """``hash seed 1, new memory filled with 0xaa, 1 thread``; empty for the usual."""
    parts = (
        f"hash seed {varied.hash_seed}" if varied.hash_seed else "",
        f"new memory filled with 0x{255 - varied.fill:02x}" if varied.fill is not None else "",
        f"{varied.threads} thread{'s' * (varied.threads != 1)}" if varied.threads is not None else "",
    )
    return ", ".join(part for part in parts if part)
