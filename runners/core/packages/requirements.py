"""Check the requirements of a testcase against a closed list of packages, because strangers write testcases."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from importlib import resources
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from runners.core.errors import UserError


class Layer(NamedTuple):
    """A version of a large package that the environments of all releases share."""

    version: str
    published: date


class Refusal(NamedTuple):
    """A requirement that may not be installed, and the reason in words."""

    requirement: str
    why: str


def load_allowed_requirements() -> frozenset[str]:
    """Return the names of the list, in canonical spelling."""
    text = (resources.files("runners.core.packages") / "allowed_requirements.json").read_text(encoding="utf-8")
    return frozenset(json.loads(text)["names"])


@functools.cache
def load_layers() -> Mapping[str, tuple[Layer, ...]]:
    """Return the layers of each package, oldest first, by name of the package."""
    text = (resources.files("runners.core.packages") / "layers.json").read_text(encoding="utf-8")
    return {
        name: tuple(Layer(one["version"], date.fromisoformat(one["published"])) for one in layers)
        for name, layers in json.loads(text)["layers"].items()
    }


def pin_layers(requirements: Sequence[str], day: date | None) -> tuple[str, ...]:
    """Pin each large package without a version to its newest layer of a day, else to its oldest.

    Without a day, the newest layer is used. Free resolution would give each release another version of PyTorch. Then
    a change between two releases could be PyTorch's.
    """
    return tuple(_pin_layer(text, day) for text in requirements)


def _pin_layer(text: str, day: date | None) -> str:
    layers = load_layers().get(text, ())
    if not layers:
        return text
    known = [one for one in layers if day is None or one.published <= day]
    return f"{text}=={(known or layers[:1])[-1].version}"


def parse_allowance(words: Sequence[str]) -> dict[str, str]:
    """Parse the values of ``--allow``: ``einx``, or ``cv2=opencv-python`` if the names differ.

    Return a mapping of import name to distribution.

    Raises:
        UserError: a value is not the name of a package.
    """
    found = {}
    for word in words:
        module, equals, distribution = word.partition("=")
        name = distribution if equals else module
        if not _MODULE.fullmatch(module if equals else name.replace("-", "_")) or not _NAME.fullmatch(name):
            raise UserError(f"{word!r} allows no package: write a name such as einx, or cv2=opencv-python")
        found[module if equals else name.replace("-", "_")] = str(canonicalize_name(name))
    return found


_MODULE = re.compile(r"[A-Za-z_]\w{0,99}")
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]{0,98}[A-Za-z0-9])?")


def check_requirements(
    requirements: Sequence[str], also: frozenset[str] = frozenset()
) -> tuple[tuple[str, ...], tuple[Refusal, ...]]:
    """Split requirements into those that may be installed, in canonical spelling and order, and the refused ones.

    ``also`` are names that the operator allows in addition to the list.
    """
    allowed = load_allowed_requirements() | also
    checked = [_check_requirement(text, allowed) for text in requirements]
    kept = {one for one in checked if isinstance(one, str)}
    return tuple(sorted(kept)), tuple(one for one in checked if isinstance(one, Refusal))


def _check_requirement(text: str, allowed: frozenset[str]) -> str | Refusal:
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        return Refusal(text, "is not a requirement such as numpy or numpy>=2")
    name = canonicalize_name(parsed.name)
    if parsed.url:
        return Refusal(text, "names an address; only wheels of the package index are installed")
    if name not in allowed:
        return Refusal(text, f"is not on the list of packages that a testcase may install ({name})")
    return f"{name}{parsed.specifier}"
