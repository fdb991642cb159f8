"""A GPU's fitness, read from what its driver says: recorded answers, no GPU needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runners.core.errors import InfraError
from runners.hardware.gpu import Gpu, Health, chosen, exclusive, gpus, illness, look, preflight

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
    """Answers as the programs of a machine would."""

    def __init__(
        self,
        gpus: str | None = LINE,
        toolkit: str | None = "NVIDIA Container Toolkit CLI version 1.18.0",
        log: str = "",
    ):
        self.answers = {"nvidia-smi": gpus, "nvidia-ctk": toolkit, "dmesg": log}

    def __call__(self, words: Sequence[str]) -> str:
        said = self.answers[words[0]]
        if said is None:
            raise OSError(f"{words[0]}: not found")
        return said


def test_what_the_driver_says_is_read() -> None:
    """Sizes come in MiB; a card that counts no memory errors says so."""
    assert gpus(Machine(f"{LINE}\n{SECOND}\n")) == (
        GPU,
        replace(GPU, index=1, uuid="GPU-77aa", ecc_errors=None),
    )


@pytest.mark.parametrize(
    "said", ["Failed to initialize NVML: Driver/library version mismatch", "0, GPU-5a8e", "a, b, c, d, e, f, g"]
)
def test_what_is_no_listing_is_refused(said: str) -> None:
    """A driver in trouble prints prose; that is our trouble, not the testcase's."""
    with pytest.raises(InfraError, match="nvidia-smi said"):
        gpus(Machine(said))


def test_one_gpu_is_given_never_all() -> None:
    """Of several, the operator names one; a name that fits none is an error that lists what is there."""
    both = Machine(f"{LINE}\n{SECOND}")
    assert chosen({}, Machine()).index == 0
    assert chosen({"REPROBOT_GPU": "1"}, both).uuid == "GPU-77aa"
    assert chosen({"REPROBOT_GPU": "GPU-5a8e"}, both).index == 0
    for wanted in ({}, {"REPROBOT_GPU": "7"}):
        with pytest.raises(InfraError, match=r"0 \(NVIDIA H200\), 1 \(NVIDIA H200\)"):
            chosen(wanted, both)


def test_a_machine_that_is_fit_passes() -> None:
    """Outside of a workflow nobody asks whether the machine is thrown away: it is the operator's own."""
    assert preflight({}, Machine(), containers=True) == ()
    assert preflight({"GITHUB_ACTIONS": "true", "REPROBOT_EPHEMERAL": "1"}, Machine(), containers=True) == ()


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
def test_a_machine_that_is_not_fit_says_why(environment: dict[str, str], machine: Machine, says: str) -> None:
    """Each reason stands alone and names its mend."""
    reasons = preflight(environment, machine, containers=True)
    assert len(reasons) == 1
    assert says in reasons[0]


def test_without_containers_their_toolkit_does_not_matter() -> None:
    """bubblewrap binds the device files itself."""
    assert preflight({}, Machine(toolkit=None), containers=False) == ()


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
def test_only_the_hardwares_own_faults_excuse_a_run(after: Health, says: str | None) -> None:
    """A testcase that makes the kernel fault may show exactly the reported bug."""
    found = illness(WELL, after)
    assert (found is None) if says is None else (found is not None and says in found)


def test_a_gpu_that_vanished_is_our_failure() -> None:
    """The driver answers, but the card is gone."""
    with pytest.raises(InfraError, match="fallen off the bus"):
        look(GPU, Machine(SECOND))


def test_faults_are_read_from_the_kernels_log() -> None:
    """In their order, old ones included: only what is new counts against a run."""
    log = "x\n[12.3] NVRM: Xid (PCI:0000:01:00): 31, pid=7\n[13.0] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen\n"
    assert look(GPU, Machine(log=log)).faults == (31, 79)


def test_two_cells_do_not_share_a_gpu(tmp_path: Path) -> None:
    """The second one waits until the first is done."""
    order: list[str] = []

    def cell(name: str) -> None:
        with exclusive(GPU, tmp_path, wait_s=20):
            order.append(f"{name} begins")
            time.sleep(0.05)
            order.append(f"{name} ends")

    threads = [threading.Thread(target=cell, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [words.split()[1] for words in order] == ["begins", "ends"] * 3


def test_a_gpu_that_stays_busy_is_said_so(tmp_path: Path) -> None:
    """Nobody waits forever for a device that another run holds."""
    with (
        exclusive(GPU, tmp_path, wait_s=1),
        pytest.raises(InfraError, match="busy"),
        exclusive(GPU, tmp_path, wait_s=0),
    ):
        pass
