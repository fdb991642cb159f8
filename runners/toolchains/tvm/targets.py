"""Targets of TVM written like a command line, and the dictionaries that mean the same. Pure."""

from __future__ import annotations

import re

_TARGET = re.compile(r"(?P<kind>[a-z][a-z0-9_]{1,20})(?P<options>(?:\s+--?[a-z][\w-]*(?:[= ][^\s-][^\s]*)?)+)\s*")
_OPTION = re.compile(r"--?(?P<name>[a-z][\w-]*)(?:[= ](?P<value>[^\s-][^\s]*))?")
_KINDS = {"c", "cuda", "hexagon", "llvm", "metal", "nvptx", "opencl", "rocm", "vulkan", "webgpu"}
_LISTS = {"keys", "libs", "mattr", "tag_list"}

Value = str | int | bool | list[str]


def is_target(text: str) -> bool:
    """Whether a text is such a command line: a kind, then options."""
    found = _TARGET.fullmatch(text)
    return found is not None and found["kind"] in _KINDS


def target_dictionary(text: str) -> dict[str, Value]:
    """``llvm -mcpu=x -num-cores 4`` as the dictionary that means the same."""
    found = _TARGET.fullmatch(text)
    assert found is not None
    target: dict[str, Value] = {"kind": found["kind"]}
    for option in _OPTION.finditer(found["options"]):
        target[option["name"]] = _option_value(option["name"], option["value"])
    return target


def _option_value(name: str, value: str | None) -> Value:
    if value is None:
        return True
    if name in _LISTS:
        return value.split(",")
    return int(value) if value.isdecimal() else value
