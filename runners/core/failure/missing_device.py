"""Is a failure only hardware that isn't here, or is ill? Pure: failure text → reason in words, or None.

A message is the signal, never the mere name of a device: programs for a GPU compile on any machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from runners.core.toolchain.failures import DEVICES, FailureVocabulary, Sign, sign_of_missing_device

MAX_CHARS = 60_000
"""Of the end of an output: the rest is not searched."""

_MISSING = (
    sign_of_missing_device(rf"{DEVICES}[^\n]{{0,60}}(?:library|driver|runtime)[^\n]{{0,40}} not (?:available|found)"),
    sign_of_missing_device(rf"{DEVICES}_ERROR_NO_DEVICE|no (?:CUDA|ROCm)-capable device"),
    sign_of_missing_device(r"(?P<device>VK)_ERROR_(?:INCOMPATIBLE_DRIVER|INITIALIZATION_FAILED)"),
)


def find_missing_device(text: str, vocabulary: FailureVocabulary) -> str | None:
    """One sentence naming the device that the output says is not here; None when it says nothing of the kind."""
    return _read_first_sign(text, (*vocabulary.missing_devices, *_MISSING))


_TROUBLES = tuple(
    Sign(pattern=re.compile(sign, re.IGNORECASE), means=why)
    for sign, why in (
        (
            r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY"
            r"|CUDA: out of memory",
            "the device's memory was used up",
        ),
        (
            r"CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable|uncorrectable ECC error",
            "the device's memory had an error that could not be corrected",
        ),
        (
            r"VK_ERROR_DEVICE_LOST|CUDA_ERROR_DEVICE_UNAVAILABLE|all CUDA-capable devices are busy",
            "the device was lost",
        ),
        (
            r"CUDA_ERROR_SYSTEM_(?:DRIVER_MISMATCH|NOT_READY)|Driver/library version mismatch"
            r"|driver version is insufficient for CUDA runtime",
            "the driver does not fit",
        ),
    )
)


def find_device_trouble(text: str, vocabulary: FailureVocabulary) -> str | None:
    """Why the output shows a device in trouble rather than a compiler: memory used up or broken, driver unfit.

    An illegal access is none of these: a wrongly compiled kernel makes it.
    """
    return _read_first_sign(text, (*vocabulary.device_troubles, *_TROUBLES))


def _read_first_sign(text: str, signs: Iterable[Sign]) -> str | None:
    tail = text[-MAX_CHARS:]
    return next((meaning for sign in signs if (meaning := sign.read(tail)) is not None), None)
