"""List the toolchains. Each compiler has one folder with the facts about it.

A toolchain satisfies `runners.core.toolchain.contract.Toolchain`, as a module or as an object of a class that
inherits its defaults. To add a toolchain, write one and add it to `TOOLCHAINS` (docs/add-a-toolchain.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runners.core.errors import UserError
from runners.core.protocol import Testcase
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.facts import Bundle, Canary, Device, DriftEntry
from runners.core.toolchain.failures import unite_vocabularies
from runners.toolchains import iree, tvm
from runners.toolchains.packages import list_package_canaries
from runners.toolchains.python import PlainPython

__all__ = ["TOOLCHAINS", "Bundle", "Canary", "Device", "DriftEntry", "Toolchain", "find_drift", "find_toolchain"]

TOOLCHAINS: Mapping[str, Toolchain] = {"tvm": tvm, "iree": iree, "python": PlainPython()}

ALL_FAILURES = unite_vocabularies(toolchain.FAILURES for toolchain in TOOLCHAINS.values())
"""The vocabulary for reports. They are read before their compiler is known."""


def find_toolchain(name: str) -> Toolchain:
    """Return the toolchain of a short name.

    Raises:
        UserError: the name is unknown.
    """
    try:
        return TOOLCHAINS[name]
    except KeyError:
        raise UserError(f"unknown toolchain {name!r}: choose one of {', '.join(sorted(TOOLCHAINS))}") from None


def list_compilers() -> str:
    """Return the names of the toolchains that issues can be about, for messages: ``a, b or c``."""
    names = [name for name, toolchain in TOOLCHAINS.items() if toolchain.REPORTS.marks is not None]
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def find_drift(toolchain: Toolchain, name: str) -> tuple[DriftEntry, ...]:
    """Return the entries about a dotted name, flag or keyword, or about a namespace that contains the name."""
    return tuple(entry for entry in toolchain.DRIFT if entry.covers(name))


def find_device(toolchain: Toolchain, text: str) -> Device | None:
    """Return the device that a reporter's word means."""
    word = text.strip().lower()
    return next((d for d in toolchain.DEVICES if word == d.name or word in d.aliases), None)


def make_canary_testcase(toolchain: Toolchain, version: str, requirements: Sequence[str] = ()) -> Testcase:
    """Return the canary as a testcase, after the canaries of the required packages.

    On a build that cannot generate code, the toolchain's canary only runs passes.
    """
    packages = list_package_canaries(requirements)
    bundle = toolchain.find_bundle(version)
    passes_only = bundle is not None and not bundle.compiles
    return Testcase(
        kind=toolchain.CANARY.kind,
        toolchain=toolchain.NAME,
        files={**toolchain.CANARY.files, **packages},
        steps=(
            *(("python", name) for name in packages),
            *((*step, "passes") if passes_only else step for step in toolchain.CANARY.steps),
        ),
    )
