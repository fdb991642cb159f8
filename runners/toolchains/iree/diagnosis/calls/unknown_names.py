"""Find a name on the command line that no release of IREE knows: a flag, a device, a backend. Pure.

The tool's own message states that the name is unknown. A name of another time is in the drift table, and a device
that only this machine lacks is known. Neither is a fault of the testcase. If the report is about this very message, a
flag of another time counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from runners.core.findings.calls import OtherTarget, UnknownDevice, UnknownFlag
from runners.core.protocol import Signature, Testcase
from runners.core.toolchain.wrong_call import WrongCall
from runners.toolchains.iree.diagnosis.calls.signature import RUNNERS
from runners.toolchains.iree.drift import DRIFT
from runners.toolchains.iree.rewriting import BACKENDS, retarget_testcase

_UNKNOWN_FLAG = re.compile(
    r"unknown command line (?:argument|flag) '(?P<name>-{0,2}[\w-]{2,200})|flag '(?P<other>-{0,2}[\w-]{2,200})' not ",
    re.IGNORECASE,
)
_SUGGESTION = re.compile(r"Did you mean '(?P<flag>--?[\w-]{2,200}(?:=[^'\n]{0,200})?)'")
_UNKNOWN_TARGET = re.compile(
    r"no driver '(?P<driver>[\w-]{1,80})' registered"
    r"|target backend '(?P<backend>[\w-]{1,80})' not registered"
    r"|unregistered device alias[^\n]{0,40}[\"'](?P<alias>[\w-]{1,80})[\"']"
)
_OTHER_DEVICES = frozenset({"amdgpu", "rocm", "webgpu", "level_zero", "opencl", "null", "local", "vmvx-inline"})
_KNOWN = {
    "--device": frozenset({device for _, device in BACKENDS.values()} | _OTHER_DEVICES),
    "--iree-hal-target-backends": frozenset({backend for backend, _ in BACKENDS.values()} | _OTHER_DEVICES),
    "--iree-hal-target-device": frozenset({*(n for pair in BACKENDS.values() for n in pair), *_OTHER_DEVICES}),
}
"""Flags that name a device or a backend, and the names that any release or machine knows."""
_MOVED = frozenset(
    name.lstrip("-").partition("=")[0]
    for entry in DRIFT
    if entry.kind == "flag"
    for name in (entry.old, entry.new or "")
    if "=" not in name
)
_SUCCESSORS = {
    entry.old.lstrip("-"): entry.new or ""
    for entry in DRIFT
    if entry.kind == "flag" and "=" not in entry.old and "=" not in (entry.new or "")
}
"""Flags of another time without their dashes → the flags that replaced them. Empty for those without a successor."""
_MOVED_WORDS = frozenset(entry.old for entry in DRIFT if entry.kind == "flag" and "=" in entry.old)
"""Flags, with a value, of which only this value moved."""


def find_unknown_name(
    testcase: Testcase, signature: Signature, excerpt: str, *, is_reported: bool = False
) -> WrongCall | None:
    """Return the name that a tool rejects and no release knows. ``excerpt`` is part of the run's output.

    ``is_reported``: the report is about this very message.
    """
    found = (*_find_flags(testcase, signature, excerpt, is_reported=is_reported), *_find_targets(testcase, signature))
    return found[0] if found else None


def _find_flags(testcase: Testcase, signature: Signature, excerpt: str, *, is_reported: bool) -> Iterator[WrongCall]:
    told = _UNKNOWN_FLAG.search(signature.message)
    if told is None:
        return
    name = (told["name"] or told["other"]).lstrip("-")
    places = [
        (at, place)
        for at, step in enumerate(testcase.steps)
        for place, word in enumerate(step)
        if place and word.partition("=")[0].lstrip("-") == name and word.startswith("-")
    ]
    if len(places) != 1 or (name in _MOVED and not (is_reported and name in _SUCCESSORS)):
        return
    at, place = places[0]
    call = UnknownFlag(name=testcase.steps[at][place].partition("=")[0], program=testcase.steps[at][0])
    if name in _MOVED:
        given = testcase.steps[at][place].partition("=")
        words = [_SUCCESSORS[name] and _SUCCESSORS[name] + "".join(given[1:])]
        call = msgspec.structs.replace(call, successor=_SUCCESSORS[name])
    else:
        suggested = _SUGGESTION.search(excerpt)
        words = ["", *([suggested["flag"]] if suggested else [])]
    mended = tuple(_replace_word(testcase, at, place, word) for word in words)
    yield WrongCall(call=call, mended=mended)


def _replace_word(testcase: Testcase, at: int, place: int, word: str) -> Testcase:
    """Return the testcase with another word in one place of a step. An empty word removes the old one."""
    step = testcase.steps[at]
    changed = (*step[:place], *((word,) if word else ()), *step[place + 1 :])
    return msgspec.structs.replace(testcase, steps=(*testcase.steps[:at], changed, *testcase.steps[at + 1 :]))


def _find_targets(testcase: Testcase, signature: Signature) -> Iterator[WrongCall]:
    told = _UNKNOWN_TARGET.search(signature.message)
    mended = retarget_testcase(testcase, "llvm-cpu")
    if told is None or mended is None:
        return
    name = next(filter(None, told.groups()))
    for step in testcase.steps:
        for word in step:
            flag, _, value = word.partition("=")
            known = _KNOWN.get(flag)
            if known is not None and value == name and name not in known and word not in _MOVED_WORDS:
                yield WrongCall(call=UnknownDevice(name=name, flag=flag, program=step[0]), mended=(mended,))
                return


_OF_THE_CPU = frozenset({"llvm-cpu", "vmvx", "vmvx-inline"})
_GPUS = frozenset({backend for backend, _ in BACKENDS.values()} - _OF_THE_CPU)


def find_other_target(testcase: Testcase) -> WrongCall | None:
    """Return the difference if a program is compiled only for accelerators, and is run on the processor."""
    backends = [
        value
        for step in testcase.steps
        if step[0] == "iree-compile"
        for word in step
        if word.startswith("--iree-hal-target-backends=")
        for value in word.partition("=")[2].split(",")
    ]
    devices = [
        word.partition("=")[2]
        for step in testcase.steps
        if step[0] in RUNNERS
        for word in step
        if word.startswith("--device=")
    ]
    mended = retarget_testcase(testcase, "llvm-cpu")
    apart = (
        bool(backends and devices) and _GPUS.issuperset(backends) and all(one.startswith("local-") for one in devices)
    )
    if mended is None or not apart:
        return None
    return WrongCall(call=OtherTarget(name=backends[0], device=devices[0]), mended=(mended,))
