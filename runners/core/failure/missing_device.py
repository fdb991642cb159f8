"""Recognize missing or faulty hardware, and incomplete builds: output → reason in words, or None. Pure.

Only a message counts, never the mere name of a device: programs for a GPU compile on any machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from runners.core.toolchain.failures import DEVICES, FailureVocabulary, Sign, sign_of_missing_device

MAX_CHARS = 60_000
"""Characters at the end of an output that are searched."""

_MISSING = (
    sign_of_missing_device(rf"{DEVICES}[^\n]{{0,60}}(?:library|driver|runtime)[^\n]{{0,40}} not (?:available|found)"),
    sign_of_missing_device(rf"{DEVICES}_ERROR_NO_DEVICE|no (?:CUDA|ROCm)-capable device"),
    sign_of_missing_device(r"(?P<device>VK)_ERROR_(?:INCOMPATIBLE_DRIVER|INITIALIZATION_FAILED)"),
    # JAX and PyTorch, if no installed package contains the requested backend.
    sign_of_missing_device(
        r"Unknown backend:? '?(?P<device>[\w-]{1,30})'?[^\n]{0,60}(?:Available backends|no platforms)"
    ),
    sign_of_missing_device(r"Unable to initialize backend '(?P<device>[\w-]{1,30})'"),
    sign_of_missing_device(r"Torch not compiled with (?P<device>CUDA) enabled"),
    sign_of_missing_device(r"Found no (?P<device>NVIDIA) driver on your system"),
    # The compiler drivers of the devices' makers, which a program starts by name.
    Sign(
        pattern=re.compile(
            r"No such file or directory: '(?:[^'\n]{0,200}/)?(?P<device>nvcc|ptxas|hipcc|xcrun)'", re.IGNORECASE
        ),
        means="no {device} here, the compiler of the device's maker",
    ),
)


def find_missing_device(text: str, vocabulary: FailureVocabulary) -> str | None:
    """Return a sentence that names the device which the output reports as missing. None without such a message."""
    return _read_first_sign(text, (*vocabulary.missing_devices, *_MISSING))


def find_missing_part(text: str, vocabulary: FailureVocabulary) -> str | None:
    """Return a sentence that names the part of the compiler which the build lacks; None without such a message."""
    return _read_first_sign(text, vocabulary.missing_parts)


_TROUBLES = tuple(
    Sign(pattern=re.compile(sign, re.IGNORECASE), means=why)
    for sign, why in (
        (
            r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY"
            r"|CUDA: out of memory",
            "the device ran out of memory",
        ),
        (
            r"CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable|uncorrectable ECC error",
            "the device's memory had an uncorrectable error",
        ),
        (
            r"VK_ERROR_DEVICE_LOST|CUDA_ERROR_DEVICE_UNAVAILABLE|all CUDA-capable devices are busy",
            "the device was lost",
        ),
        (
            r"CUDA_ERROR_SYSTEM_(?:DRIVER_MISMATCH|NOT_READY)|Driver/library version mismatch"
            r"|driver version is insufficient for CUDA runtime",
            "the driver does not fit the device or its runtime",
        ),
    )
)


def find_device_trouble(text: str, vocabulary: FailureVocabulary) -> str | None:
    """Return the fault of the device: memory exhausted or broken, or an unsuitable driver. None without one.

    An illegal access does not count, because a miscompiled kernel causes such an access.
    """
    return _read_first_sign(text, (*vocabulary.device_troubles, *_TROUBLES))


def _read_first_sign(text: str, signs: Iterable[Sign]) -> str | None:
    tail = text[-MAX_CHARS:]
    return next((meaning for sign in signs if (meaning := sign.read(tail)) is not None), None)
