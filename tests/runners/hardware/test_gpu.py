"""Health and choice of a GPU, from recorded output of the driver's tool: no GPU needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.hardware.gpu import (
    Gpu,
    Health,
    await_health,
    choose_gpu,
    find_fault,
    find_gpu_problems,
    list_gpus,
    lock_gpu,
    read_health,
)

LINE = "0, GPU-5a8e, NVIDIA H200, 570.86.15, 143771, 4, 0"
SECOND = "1, GPU-77aa, NVIDIA H200, 570.86.15, 143771, 4, [N/A]"
GPU = Gpu(
    index=0,
    uuid="GPU-5a8e",
    name="NVIDIA H200",
    driver="570.86.15",
    total=143771 * 2**20,
    used=4 * 2**20,
    ecc_errors=0,
)


class Machine:
    """Prints the output of a machine's programs."""

    def __init__(
        self,
        gpus: str | None = LINE,
        toolkit: str | None = "NVIDIA Container Toolkit CLI version 1.18.0",
        log: str = "",
    ):
        self.answers = {"nvidia-smi": gpus, "nvidia-ctk": toolkit, "dmesg": log}

    def __call__(self, words: Sequence[str]) -> str:
        output = self.answers[words[0]]
        if output is None:
            raise OSError(f"{words[0]}: not found")
        return output


def test_gpus_are_parsed_from_the_drivers_listing() -> None:
    """Sizes come in MiB. A card that counts no memory errors prints [N/A]."""
    assert list_gpus(Machine(f"{LINE}\n{SECOND}\n")) == (
        GPU,
        replace(GPU, index=1, uuid="GPU-77aa", ecc_errors=None),
    )


@pytest.mark.parametrize(
    "said", ["Failed to initialize NVML: Driver/library version mismatch", "0, GPU-5a8e", "a, b, c, d, e, f, g"]
)
def test_other_output_of_the_driver_is_refused(said: str) -> None:
    """A driver in trouble prints prose. That is our failure, not the testcase's."""
    with pytest.raises(InfraError, match="nvidia-smi printed"):
        list_gpus(Machine(said))


def test_exactly_one_gpu_is_chosen() -> None:
    """The operator names one of several. The error for an unknown name lists the GPUs."""
    both = Machine(f"{LINE}\n{SECOND}")
    assert choose_gpu({}, Machine()).index == 0
    assert choose_gpu({"REPROBOT_GPU": "1"}, both).uuid == "GPU-77aa"
    assert choose_gpu({"REPROBOT_GPU": "GPU-5a8e"}, both).index == 0
    for wanted in ({}, {"REPROBOT_GPU": "7"}):
        with pytest.raises(InfraError, match=r"0 \(NVIDIA H200\), 1 \(NVIDIA H200\)"):
            choose_gpu(wanted, both)


def test_fit_machine_has_no_problems() -> None:
    """Outside a workflow the machine is the operator's own, so it need not be ephemeral."""
    assert find_gpu_problems({}, Machine(), containers=True) == ()
    assert find_gpu_problems({"GITHUB_ACTIONS": "true", "REPROBOT_EPHEMERAL": "1"}, Machine(), containers=True) == ()


@pytest.mark.parametrize(
    ("environment", "machine", "says"),
    [
        ({}, Machine(gpus=None), "driver does not answer"),
        ({}, Machine(toolkit=None), "container toolkit is not installed"),
        ({}, Machine(toolkit="version 1.16.1"), "1.17.8 is the oldest safe one"),
        ({}, Machine(toolkit="no version at all"), "1.17.8 is the oldest safe one"),
        ({"GITHUB_ACTIONS": "true"}, Machine(), "REPROBOT_EPHEMERAL=1"),
    ],
)
def test_unfit_machine_states_its_problem(environment: dict[str, str], machine: Machine, says: str) -> None:
    """Each problem is reported alone and with its remedy."""
    reasons = find_gpu_problems(environment, machine, containers=True)
    assert len(reasons) == 1
    assert says in reasons[0]


def test_toolkit_is_needed_for_containers_only() -> None:
    """bubblewrap binds the device files itself."""
    assert find_gpu_problems({}, Machine(toolkit=None), containers=False) == ()


WELL = Health(gpu=GPU, faults=(13,))


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (WELL, None),
        (Health(gpu=GPU, faults=(13, 31, 43)), None),  # an illegal access is what the program did
        (Health(gpu=GPU, faults=(13, 79)), "Xid 79"),
        (Health(gpu=replace(GPU, ecc_errors=1), faults=(13,)), "could not be corrected"),
        (Health(gpu=replace(GPU, used=GPU.used + 2**30), faults=(13,)), "1.0 GiB"),
        (Health(gpu=replace(GPU, used=GPU.used + 2**20), faults=(13,)), None),
    ],
)
def test_only_hardware_faults_excuse_a_run(after: Health, says: str | None) -> None:
    """A testcase that causes a fault may show exactly the reported bug."""
    found = find_fault(WELL, after)
    assert (found is None) if says is None else (found is not None and says in found)


def test_memory_of_a_killed_run_may_take_a_moment_to_be_free() -> None:
    """An H100 (driver 580.159) still counted 687 MiB of a killed process, and 0 a second later."""
    answers = [LINE.replace(", 4, 0", f", {used}, 0") for used in (691, 691, 4)]
    before = Health(gpu=GPU, faults=())

    def run(words: Sequence[str]) -> str:
        return "" if words[0] == "dmesg" else answers.pop(0)

    assert find_fault(before, await_health(before, run)) is None
    assert answers == []


def test_memory_that_stays_in_use_is_a_fault() -> None:
    before = Health(gpu=GPU, faults=())
    after = await_health(before, Machine(LINE.replace(", 4, 0", ", 4000, 0")), wait_s=0.3)
    assert find_fault(before, after) == "3.9 GiB of the GPU's memory were not given back"


def test_vanished_gpu_is_our_failure() -> None:
    """The driver answers, but the card is gone."""
    with pytest.raises(InfraError, match="fallen off the bus"):
        read_health(GPU, Machine(SECOND))


def test_faults_are_read_from_the_kernels_log() -> None:
    """In order, old ones included: only new faults count against a run."""
    log = "x\n[12.3] NVRM: Xid (PCI:0000:01:00): 31, pid=7\n[13.0] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen\n"
    assert read_health(GPU, Machine(log=log)).faults == (31, 79)


def test_two_cells_do_not_share_a_gpu(tmp_path: Path) -> None:
    """The second cell waits until the first one has ended."""
    order: list[str] = []

    def cell(name: str) -> None:
        with lock_gpu(GPU, tmp_path, wait_s=20):
            order.append(f"{name} begins")
            time.sleep(0.05)
            order.append(f"{name} ends")

    threads = [threading.Thread(target=cell, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [words.split()[1] for words in order] == ["begins", "ends"] * 3


def test_lock_on_a_busy_gpu_times_out(tmp_path: Path) -> None:
    """A run does not wait forever for a device of another run."""
    with (
        lock_gpu(GPU, tmp_path, wait_s=1),
        pytest.raises(InfraError, match="busy"),
        lock_gpu(GPU, tmp_path, wait_s=0),
    ):
        pass
