"""A GPU that testcases may use: is it fit, did a run leave it fit, and nobody else on it meanwhile.

What the driver's own tool says is read here and nowhere else; the program that asks it is passed in, so that every
answer can be tested on a machine without a GPU. A device that is ill makes a probe ``infra``: never a verdict.
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
"""First container toolkit without the escape by a container's own environment (CVE-2025-23266)."""
EPHEMERAL = "REPROBOT_EPHEMERAL"
"""Set to 1 by the image of a runner that is thrown away after one job."""
LEFT_OVER_BYTES = 512 * 2**20
"""Device memory that a run may seem to keep: drivers release it a moment after the process is gone."""
_FIELDS = "index,uuid,name,driver_version,memory.total,memory.used,ecc.errors.uncorrected.volatile.total"
_QUERY = ("nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits")
_XID = re.compile(r"NVRM: Xid \([^)]{1,60}\): (\d{1,4})")
_HOPELESS_XIDS = frozenset({48, 63, 64, 74, 79, 92, 94, 95, 119, 120})
"""Memory, link and firmware faults: the hardware's, whatever ran (NVIDIA's table of Xid errors). 13, 31, 43 and 45
follow from what a program did, and are the program's."""

Ask = Callable[[Sequence[str]], str]
"""Runs a program and returns what it printed; raises `OSError` where it is not there or fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU as its driver describes it. Sizes in bytes."""

    index: int
    uuid: str
    name: str
    driver: str
    total: int
    used: int
    ecc_errors: int | None
    """Uncorrected since the driver was loaded; None where the card does not count."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its device files, and those that all GPUs share."""
        return (f"/dev/nvidia{self.index}", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


def ask(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{words[0]} did not answer within {error.timeout:g} s") from None
    if done.returncode != 0:
        raise OSError((done.stderr or done.stdout).strip()[-300:] or f"{words[0]} ended with {done.returncode}")
    return done.stdout


def gpus(run: Ask = ask) -> tuple[Gpu, ...]:
    """All of this machine's.

    Raises:
        InfraError: the driver does not answer.
    """
    try:
        listing = run(_QUERY)
    except OSError as error:
        raise InfraError(f"the NVIDIA driver does not answer ({error}): install it, or reboot") from None
    return tuple(_read(line) for line in listing.splitlines() if line.strip())


def _read(line: str) -> Gpu:
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
        raise InfraError(f"nvidia-smi said {line!r}, which is not what was asked: update the driver") from None


# ---------------------------------------------------------------------------------------------- before anything runs


def preflight(environment: Mapping[str, str], run: Ask = ask, *, containers: bool) -> tuple[str, ...]:
    """Why this machine must not run strangers' code on its GPU, each with the mend; empty when it may.

    ``containers``: the sandbox is a container, which NVIDIA's toolkit opens the GPU to.
    """
    return tuple(
        why
        for why in (
            _one_device(environment, run),
            _toolkit(run) if containers else None,
            _thrown_away(environment),
        )
        if why is not None
    )


def chosen(environment: Mapping[str, str], run: Ask = ask) -> Gpu:
    """The one GPU that probes may use: ``REPROBOT_GPU`` names it where there are several.

    Raises:
        InfraError: the driver does not answer, or there is none of that number.
    """
    found = gpus(run)
    wanted = environment.get("REPROBOT_GPU", "")
    if not wanted and len(found) == 1:
        return found[0]
    fit = [gpu for gpu in found if wanted in (str(gpu.index), gpu.uuid)]
    if len(fit) != 1:
        there = ", ".join(f"{gpu.index} ({gpu.name})" for gpu in found) or "none"
        raise InfraError(f"one GPU is needed, and REPROBOT_GPU={wanted or '(unset)'} does not name it: {there}")
    return fit[0]


def _one_device(environment: Mapping[str, str], run: Ask) -> str | None:
    try:
        chosen(environment, run)
    except InfraError as error:
        return str(error)
    return None


def _toolkit(run: Ask) -> str | None:
    try:
        said = run(("nvidia-ctk", "--version"))
    except OSError:
        return "NVIDIA's container toolkit is not installed: install nvidia-container-toolkit"
    found = re.search(r"(\d+\.\d+\.\d+)", said)
    try:
        if found and Version(found[1]) >= Version(TOOLKIT_FLOOR):
            return None
    except InvalidVersion:
        pass
    named = found[1] if found else repr(said.strip()[:40])
    return f"the container toolkit is {named}: {TOOLKIT_FLOOR} is the oldest safe one"


def _thrown_away(environment: Mapping[str, str]) -> str | None:
    if environment.get("GITHUB_ACTIONS") != "true" or environment.get("RUNNER_ENVIRONMENT") == "github-hosted":
        return None
    if environment.get(EPHEMERAL) == "1":
        return None
    return f"this runner is not thrown away after its job: register it with --ephemeral and set {EPHEMERAL}=1"


# ---------------------------------------------------------------------------------------------- around each cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """One look at a device."""

    gpu: Gpu
    faults: tuple[int, ...]
    """Numbers of the Xid faults in the kernel's log so far; empty where the log may not be read."""


def look(gpu: Gpu, run: Ask = ask) -> Health:
    """The device now.

    Raises:
        InfraError: it is not there any more.
    """
    now = next((one for one in gpus(run) if one.uuid == gpu.uuid), None)
    if now is None:
        raise InfraError(f"GPU {gpu.index} ({gpu.name}) has fallen off the bus: reboot the machine")
    try:
        log = run(("dmesg",))
    except OSError:
        log = ""
    return Health(gpu=now, faults=tuple(int(number) for number in _XID.findall(log)))


def illness(before: Health, after: Health) -> str | None:
    """Why what ran in between says nothing about a compiler; None when the device stayed well."""
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
def exclusive(gpu: Gpu, folder: Path, wait_s: float) -> Iterator[None]:
    """The GPU for one cell at a time, among all processes of this machine that share ``folder``.

    The lock is the kernel's: it goes with the process that holds it, however that ends.

    Raises:
        InfraError: it stayed busy for ``wait_s`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / f"{gpu.uuid}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(descriptor, gpu, wait_s)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, gpu: Gpu, wait_s: float) -> None:
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise InfraError(f"GPU {gpu.index} was busy for {wait_s:g} s: try again later") from None
            time.sleep(0.1)
