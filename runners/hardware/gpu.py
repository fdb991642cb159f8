"""Share a GPU with testcases: check the machine, lock the GPU for one cell, compare its health before and after.

Only this module reads the output of the driver's tool. The function that runs the tool is passed in, so that every
output can be tested without a GPU. A faulty device makes a probe ``infra`` and never gives a verdict.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from runners.core.errors import InfraError

TOOLKIT_FLOOR = "1.17.8"
"""First container toolkit that prevents the escape through a container's environment (CVE-2025-23266)."""
EPHEMERAL = "REPROBOT_EPHEMERAL"
"""Variable that is 1 in the image of a runner that is deleted after one job."""
LEFT_OVER_BYTES = 512 * 2**20
"""Device memory that a run may seem to keep, because drivers release memory shortly after a process ends."""
RELEASE_S = 10.0
"""Seconds in which the driver releases the memory of a killed process."""
_FIELDS = "index,uuid,name,driver_version,memory.total,memory.used,ecc.errors.uncorrected.volatile.total"
_QUERY = ("nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits")
_XID = re.compile(r"NVRM: Xid \([^)]{1,60}\): (\d{1,4})")
_HOPELESS_XIDS = frozenset({48, 63, 64, 74, 79, 92, 94, 95, 119, 120})
"""Faults of memory, link and firmware, which are always the hardware's (NVIDIA's table of Xid errors). A program can
cause 13, 31, 43 and 45."""

