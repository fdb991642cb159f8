"""Install wheels for GPUs on a machine without one: replace the GPU packages by stand-ins.

The ordinary wheel of PyTorch links CUDA. Its GPU packages are 2 to 3 GB, and a CPU never calls them, but the wheel
does not load without them.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from runners.environments.stand_ins.compile import compile_stub
from runners.environments.stand_ins.elf import SharedLibrary, read_library

LAYOUT = "without GPU packages 1"
"""Part of the digest of environments with these stand-ins. Increase the number when other files are written."""

_PARTS = (
    *("cublas", "cuda-cupti", "cuda-nvrtc", "cuda-runtime", "cudnn", "cufft", "cufile", "curand", "cusolver"),
    *("cusparse", "cusparselt", "nccl", "nvjitlink", "nvshmem", "nvtx"),
)
_GPU_PACKAGES = frozenset(
    {f"nvidia-{part}{generation}" for part in _PARTS for generation in ("", "-cu11", "-cu12", "-cu13")}
    | {"cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "triton", "pytorch-triton"}
)
"""The packages that wheels of PyTorch 1.13 to 2.15 require on Linux for GPUs."""
_GPU_LIBRARY = re.compile(r"lib(?:cu|nv|nccl)[A-Za-z_]*\.so\.\d+")
_DRIVER = "libcuda.so.1"
"""Comes with the driver, not with a package. A stand-in would hide the driver from a compiler in the same process."""
_OTHER_PROVIDERS = ("Py", "_Py", "_Z")
"""Prefixes of symbols that the interpreter and the C++ library define."""

LINKED = {"torch": "torch/lib"}
"""A distribution whose libraries link the GPU packages → the folder where they look for them (their RUNPATH)."""


def list_excluded(wanted: Iterable[str]) -> tuple[str, ...]:
    """Return the GPU packages to leave out of a resolution: all that the testcase does not require itself.

    They are left out before the resolution, because some are published later than the release that is resolved.
    """
    return tuple(sorted(_GPU_PACKAGES - set(wanted)))


def needs_stand_ins(names: Iterable[str]) -> bool:
    """True if packages of a lock link GPU packages."""
    return not LINKED.keys().isdisjoint(names)


def add_stand_ins(site: Path) -> tuple[str, ...]:
    """Write a stand-in for each GPU library that the packages in ``site`` link and lack. Return their names.

    A build for CPUs links none, so no file is written.

    Raises:
        InfraError: there is no C compiler.
        ValueError: a library of the wheel names a symbol that is not a plain name.
    """
    written: list[str] = []
    for inside in LINKED.values():
        for soname, functions in list_missing(site, inside).items():
            compile_stub(soname, functions, site / inside)
            written.append(soname)
    return tuple(written)


def list_missing(site: Path, inside: str = "torch/lib") -> dict[str, dict[str, set[str]]]:
    """Return the functions of each GPU library that a folder's libraries link and lack, by symbol version."""
    libraries = {path.name: read_library(path) for path in (site / inside).glob("*.so*")}
    return _find_missing({name: found for name, found in libraries.items() if found is not None})


def _find_missing(libraries: dict[str, SharedLibrary]) -> dict[str, dict[str, set[str]]]:
    """Return, for each linked and absent GPU library, the symbols by version that it must contain.

    A symbol without a version may be in any library that its user links, so the first missing one gets it.
    """
    defined = frozenset().union(*(one.defines for one in libraries.values()))
    missing: dict[str, dict[str, set[str]]] = {}
    for one in libraries.values():
        absent = [name for name in one.libraries if _is_missing(name) and name not in libraries]
        for soname in absent:
            missing.setdefault(soname, {})
        for need in one.needs:
            if need.library in absent:
                missing[need.library].setdefault(need.version, set()).add(need.name)
            elif absent and not need.version and need.name not in defined and not _has_provider(need.name):
                missing[_choose_library(need.name, absent)].setdefault("", set()).add(need.name)
    return missing


def _is_missing(soname: str) -> bool:
    return bool(_GPU_LIBRARY.fullmatch(soname)) and soname != _DRIVER


def _choose_library(symbol: str, absent: Sequence[str]) -> str:
    """Return the library with the longest stem that is a prefix of the symbol: ``libnccl.so.2`` for ``ncclSend``."""
    fitting = [one for one in absent if symbol.lower().startswith(_get_stem(one))]
    return max(fitting, key=lambda one: len(_get_stem(one)), default=absent[0])


def _get_stem(soname: str) -> str:
    return soname.removeprefix("lib").partition(".")[0].lower()


def _has_provider(symbol: str) -> bool:
    """True if the interpreter, the C++ library or the C library defines the symbol."""
    return symbol.startswith(_OTHER_PROVIDERS) or hasattr(ctypes.CDLL(None), symbol)
