"""Choose the flag that gives an early build the dialect of its input. Pure.

Later builds detect the dialect. Without the flag, an early build rejects every operation of the dialect, or crashes
on the first one. Such a failure is not evidence about the operation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from packaging.version import Version

from runners.core.packages.versions import order_version

FLAG = "--iree-input-type"

_NEEDED = {
    "stablehlo": (("20230524.529", "mhlo"), ("20230815.614", "stablehlo")),
    "chlo": (("20230815.614", "mhlo"), ("20231113.707", "stablehlo")),
    "mhlo": (("20230524.529", "mhlo"),),
    "tosa": (("20230524.529", "tosa"),),
    "onnx": (("20240226.813", "onnx"),),
}
"""Dialect → the first builds that need no value of the flag, and this value. Determined by running the builds."""
_STABLEHLO_FOUND = "20230815.614"
"""The first build that detects StableHLO. Then it also reads CHLO, but does not detect CHLO alone."""
_FIRST_READER = {"onnx": "20240129.785"}
"""Dialect → the first build that reads it. All builds that run here read the other dialects."""
_OPERATION = re.compile(r"(?:^|[=,(\s\"])(?P<dialect>stablehlo|chlo|mhlo|tosa|(?<=\")onnx)\.\w", re.M)
"""An operation. ONNX's operations are strings of one Torch operation, and a Python module has the same name."""


def list_input_flags(step: Sequence[str], files: Mapping[str, str], version: str) -> tuple[str, ...]:
    """Return the flag that a build needs for the input of a call and that the call lacks. Empty if no flag is needed.

    MHLO's reader also knows StableHLO. No value covers TOSA together with these.
    """
    if step[:1] != ("iree-compile",) or any(word.lstrip("-").startswith(FLAG.lstrip("-")) for word in step):
        return ()
    release = order_version(version)
    text = "\n".join(files[word] for word in step if word in files)
    dialects = {found["dialect"] for found in _OPERATION.finditer(text)}
    if "stablehlo" in dialects and release >= order_version(_STABLEHLO_FOUND):
        dialects.discard("chlo")
    values = {_find_value(dialect, release) for dialect in dialects}
    wanted = {value for value in values if value}
    if {"mhlo", "stablehlo"} <= wanted:
        wanted.remove("stablehlo")
    return (f"{FLAG}={wanted.pop()}",) if len(wanted) == 1 else ()


def find_unread_dialect(files: Mapping[str, str], version: str) -> str:
    """Return the dialect of an input that a build cannot read. Empty if it reads all dialects.

    The build then prints the same error for every operation of the dialect, even for those that the next build reads.
    """
    release = order_version(version)
    used = (found["dialect"] for text in files.values() for found in _OPERATION.finditer(text))
    return next((one for one in used if release < order_version(_FIRST_READER.get(one, version))), "")


def _find_value(dialect: str, release: Version) -> str | None:
    return next((value for until, value in _NEEDED[dialect] if release < order_version(until)), None)
