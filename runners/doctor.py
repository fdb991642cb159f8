"""Check the parts of this machine for ``reprobot doctor``: engines, interpreters, devices and the store."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import assert_never

from runners.core.protocol import Wire
from runners.core.toolchain.facts import VULKAN
from runners.environments import interpreters
from runners.environments.store import default_root
from runners.hardware import lavapipe
from runners.hardware.detect import Absent, Present, detect_hardware
from runners.sandbox.select import list_engines
from runners.toolchains import TOOLCHAINS, Device


class MachineCheck(Wire, frozen=True, kw_only=True):
    """The state of one part. ``detail`` describes the part, or the reason and the remedy if it does not work."""

    area: str
    name: str
    works: bool
    detail: str
    gives: tuple[str, ...] = ()
    """The guarantees of a sandbox. A terminal does not show them: the list is long and similar for most engines."""


def check_machine_parts() -> tuple[MachineCheck, ...]:
    """Return every check in the order of display."""
    return (*_check_engines(), *_check_pythons(), *_check_devices(), _check_store())


def _check_engines() -> list[MachineCheck]:
    checks = []
    for engine in list_engines():
        problem = engine.find_problem()
        losses = f"but: {'; '.join(engine.limitations)}" if engine.limitations else "all that SECURITY.md says of it"
        detail = problem or losses
        gives = engine.guarantees if problem is None else ()
        checks.append(
            MachineCheck(area="sandbox", name=engine.name, works=problem is None, detail=detail, gives=gives)
        )
    return checks


def _check_pythons() -> list[MachineCheck]:
    checks = []
    for minor in interpreters.PREFERRED:
        found = interpreters.find_interpreter(minor)
        detail = f"{found.platform}" if found else f"not found: install python{minor}, or `uv python install {minor}`"
        checks.append(MachineCheck(area="python", name=minor, works=found is not None, detail=detail))
    return checks


def _check_devices() -> list[MachineCheck]:
    return [
        MachineCheck(area=f"{name} device", name=device.name, works=works, detail=detail)
        for name, toolchain in TOOLCHAINS.items()
        for device in toolchain.DEVICES
        for works, detail in [_check_device(device)]
    ]


def _check_device(device: Device) -> tuple[bool, str]:
    """Return True and the device's source if its programs can run here, else False and the missing part."""
    if device.hardware is None:
        return True, "runs on any machine"
    if not device.linked:
        return False, f"the wheels bring no runtime for it: compiled only (it needs {device.hardware.words})"
    if device.hardware is VULKAN:
        driver = lavapipe.find_driver(default_root())
        return (False, driver) if isinstance(driver, str) else (True, driver.name)
    match detect_hardware(device.hardware):
        case Present(nodes=nodes):
            compiler = device.compiler
            if compiler is not None and not Path(compiler.program).exists():
                return False, f"no {compiler.program} here: install {compiler.words}, which compiles the kernels"
            return True, f"{', '.join(nodes[:4])}"
        case Absent(why=why):
            return False, f"compiled only: {why}"
        case _ as never:
            assert_never(never)


def _check_store() -> MachineCheck:
    root = default_root()
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    return MachineCheck(
        area="store",
        name=str(root),
        works=free > 2 * 2**30,
        detail=f"{free / 2**30:.1f} GiB free (an environment needs up to 1)",
    )
