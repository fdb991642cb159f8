"""Run a pass on the functions of a module, for builds on which the pass no longer takes a module. Pure.

A pass that works on any function-like operation has no implicit place in a pipeline: a build that made the pass so
refuses ``iree-opt --PASS`` ("unable to schedule pass …"), and runs ``builtin.module(func.func(PASS))``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from runners.core.failure.api_drift import names_pass
from runners.guest.iree.pipelines import parse_pipeline
from runners.toolchains.iree.failures import UNPLACED

_PIPELINE = "--pass-pipeline"
_ANYWHERE = frozenset({"canonicalize", "cse", "symbol-dce", "inline", "sccp", "loop-invariant-code-motion"})
"""Upstream passes that run on any operation, so that they give the same result beside another pass."""
_OPTION = re.compile(
    r"-{1,2}(?:mlir-[\w-]+|split-input-file|verify-\w+|allow-unregistered-dialect|o|iree-[\w-]+-test-[\w-]+"
    r"|iree-hal-(?:target|default|dump|executable|local)[\w-]*|debug[\w-]*|show-dialects|emit-bytecode)(?:=.*)?$"
)
"""Flags of ``iree-opt`` that are no passes."""
_FUNCTION = re.compile(r"^\s*(func\.func|util\.func)\b", re.M)


def place_passes(step: Sequence[str], files: Mapping[str, str], said: str) -> tuple[str, ...] | None:
    """Return the call with the refused passes on the functions of its input.

    None if the build refuses no pass of the call, or if the input has no functions, or functions of two kinds.
    """
    if not step or step[0] != "iree-opt":
        return None
    refused = {found["name"].removesuffix("Pass") for found in UNPLACED.finditer(said)}
    kinds = {kind for word in step for kind in _FUNCTION.findall(files.get(word, ""))}
    if not refused or len(kinds) != 1:
        return None
    (kind,) = kinds
    placed = [_place_in_pipeline(word, refused, kind) for word in step]
    if tuple(placed) != tuple(step):
        return tuple(placed)
    return _write_pipeline(step, refused, kind)


def _place_in_pipeline(word: str, refused: set[str], kind: str) -> str:
    name, equals, text = word.partition("=")
    if not equals or f"-{name.lstrip('-')}" != _PIPELINE[1:]:
        return word
    passes = list(dict.fromkeys(parse_pipeline(text)))
    if any(one.pipeline != f"builtin.module({one.text})" for one in passes):
        return word  # some passes have a place already
    for one in passes:
        if any(names_pass(one.name, name) for name in refused):
            placed = f"{kind}({one.text})".replace("\\", r"\\")
            text = re.sub(rf"(?<![\w.-]){re.escape(one.text)}(?![\w-])", placed, text)
    return f"{name}={text}"


def _write_pipeline(step: Sequence[str], refused: set[str], kind: str) -> tuple[str, ...] | None:
    """Write the passes that a call names by flags as a pipeline. None if a flag may be neither."""
    passes, rest = [], [step[0]]
    is_refused = False
    for word in step[1:]:
        name, equals, options = word.lstrip("-").partition("=")
        if not word.startswith("-") or word == "-" or _OPTION.match(word):
            rest.append(word)
        elif name in _ANYWHERE:
            passes.append(name)
        elif any(names_pass(name, one) for one in refused):
            is_refused = True
            text = f"{name}{{{options}}}" if equals else name
            passes.append(f"{kind}({text})")
        else:
            return None
    return (*rest, f"{_PIPELINE}=builtin.module({','.join(passes)})") if is_refused else None
