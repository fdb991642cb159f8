"""Tests of the conditions of reruns: all differ, and a reader can reproduce them."""

from __future__ import annotations

from itertools import product

import pytest

from runners.core.conditions import (
    FILLS,
    USUAL,
    choose_conditions,
    describe_conditions,
    is_native,
    list_shell_variables,
    list_start_variables,
    set_threads,
)
from runners.core.protocol import Testcase, TestcaseKind, Varied
from runners.probe.task import derive_conditions
from runners.toolchains import find_toolchain, iree, tvm


def test_all_runs_of_a_build_differ_in_conditions() -> None:
    """Ten hash seeds, and every fill with every number of threads within the first six runs."""
    runs = [choose_conditions(attempt, memory=True) for attempt in range(1, 11)]
    assert runs[0] == USUAL
    assert len({run.hash_seed for run in runs}) == 10
    assert {(run.fill, run.threads) for run in runs[:6]} == set(product((None, *FILLS), (None, 1)))


def test_a_compile_error_is_rerun_with_another_hash_seed_only() -> None:
    """The content of memory does not matter to such an error, and filling memory costs time."""
    assert choose_conditions(2, memory=False) == Varied(hash_seed=1)


def test_words_and_variables_are_one_set_of_conditions() -> None:
    """The description, the variables of the process and the variables of the shell agree."""
    varied = Varied(hash_seed=3, fill=0x55, threads=1)
    assert describe_conditions(varied) == "hash seed 3, new memory filled with 0xaa, 1 thread"
    assert list_shell_variables(varied, tvm) == {
        "PYTHONHASHSEED": "3",
        "TVM_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MALLOC_PERTURB_": "85",
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    }
    assert list_shell_variables(USUAL, tvm)["PYTHONHASHSEED"] == "0"
    assert (describe_conditions(USUAL), list_start_variables(USUAL), set_threads(USUAL.threads, tvm.GUEST)) == (
        "",
        {},
        {},
    )


def test_threads_are_set_in_the_toolchain_s_variables() -> None:
    """OpenMP's variable for every toolchain, and the compiler's own variable for that compiler only."""
    assert set_threads(1, tvm.GUEST) == {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    assert set_threads(1, iree.GUEST) == {"OMP_NUM_THREADS": "1"}


def test_a_zygote_serves_only_its_own_hash_seed() -> None:
    """The seed is fixed at the start of an interpreter: a fork would have the zygote's seed and report another."""
    assert derive_conditions(Varied(fill=0x55), 1).fork
    assert not derive_conditions(Varied(hash_seed=1), 1).fork
    assert not derive_conditions(USUAL, 2).scripts


@pytest.mark.parametrize(
    ("toolchain", "step", "native"),
    [
        ("iree", ("iree-run-module", "--module=a.vmfb"), True),
        ("iree", ("python", "a.py"), False),
        ("tvm", ("python", "a.py"), False),
        ("python", ("python", "a.py"), False),
    ],
)
def test_native_programs_read_no_seed_and_no_number_of_threads(
    toolchain: str, step: tuple[str, ...], native: bool
) -> None:
    testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain=toolchain, files={}, steps=(step,))
    assert is_native(testcase, find_toolchain(toolchain).GUEST) is native
