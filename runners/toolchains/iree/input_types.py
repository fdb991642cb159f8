"""The flag by which a build of early 2023 learns the dialect of its input. Pure.

Later builds find the dialect out themselves. Without the flag, an early build refuses every operation of the dialect,
or crashes on the first: that says nothing about the operation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from packaging.version import Version

from runners.core.packages.versions import order_version

FLAG = "--iree-input-type"

_NEEDED = {
    "stablehlo": (("20230524.529", "mhlo"), ("20230815.614", "stablehlo")),
    "chlo": (("20230815.614", "mhlo"),),
    "mhlo": (("20230524.529", "mhlo"),),
    "tosa": (("20230524.529", "tosa"),),
}
"""Dialect → the first builds that no longer need a value of the flag, and this value. Found by running the builds."""
_OPERATION = re.compile(rf"(?:^|[=,(\s\"])(?P<dialect>{'|'.join(_NEEDED)})\.\w", re.M)


def list_input_flags(step: Sequence[str], files: Mapping[str, str], version: str) -> tuple[str, ...]:
    """Return the flag that a build needs for the input of a call, and that the call lacks; empty without such a need.

    MHLO's reader knows StableHLO as well. No value covers TOSA beside these.
    """
    if step[:1] != ("iree-compile",) or any(word.lstrip("-").startswith(FLAG.lstrip("-")) for word in step):
        return ()
    release = order_version(version)
    text = "\n".join(files[word] for word in step if word in files)
    values = {_find_value(dialect, release) for dialect in {found["dialect"] for found in _OPERATION.finditer(text)}}
    wanted = {value for value in values if value is not None}
    if {"mhlo", "stablehlo"} <= wanted:
        wanted.remove("stablehlo")
    return (f"{FLAG}={wanted.pop()}",) if len(wanted) == 1 else ()


def _find_value(dialect: str, release: Version) -> str | None:
    return next((value for until, value in _NEEDED[dialect] if release < order_version(until)), None)
