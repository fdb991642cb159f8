"""The ways in which reports write IREE's versions."""

from __future__ import annotations

import re

from runners.core.toolchain.reports import VersionWords


def _is_plausible(version: str) -> bool:
    """True for the number of a release or the date of a nightly."""
    major, _, rest = version.partition(".")
    minor = re.match(r"\d+", rest)
    number = int(minor[0]) if minor else 0
    return (major in ("2", "3") and number < 100) or len(major) == 8 or (len(rest) >= 8 and major.startswith("20"))


VERSIONS = VersionWords(
    prefixes=("iree-", "candidate-", "stable-"),
    leading=("candidate-", "iree-", "iree", "iree-base-compiler"),
    named_by_patterns=("iree", "compiler", "runtime", "wheel", "nightly", "candidate", "release", "snapshot"),
    wheel_patterns=("iree[-_](?:base[-_])?(?:compiler|runtime)",),
    wheel_file_patterns=("iree_(?:base_)?(?:compiler|runtime)",),
    line_patterns=("IREE.{0,40}version", "iree-(?:base-)?compiler", "LLVM version .{0,20}IREE"),
    short_pattern=r"3\.\d",  # one digit: 3.11 is as often Python's version
    is_plausible=_is_plausible,
    # `VERSION` in the release's iree/compiler/version.py.
    promoted={
        "2.9.0rc20241108": "2.9.0",
        "3.0.0rc20241118": "3.0.0",
        "3.1.0rc20250107": "3.1.0",
        "3.2.0rc20250206": "3.2.0",
        "3.3.0rc20250320": "3.3.0",
        "3.4.0rc20250430": "3.4.0",
        "3.5.0rc20250609": "3.5.0",
        "3.6.0rc20250718": "3.6.0",
        "3.7.0rc20250904": "3.7.0",
        "3.8.0rc20251010": "3.8.0",
        "3.9.0rc20251125": "3.9.0",
        "3.10.0rc20260107": "3.10.0",
        "3.11.0rc20260316": "3.11.0",
        "3.12.0rc20260917": "3.12.0",
        "3.13.0rc20261016": "3.13.0",
    },
)
