"""What works on this machine, for ``reprobot doctor``: every engine, interpreter, device and the store."""

from __future__ import annotations

import shutil
from typing import assert_never

from runners.core.protocol import Wire
from runners.core.toolchain.hardware import VULKAN
from runners.environments import interpreters
from runners.environments.store import default_root
from runners.hardware import lavapipe
from runners.hardware.detect import Absent, Present, look
from runners.sandbox.select import engines
from runners.toolchains import TOOLCHAINS, Device


class Check(Wire, frozen=True, kw_only=True):
    """One thing that is there or not. ``detail`` says what to know of it, or why not and what would mend it."""

    area: str
    name: str
    works: bool
    detail: str
    gives: tuple[str, ...] = ()
    """What a sandbox guarantees, one by one: too much for a terminal, and the same for most."""


def examine() -> tuple[Check, ...]:
    """Every check, in the order a reader wants them."""
    return (*_engines(), *_pythons(), *_devices(), _store())


def _engines() -> list[Check]:
    checks = []
    for engine in engines():
        why_not = engine.unusable()
        losses = f"but: {'; '.join(engine.gives_up)}" if engine.gives_up else "all that SECURITY.md says of it"
        detail = why_not or losses
        gives = engine.guarantees if why_not is None else ()
        checks.append(Check(area="sandbox", name=engine.name, works=why_not is None, detail=detail, gives=gives))
    return checks


def _pythons() -> list[Check]:
    checks = []
    for minor in interpreters.PREFERRED:
        found = interpreters.find(minor)
        detail = f"{found.platform}" if found else f"not found: install python{minor}, or `uv python install {minor}`"
        checks.append(Check(area="python", name=minor, works=found is not None, detail=detail))
    return checks


def _devices() -> list[Check]:
    return [
        Check(area=f"{name} device", name=device.name, works=works, detail=detail)
        for name, toolchain in TOOLCHAINS.items()
        for device in toolchain.DEVICES
        for works, detail in [_device(device)]
    ]


def _device(device: Device) -> tuple[bool, str]:
    """Whether programs for a device can run here, and what gives it or what it would need."""
    if device.hardware is None:
        return True, "runs on any machine"
    if not device.linked:
        return False, f"the wheels bring no runtime for it: compiled only (it needs {device.hardware.words})"
    if device.hardware is VULKAN:
        driver = lavapipe.find(default_root())
        return (False, driver) if isinstance(driver, str) else (True, driver.name)
    match look(device.hardware):
        case Present(nodes=nodes):
            return True, f"{', '.join(nodes[:4])}"
        case Absent(why=why):
            return False, f"compiled only: {why}"
        case _ as never:
            assert_never(never)


def _store() -> Check:
    root = default_root()
    place = next(folder for folder in (root, *root.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    return Check(
        area="store",
        name=str(root),
        works=free > 2 * 2**30,
        detail=f"{free / 2**30:.1f} GiB free (an environment needs up to 1)",
    )
