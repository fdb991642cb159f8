"""Open, once, the parts of this machine that runs need."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from runners.builds.commit_range import BuildRegistry
from runners.core.packages.catalogue import Catalogue
from runners.core.progress import Sink
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.facts import VULKAN
from runners.environments.store import Environment, Store
from runners.hardware.lavapipe import Driver
from runners.probe.canary import Canaries
from runners.probe.sessions import SessionPool
from runners.sandbox.contract import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Engine, store and builds. ``run_id`` labels everything that the engine creates."""

    engine: Engine
    store: Store
    catalogue: Catalogue
    progress: Sink
    run_id: str
    canaries: Canaries
    ready: dict[tuple[str, str, tuple[str, ...]], tuple[Environment, str]] = field(default_factory=dict)
    """Toolchain, version and requirements → the environment whose canary passed, and the identity of its copy."""
    sessions: SessionPool = field(default_factory=SessionPool)
    """Sandboxes that stay open between the runs of one plan."""
    driver: Driver | None = None
    """The software Vulkan driver, if the machine has one."""
    history: str = ""
    """A clone of the toolchain's repository that replaces the configured one."""
    day: date | None = None
    """Day of the investigated report. It chooses the versions of large packages."""
    registry: BuildRegistry = field(default_factory=BuildRegistry)
    """Builds between releases that were listed for a search."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Facts about the sandbox that a reader of the verdict must know."""
        image = (f"the system inside is the image {self.engine.image[:19]}",) if self.engine.own_system else ()
        return (*(f"the sandbox gives up: {loss}" for loss in self.engine.limitations), *image)

    def list_stand_ins(self, toolchain: Toolchain) -> tuple[str, ...]:
        """Return the devices here that replace an absent one: the toolchain's, and the software Vulkan device."""
        software = [one.name for one in toolchain.DEVICES if one.hardware is VULKAN and one.linked]
        return (*toolchain.STAND_INS, *(software if self.driver is not None else ()))
