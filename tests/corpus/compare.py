"""What was extracted against what is right, aspect by aspect.

Texts are compared without blank lines and trailing blanks: between joined blocks any number is right. Lines that an
``add-import`` repair must add may stand in any order before the rest. Steps are compared without regard to the order
of flags; names that the issue leaves open (an output nobody reads, a file nobody named) are compared by role.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bot.extract.types import Extraction, Repro
from runners.core.protocol import Testcase

Expected = Mapping[str, Any]
Step = tuple[str, ...]

CPU = frozenset(
    {"cpu", "llvm", "llvm-cpu", "local", "local-task", "local-sync", "c", "x86", "x86_64", "x86-64", "arm_cpu"}
)
FAMILIES = {
    **dict.fromkeys(CPU, "cpu"),
    "vulkan-spirv": "vulkan",
    "metal-spirv": "metal",
    "rocm": "hip",
    "nvptx": "cuda",
}
BOOKKEEPING = frozenset({"bare-tool", "name-input", "name-output", "redirect", "rewrite-path", "strip-prompt"})
"""Repairs of command lines that say how words became an argv: whether each is recorded is a matter of taste."""

HARMLESS = frozenset({"numpy"})
"""Distributions that the toolchains bring themselves: listing them is right, and so is leaving them out."""


def differences(got: Extraction, expected: Expected) -> Iterator[tuple[str, str]]:
    """``(aspect, what differs)`` for every aspect that the case fixes and the extraction misses."""
    for aspect, check in ASPECTS.items():
        if (complaint := check(got, expected)) is not None:
            yield aspect, complaint


# ------------------------------------------------------------------------------------------------ the testcase


def _kind(got: Extraction, expected: Expected) -> str | None:
    have = str(got.testcase.kind.value) if isinstance(got, Repro) else None
    return _unlike(have, expected["kind"])


def _toolchain(got: Extraction, expected: Expected) -> str | None:
    if isinstance(got, Repro):
        return _unlike(got.testcase.toolchain, expected["toolchain"])
    return None if got.toolchain is None else _unlike(got.toolchain, expected["toolchain"])


def _files(got: Extraction, expected: Expected) -> str | None:
    if "files" not in expected:
        return None
    if not isinstance(got, Repro):
        return "no testcase"
    have, want = dict(got.testcase.files), dict(expected["files"])
    if expected.get("any_name") and len(have) == len(want) == 1:
        have = dict(zip(want, have.values(), strict=True))
    if have.keys() != want.keys():
        return f"files {sorted(have)}, not {sorted(want)}"
    added = [r["detail"] for r in expected.get("repairs", ()) if r["kind"] == "add-import"]
    for name, text in want.items():
        if complaint := _text(_plain(name, have[name]), _plain(name, text), added if name.endswith(".py") else []):
            return f"{name}: {complaint}"
    return None


def _plain(name: str, text: str) -> str:
    """MLIR without its comments: a command read from one may stay in the file or go."""
    return text if name.endswith(".py") else re.sub(r"(?m)^\s*//.*$", "", text)


def _text(have: str, want: str, added: Sequence[str]) -> str | None:
    lines, right = _lines(have), _lines(want)
    for line in added:
        if line not in lines:
            return f"lacks the added line {line!r}"
        lines.remove(line)
    for n, (a, b) in enumerate(zip(lines, right, strict=False), 1):
        if a != b:
            return f"line {n} is {a!r}, not {b!r}"
    if len(lines) != len(right):
        longer, word = (lines, "too much") if len(lines) > len(right) else (right, "missing")
        return f"{word} from {longer[min(len(lines), len(right))]!r} on"
    return None


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _steps(got: Extraction, expected: Expected) -> str | None:
    if not isinstance(got, Repro):
        return "no testcase" if expected.get("steps") else None
    if (tools := expected.get("step_tools")) is not None:
        return _unlike([step[0] for step in got.testcase.steps], tools)
    if "steps" not in expected:
        return None
    want = [tuple(step) for step in expected["steps"]]
    free = tuple(expected["files"]) if expected.get("any_name") else ()
    have, right = _roles(got.testcase.steps, tuple(got.testcase.files) if free else ()), _roles(want, free)
    if len(have) != len(right):
        return f"{len(have)} steps {have}, not {right}"
    for mine, yours in zip(have, right, strict=True):
        if not any(word.startswith("-o=") for word in yours):
            mine = tuple(word for word in mine if not word.startswith("-o="))
        if mine != yours:
            return f"{' '.join(mine)!r}, not {' '.join(yours)!r}"
    return None


def _roles(steps: Iterable[Sequence[str]], inputs: Sequence[str]) -> list[Step]:
    """Steps with ``-o X`` as one word, free names as roles, flags sorted."""
    names = {name: f"<file {n}>" for n, name in enumerate(inputs)}
    result = []
    for step in steps:
        words = re.sub(r"(?<=\s)-o[ =](\S+)", r"-o=\1", " \0".join(step)).replace("-o \0", "-o=").split(" \0")
        for word in words:
            if word.startswith("-o=") and not word.endswith("/dev/null"):
                names.setdefault(word[3:], f"<made {len(names)}>")
        renamed = [_rename(word, names) for word in words]
        result.append((renamed[0], *sorted(renamed[1:])))
    return result


def _rename(word: str, names: Mapping[str, str]) -> str:
    head, eq, tail = word.rpartition("=")
    return head + eq + names.get(tail, tail)


def _contained(got: Extraction, expected: Expected) -> str | None:
    if not isinstance(got, Repro):
        return "no testcase" if expected.get("must_contain") else None
    everything = _everything(got.testcase)
    for text in expected.get("must_contain", ()):
        if text not in everything:
            return f"lacks {text!r}"
    for text in expected.get("must_not_contain", ()):
        if text in everything:
            return f"contains {text!r}"
    return None


def _everything(testcase: Testcase) -> str:
    return "\n".join([*testcase.files.values(), *(" ".join(step) for step in testcase.steps)])


def _controls(got: Extraction, expected: Expected) -> str | None:
    if (want := expected.get("controls")) is None or not isinstance(got, Repro):
        return None
    if len(got.controls) != want["count"]:
        return f"{len(got.controls)} controls, not {want['count']}"
    everything = "\n".join(map(_everything, got.controls))
    return next((f"control lacks {text!r}" for text in want["must_contain"] if text not in everything), None)


def _repairs(got: Extraction, expected: Expected) -> str | None:
    if "repairs" not in expected or not isinstance(got, Repro):
        return None
    ignored = set(expected.get("repairs_optional", ()))
    if expected["kind"] == "command-line":
        ignored |= BOOKKEEPING
    have = {repair.kind for repair in got.repairs} - ignored
    return _unlike(sorted(have), sorted({repair["kind"] for repair in expected["repairs"]} - ignored))


def _missing(got: Extraction, expected: Expected) -> str | None:
    if "missing" not in expected:
        return None
    have = sorted((item.kind, item.name) for item in got.missing)
    if len(have) == len(expected["missing"]) and all(
        any(kind in _several(want["kind"]) and _same_thing(name, want["name"]) for kind, name in have)
        for want in expected["missing"]
    ):
        return None
    return f"{have}, not {[(want['kind'], want['name']) for want in expected['missing']]}"


def _same_thing(have: str, want: str | None) -> bool:
    return want is None or want in have or have == want.rpartition("/")[2]


def _requirements(got: Extraction, expected: Expected) -> str | None:
    if "requirements" not in expected or not isinstance(got, Repro):
        return None
    have = {_distribution(text) for text in got.testcase.requirements} - HARMLESS
    return _unlike(sorted(have), sorted(set(expected["requirements"]) - HARMLESS))


def _distribution(text: str) -> str:
    return re.split(r"[\s<>=!~\[;]", text, maxsplit=1)[0].lower()


def _device(got: Extraction, expected: Expected) -> str | None:
    if "device" not in expected or not isinstance(got, Repro):
        return None
    want = {_family(device) for device in _several(expected["device"])}
    return None if _family(got.device) in want else f"{got.device!r}, not {expected['device']!r}"


def _family(device: str) -> str:
    return FAMILIES.get(device.lower().partition(" ")[0], device.lower().partition(" ")[0])


# --------------------------------------------------------------------------------------------------- the claim


def _claim_kind(got: Extraction, expected: Expected) -> str | None:
    have, want = str(got.claim.kind.value), expected["claim"]["kind"]
    return None if have in _several(want) else f"{have!r}, not {want!r}"


def _signature(got: Extraction, expected: Expected) -> str | None:
    claim, want = got.claim, expected["claim"]
    signature = claim.signature
    kinds = _several(want.get("type"))
    if kinds != [None] and (signature.type.rpartition(".")[2] if signature else None) not in kinds:
        return f"type {signature.type if signature else None!r}, not {want['type']!r}"
    said = _flat((signature.message if signature else "") + "\n" + claim.actual)
    if (text := want.get("message_contains")) and _flat(text) not in said:
        return f"message {said[:120]!r} lacks {text!r}"
    frames = signature.frames if signature else ()
    if (text := want.get("frames_contain")) and not any(text in frame for frame in frames):
        return f"frames {frames[:3]} lack {text!r}"
    for field in ("actual", "expected"):
        if (text := want.get(f"{field}_contains")) and _flat(text) not in _flat(getattr(claim, field)):
            return f"{field} {getattr(claim, field)[:80]!r} lacks {text!r}"
    return None


def _flat(text: str) -> str:
    return " ".join(text.split())


def _versions(got: Extraction, expected: Expected) -> str | None:
    want = expected["claim"]
    if "versions" not in want:
        return None
    have = [version.lower().removeprefix("v") for version in got.claim.versions]
    needed = [_several(version) for version in want["versions"]]  # a list in the list: either is right
    known = [name for names in needed for name in names] + want.get("versions_optional", [])
    lacking = [names for names in needed if not any(_same_version(h, v) for h in have for v in names)]
    surplus = [h for h in have if not any(_same_version(h, v) for v in known)]
    return f"{have}, not {want['versions']}" if lacking or surplus else None


def _same_version(have: str, want: str) -> bool:
    """Equal, or both a sha and one the beginning of the other."""
    if have == want.lower():
        return True
    short, long = sorted((have, want.lower()), key=len)
    return len(short) >= 7 and re.fullmatch(r"[0-9a-f]+(~\d+)?", long) is not None and long.startswith(short)


def _devices(got: Extraction, expected: Expected) -> str | None:
    want = expected["claim"]
    if "devices" not in want:
        return None
    have = {_family(device) for device in got.claim.devices}
    right = {_family(device) for device in want["devices"]}
    spare = {_family(device) for device in want.get("devices_optional", ())}
    if not right or expected["toolchain"] == "tvm":
        spare.add("cpu")  # what a reader assumes when nothing else is named, and what TVM scripts say in passing
        right.discard("cpu")
    if right <= have and have <= right | spare | {word for word in have if word.startswith(("gfx", "sm_"))}:
        return None
    return f"{sorted(have)}, not {sorted(right)}"


# ------------------------------------------------------------------------------------------------------- parts


def _unlike(have: object, want: object) -> str | None:
    return None if have == want else f"{have!r}, not {want!r}"


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


ASPECTS: dict[str, Callable[[Extraction, Expected], str | None]] = {
    "kind": _kind,
    "toolchain": _toolchain,
    "files": _files,
    "contains": _contained,
    "steps": _steps,
    "controls": _controls,
    "repairs": _repairs,
    "missing": _missing,
    "requirements": _requirements,
    "device": _device,
    "claim": _claim_kind,
    "signature": _signature,
    "versions": _versions,
    "devices": _devices,
}
