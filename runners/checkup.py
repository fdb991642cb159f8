"""What works on this machine, for ``reprobot doctor``: every engine, interpreter, device and the store."""

from __future__ import annotations

import shutil

from runners import interpreters
from runners.environments import default_root
from runners.protocol import Wire
from runners.sandbox.select import engines
from runners.toolchains import TOOLCHAINS


class Check(Wire, frozen=True, kw_only=True):
    """One thing that is there or not. ``detail`` says what it gives, or why not and what would mend it."""

    area: str
    name: str
    works: bool
    detail: str


def examine() -> tuple[Check, ...]:
    """Every check, in the order a reader wants them."""
    return (*_engines(), *_pythons(), *_devices(), _store())


def _engines() -> list[Check]:
    checks = []
    for engine in engines():
        why_not = engine.unusable()
        detail = why_not or "; ".join([*engine.guarantees, *(f"but: {loss}" for loss in engine.gives_up)])
        checks.append(Check(area="sandbox", name=engine.name, works=why_not is None, detail=detail))
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
        Check(
            area=f"{name} device",
            name=device.name,
            works=device.available,
            detail="runs on any machine" if device.needs is None else f"needs {device.needs}",
        )
        for name, toolchain in TOOLCHAINS.items()
        for device in toolchain.DEVICES
    ]


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
