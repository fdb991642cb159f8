"""Define the form of a rule that writes one notation of MLIR in its later form. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from runners.core.mlir import operations
from runners.core.mlir.types import ShapedType, parse_type

OLDEST = "2.9.0"
"""The first numbered release. Every numbered release rejects notations of earlier years."""
EARLIEST = "20230209.425"
"""The earliest build that runs here. Every build rejects notations of 2021 and 2022."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """One notation and its successor. ``write`` returns None for an occurrence that it cannot write exactly."""

    old: str
    """The notation in words for the list of changes."""
    new: str
    pattern: re.Pattern[str]
    write: Callable[[re.Match[str]], str | None]
    gone_in: str = OLDEST
    """First release that rejects the old notation and reads the new one, found by parsing with every release."""


def date_rules(rules: Sequence[Notation], gone_in: str) -> tuple[Notation, ...]:
    """Return the rules. Those without their own release get ``gone_in``."""
    return tuple(replace(rule, gone_in=gone_in) if rule.gone_in == OLDEST else rule for rule in rules)


VALUE = rf"{operations.VALUE}(?:#\d+)?"
NESTED = r"<(?:[^<>]|<(?:[^<>]|<[^<>]{0,400}>){0,60}>){0,200}>"
TYPE = rf"!?[a-z][\w.]*(?:{NESTED})?"


def read_shape(text: str) -> ShapedType | None:
    """Return a shaped type without encoding or layout. None for any other type."""
    match parse_type(text):
        case ShapedType(name="tensor" | "memref" | "vector", encoding="") as kind:
            return kind
        case _:
            return None


_OPERATION = re.compile(r"(?<![\w.#!@%<])\"?([a-z_]\w*)\.[a-z_][\w-]*")


def find_dialect(found: re.Match[str]) -> str:
    """Return the dialect of the operation of an attribute: the last operation before it."""
    before = found.string[max(0, found.start() - 2_000) : found.start()]
    operations = _OPERATION.findall(before)
    return operations[-1] if operations else ""


def make_rename(old: str, new: str, pattern: str, template: str, gone_in: str = OLDEST) -> Notation:
    """Return the notation whose successor is ``template``, in the form of ``re.Match.expand``."""
    return Notation(
        old=old,
        new=new,
        pattern=re.compile(pattern, re.M),
        write=lambda found: found.expand(template),
        gone_in=gone_in,
    )
