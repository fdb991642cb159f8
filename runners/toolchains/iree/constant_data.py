"""Find constants of MLIR whose data is missing from the text, and supply generated data for them.

Reports shorten weights: they cut off a file's resources, or elide the digits. A port supplies data if the values
cannot decide whether the failure occurs. `bot.extract` asks for the data of a report about values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import TypeAlias

import msgspec

from runners.core.mlir.types import ScalarType, ShapedType, match_static
from runners.core.protocol import GENERATED, Testcase
from runners.guest.iree.generate_data import FORMATS

SCRIPT = "generate_data.py"
MAX_DATA_BYTES = 32 * 1024**2
"""Maximum size of the data that is generated for one file. The text has two characters per byte."""

_KEY = r"[A-Za-z_][\w$.-]{0,200}"
_CONSTANT = re.compile(
    rf"\bdense(?:_resource<(?P<key>{_KEY}|\"[^\"\n]{{1,200}}\")>"
    r"|<(?P<elided>__elided__|\"0x[0-9A-Fa-f]*(?:\.\.\.|…)\"?)>)"
    r"(?P<colon>[ ]?:[ ]?)(?=\w)"
)
_BLOB = re.compile(rf"^[ \t]*(?P<key>{_KEY}|\"[^\"\n]{{1,200}}\")[ \t]*:[ \t]*\"(?P<data>[^\"\n]*)\"?", re.M)
_HEX = re.compile(r"0x(?:[0-9A-Fa-f]{2}){4,}")
_METADATA = "{-#"
_Kind: TypeAlias = ShapedType | ScalarType


@dataclass(slots=True)
class _Supply:
    """The constants of one file to generate, and the changes of its text."""

    rows: list[str] = field(default_factory=list)
    entries: dict[str, str] = field(default_factory=dict)
    """Element type and count → the name of the generated resource."""
    changes: list[str] = field(default_factory=list)
    size: int = 0


def list_missing_data(text: str) -> tuple[str, ...]:
    """Return the constants of a file, as written, whose data is missing from the text."""
    return tuple(dict.fromkeys(_write_constant(found) for found, _ in _find_missing(text)))


def _write_constant(found: re.Match[str]) -> str:
    return found[0].partition(found["colon"])[0][:100]


def _find_missing(text: str, given: Collection[str] | None = None) -> Iterator[tuple[re.Match[str], _Kind]]:
    """Yield the constants without data, and their types. ``given``: the resources with data, else the text's."""
    known = _list_given(text) if given is None else given
    for found in _CONSTANT.finditer(text):
        kind = match_static(text, found.end())
        if kind is not None and (found["elided"] or found["key"] not in known):
            yield found, kind


def _list_given(text: str) -> frozenset[str]:
    """Return the resources whose data is complete in the text."""
    at = text.find(_METADATA)
    blobs = _BLOB.finditer(text, at) if at >= 0 else ()
    return frozenset(blob["key"] for blob in blobs if _HEX.fullmatch(blob["data"]))


def supply_data(testcase: Testcase) -> tuple[Testcase, tuple[str, ...]] | None:
    """Return the testcase with a first step that generates the missing data, and the changes in words.

    None if no data is missing, if the data is too large, or if a type cannot be generated.
    """
    files = dict(testcase.files)
    steps: list[tuple[str, ...]] = []
    changes: list[str] = []
    for name, text in testcase.files.items():
        if not name.endswith(".mlir") or not any(True for _ in _find_missing(text)):
            continue
        supply = _plan_supply(text)
        if supply is None:
            return None
        files[name] = "\n".join(supply.rows)
        steps.append(("python", SCRIPT, name, *(f"{key}={shape}" for shape, key in supply.entries.items())))
        changes += (f"{old}{GENERATED}" for old in supply.changes)
    if not steps or SCRIPT in files:
        return None
    files[SCRIPT] = (resources.files("runners.guest.iree") / SCRIPT).read_text(encoding="utf-8")
    return msgspec.structs.replace(testcase, files=files, steps=(*steps, *testcase.steps)), tuple(
        dict.fromkeys(changes)
    )


def _plan_supply(text: str) -> _Supply | None:
    supply, given = _Supply(), _list_given(text)
    for row in _drop_broken_blobs(text).split("\n"):
        done = row
        for found, kind in _find_missing(row, given):
            key = _name_data(supply, kind)
            if key is None:
                return None
            new = f"dense_resource<{key}>{found['colon']}{kind}"
            done = done.replace(f"{found[0]}{kind}", new)
            supply.changes.append(_write_constant(found))
        supply.rows.append(done)
    return supply


def _name_data(supply: _Supply, of: _Kind) -> str | None:
    """Return the name of the generated data of a type. None if the type or the size is not supported."""
    kind = re.sub(r"^[su]i", "i", of.element)
    if kind not in (*FORMATS, "bf16"):
        return None
    count = math.prod(of.shape)
    wanted = f"{kind}*{count}"
    if wanted not in supply.entries:
        supply.size += count * int(re.sub(r"\D", "", kind)) // 8
        supply.entries[wanted] = f"generated_{len(supply.entries) + 1}"
    return supply.entries[wanted] if 0 < supply.size <= MAX_DATA_BYTES else None


def _drop_broken_blobs(text: str) -> str:
    """Remove the resources with truncated digits. No parser reads them."""
    at = text.find(_METADATA)
    if at < 0:
        return text
    rows = text[at:].split("\n")
    kept = [row for row in rows if (blob := _BLOB.match(row)) is None or _is_whole(blob)]
    tail = re.sub(r",(\s*\})", r"\1", "\n".join(kept))
    return text[:at] + tail


def _is_whole(blob: re.Match[str]) -> bool:
    """True unless the entry is data with incomplete digits. Other entries of the section are not data."""
    data = blob["data"]
    return not (data.startswith("0x") or data.strip(".… ") == "") or bool(_HEX.fullmatch(data))
