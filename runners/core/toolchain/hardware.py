"""What devices need of a machine, and how a container is given it: facts. `runners.hardware.detect` finds them."""

from __future__ import annotations

from dataclasses import dataclass


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
