"""Expressions of GitHub Actions, as far as our workflows use them: paths, comparisons, logic, a few functions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(&&|\|\||==|!=|[!(),]|'(?:[^']|'')*'|[\w*-]+(?:\.[\w*-]+)*|\.[\w-]+)")

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "always": lambda: True,
    "fromJSON": json.loads,
    # GitHub compares without regard to case, and takes null for an empty text.
    "contains": lambda where, what: str(what).lower() in str(where or "").lower(),
    "startsWith": lambda text, start: str(text or "").lower().startswith(str(start).lower()),
}


def evaluate(expression: str, context: Mapping[str, Any]) -> Any:
    """The value of an expression, without its ``${{ }}``."""
    tokens = _TOKEN.findall(expression)
    assert "".join(tokens) == re.sub(r"\s+(?=(?:[^']*'[^']*')*[^']*$)", "", expression), f"cannot read {expression!r}"
    value, rest = _or(tokens, context)
    assert not rest, f"{expression!r} goes on with {rest}"
    return value


def _or(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    value, rest = _and(tokens, context)
    while rest[:1] == ["||"]:
        other, rest = _and(rest[1:], context)
        value = value or other
    return value, rest


def _and(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    value, rest = _compared(tokens, context)
    while rest[:1] == ["&&"]:
        other, rest = _compared(rest[1:], context)
        value = value and other
    return value, rest


def _compared(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    value, rest = _one(tokens, context)
    if rest[:1] in (["=="], ["!="]):
        other, after = _one(rest[1:], context)
        return (value == other) is (rest[0] == "=="), after
    return value, rest


def _one(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    first, *rest = tokens
    if first == "!":
        value, rest = _one(rest, context)
        return not value, rest
    if first == "(":
        value, rest = _or(rest, context)
        return value, rest[1:]
    if first.startswith("'"):
        return first[1:-1].replace("''", "'"), rest
    if rest[:1] == ["("]:
        return _call(first, rest[1:], context)
    return look(first.split("."), context), rest


def _call(name: str, tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    given = []
    while tokens[0] != ")":
        value, tokens = _or(tokens, context)
        given.append(value)
        tokens = tokens[1:] if tokens[0] == "," else tokens
    value, rest = FUNCTIONS[name](*given), tokens[1:]
    while rest and rest[0].startswith("."):
        value, rest = look([rest[0][1:]], value), rest[1:]
    return value, rest


def look(path: list[str], place: Any) -> Any:
    """What a path leads to; like GitHub's null, an empty text where it leads nowhere."""
    for part in path:
        place = place.get(part, "") if isinstance(place, Mapping) else ""
    return "" if place is None else place