RunProgram = Callable[[Sequence[str]], str]
"""Runs a program and returns its output; raises `OSError` if the program is absent or fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU as its driver describes it. Sizes are in bytes."""

    index: int
    uuid: str
    name: str
    driver: str
    total: int
    used: int
    ecc_errors: int | None
    """Uncorrected memory errors since the driver was loaded. None if the card does not count them."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The device files of this GPU, and those that all GPUs share."""
        return (f"/dev/nvidia{self.index}", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


def run_program(words: Sequence[str]) -> str:
    """See `RunProgram`."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{words[0]} did not answer within {error.timeout:g} s") from None
    if done.returncode != 0:
        raise OSError((done.stderr or done.stdout).strip()[-300:] or f"{words[0]} ended with {done.returncode}")
    return done.stdout


def list_gpus(run: RunProgram = run_program) -> tuple[Gpu, ...]:
    """Return all NVIDIA GPUs of this machine.

    Raises:
        InfraError: the driver does not answer.
    """
    try:
        listing = run(_QUERY)
    except OSError as error:
        raise InfraError(f"the NVIDIA driver does not answer ({error}): install it, or reboot") from None
    return tuple(_parse_gpu(line) for line in listing.splitlines() if line.strip())


def _parse_gpu(line: str) -> Gpu:
    words = [word.strip() for word in line.split(",")]
    try:
        index, uuid, name, driver, total, used, ecc = words
        return Gpu(
            index=int(index),
            uuid=uuid,
            name=name,
            driver=driver,
            total=int(total) * 2**20,
            used=int(used) * 2**20,
            ecc_errors=int(ecc) if ecc.isdigit() else None,
        )
    except ValueError:
        raise InfraError(f"nvidia-smi printed {line!r} instead of the queried fields: update the driver") from None


# ---------------------------------------------------------------------------------------------- before anything runs


def find_gpu_problems(
    environment: Mapping[str, str], run: RunProgram = run_program, *, containers: bool
) -> tuple[str, ...]:
    """Return why this machine must not run issue code on its GPU, each reason with its remedy. Empty if it may.

    ``containers`` is True if the sandbox is a container, to which NVIDIA's toolkit opens the GPU.
    """
    problems = (
        _find_choice_problem(environment, run),
        _find_toolkit_problem(run) if containers else None,
        _find_runner_problem(environment),
    )
    return tuple(problem for problem in problems if problem is not None)


def choose_gpu(environment: Mapping[str, str], run: RunProgram = run_program) -> Gpu:
    """Return the only GPU that probes may use. ``REPROBOT_GPU`` selects one of several.

    Raises:
        InfraError: the driver does not answer, or no GPU has that number.
    """
    found = list_gpus(run)
    wanted = environment.get("REPROBOT_GPU", "")
    if not wanted and len(found) == 1:
        return found[0]
    fit = [gpu for gpu in found if wanted in (str(gpu.index), gpu.uuid)]
    if len(fit) != 1:
        there = ", ".join(f"{gpu.index} ({gpu.name})" for gpu in found) or "none"
        raise InfraError(f"one GPU is needed, and REPROBOT_GPU={wanted or '(unset)'} does not name it: {there}")
    return fit[0]


def _find_choice_problem(environment: Mapping[str, str], run: RunProgram) -> str | None:
    try:
        choose_gpu(environment, run)
    except InfraError as error:
        return str(error)
    return None


def _find_toolkit_problem(run: RunProgram) -> str | None:
    try:
        output = run(("nvidia-ctk", "--version"))
    except OSError:
        return "NVIDIA's container toolkit is not installed: install nvidia-container-toolkit"
    found = re.search(r"(\d+\.\d+\.\d+)", output)
    try:
        if found and Version(found[1]) >= Version(TOOLKIT_FLOOR):
            return None
    except InvalidVersion:
        pass
    named = found[1] if found else repr(output.strip()[:40])
    return f"the container toolkit is {named}: {TOOLKIT_FLOOR} is the oldest safe one"


def _find_runner_problem(environment: Mapping[str, str]) -> str | None:
    if environment.get("GITHUB_ACTIONS") != "true" or environment.get("RUNNER_ENVIRONMENT") == "github-hosted":
        return None
    if environment.get(EPHEMERAL) == "1":
        return None
    return f"this runner is not ephemeral: register it with --ephemeral, for one job, and set {EPHEMERAL}=1"


# ---------------------------------------------------------------------------------------------- around each cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a device at one time."""

    gpu: Gpu
    faults: tuple[int, ...]
    """Numbers of the Xid faults in the kernel's log so far. Empty if the log cannot be read."""


def read_health(gpu: Gpu, run: RunProgram = run_program) -> Health:
    """Return the current state of the device.

    Raises:
        InfraError: the device is gone.
    """
    now = next((one for one in list_gpus(run) if one.uuid == gpu.uuid), None)
    if now is None:
        raise InfraError(f"GPU {gpu.index} ({gpu.name}) has fallen off the bus: reboot the machine")
    try:
        log = run(("dmesg",))
    except OSError:
        log = ""
    return Health(gpu=now, faults=tuple(int(number) for number in _XID.findall(log)))


def await_health(before: Health, run: RunProgram = run_program, *, wait_s: float = RELEASE_S) -> Health:
    """Return the state of the device after a run, once its memory is free again or ``wait_s`` seconds have passed.

    Raises:
        InfraError: the device is gone.
    """
    until = time.monotonic() + wait_s
    while True:
        after = read_health(before.gpu, run)
        if after.gpu.used - before.gpu.used <= LEFT_OVER_BYTES or time.monotonic() > until:
            return after
        time.sleep(0.2)


def find_fault(before: Health, after: Health) -> str | None:
    """Return a fault that makes the run in between useless as evidence about a compiler. None without a fault."""
    new = [number for number in after.faults[len(before.faults) :] if number in _HOPELESS_XIDS]
    if new:
        return f"the GPU reported a hardware fault (Xid {new[0]})"
    if (after.gpu.ecc_errors or 0) > (before.gpu.ecc_errors or 0):
        return "the GPU's memory had an error that could not be corrected"
    if after.gpu.used - before.gpu.used > LEFT_OVER_BYTES:
        kept = (after.gpu.used - before.gpu.used) / 2**30
        return f"{kept:.1f} GiB of the GPU's memory were not given back"
    return None


@contextmanager
def lock_gpu(gpu: Gpu, folder: Path, wait_s: float) -> Iterator[None]:
    """Reserve the GPU for one cell at a time, among all processes of this machine that share ``folder``.

    The kernel releases the lock when the process that holds it ends or is killed.

    Raises:
        InfraError: the GPU was busy for ``wait_s`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / f"{gpu.uuid}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take_lock(descriptor, gpu, wait_s)
        yield
    finally:
        os.close(descriptor)


def _take_lock(descriptor: int, gpu: Gpu, wait_s: float) -> None:
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise InfraError(f"GPU {gpu.index} was busy for {wait_s:g} s: try again later") from None
            time.sleep(0.1)
