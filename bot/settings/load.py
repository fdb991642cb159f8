"""Read the settings from the file and the inputs. Every fault is named with its key and the nearest valid key.

The file comes from the default branch, so its author may change the repository anyway. Still, only small, plain YAML
is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
import yaml

from bot.settings.model import INPUTS, PROFILES, Settings, SettingsSection, WithoutCode, find_section, list_keys
from bot.verdict.verdict import VerdictKind
from runners.core.errors import UserError

PATH = ".github/reprobot.yml"
MAX_BYTES = 32 * 1024
MAX_NODES = 1_000


def load_settings(file: bytes | None, inputs: Mapping[str, str] | None = None) -> Settings:
    """Return the profile's defaults, overridden by the file, overridden by the inputs that are not empty.

    Raises:
        UserError: a key or a value is not valid. The message names the key and the nearest valid key.
    """
    own = _parse_file(file) if file is not None else {}
    given = _read_inputs(inputs or {})
    profile = given.get("profile", own.get("profile"))
    if profile is not None and profile not in PROFILES:
        raise UserError(f"{PATH}: there is no profile {str(profile)[:40]!r}: the profiles are {', '.join(PROFILES)}")
    merged = _merge_settings(_merge_settings(dict(PROFILES[profile]) if profile else {}, own), given)
    if fault := next(_find_unknown_keys(merged, Settings, ""), None):
        raise UserError(f"{PATH}: {fault}")
    try:
        return msgspec.convert(merged, Settings, strict=True)
    except msgspec.ValidationError as error:
        raise UserError(f"{PATH}: {_explain_error(str(error))}") from None


def _read_inputs(inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return the inputs that are not empty, in the structure of the file."""
    settings: dict[str, Any] = {}
    for name, text in inputs.items():
        if name not in INPUTS:
            raise UserError(f"there is no input {name!r}: the inputs are {', '.join(INPUTS)}")
        if not text.strip():
            continue
        *sections, last = INPUTS[name].key.split(".")
        section = settings
        for part in sections:
            section = section.setdefault(part, {})
        section[last] = _convert_input(name, text.strip())
    return settings


def _convert_input(name: str, text: str) -> Any:
    """Convert the text of an input to the type of its setting."""
    match name:
        case "bisect" | "commits" | "labels":
            if text.lower() not in ("true", "false"):
                raise UserError(f"the input {name} is {text[:40]!r}: write true or false")
            return text.lower() == "true"
        case "timeout":
            if not re.fullmatch(r"\d{1,4}", text, re.ASCII):
                raise UserError(f"the input timeout is {text[:40]!r}: write seconds, such as 120")
            return int(text)
        case "devices":
            return [word for word in text.replace(" ", "").split(",") if word]
        case _:
            return text


def _parse_file(file: bytes) -> dict[str, Any]:
    if len(file) > MAX_BYTES:
        raise UserError(f"{PATH} has {len(file):,} bytes: at most {MAX_BYTES:,} are read")
    try:
        text = file.decode("utf-8-sig")
        _check_structure(text)
        value = yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise UserError(f"{PATH} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    except (yaml.YAMLError, RecursionError, ValueError, ArithmeticError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise UserError(f"{PATH} is not valid YAML{place}: {problem}") from None
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UserError(f"{PATH} holds no settings: write lines such as `profile: {next(iter(PROFILES))}`")
    return value


_EXTREME_NUMBER = re.compile(r"[-+]?(?:[\d_]+(?::[\d_.]+)+|[\d_]{19,}|0[box_][\w]*)", re.ASCII)


def _check_structure(text: str) -> None:
    """Refuse aliases, tags and depth. Settings need none of them.

    A small file of aliases can expand without bound, and a tag on a wrong value raises errors of any type. A number
    that YAML reads in base 60 (``1:1:1``) is refused too: no setting has this form.
    """
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            raise UserError(f"{PATH} uses an alias (`*…`): write the value out")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) is not None:
            raise UserError(f"{PATH} is not valid YAML for settings: it uses a tag (`!…`); write the plain value")
        if isinstance(event, yaml.ScalarEvent) and event.style is None and _EXTREME_NUMBER.fullmatch(event.value):
            raise UserError(f"{PATH} has the number {event.value[:40]!r}: write at most 18 decimal digits")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if nodes > MAX_NODES or depth > 8:
            raise UserError(f"{PATH} is too large or too deep for settings: use only the documented keys")


def _merge_settings(under: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            value = _merge_settings(below, value)
        merged[key] = value
    return merged


def _find_unknown_keys(value: Mapping[str, Any], struct: type[SettingsSection], path: str) -> Iterator[str]:
    """Yield a message for each unknown key, with the nearest known key."""
    names = {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
    for key, inner in value.items():
        if key not in names:
            yield f"there is no key {f'{path}{key}'[:80]!r}{_suggest_key(str(key), names, path)}"
        elif (section := find_section(struct, names[key])) is not None and isinstance(inner, Mapping):
            yield from _find_unknown_keys(inner, section, f"{path}{key}.")


def _suggest_key(key: str, names: Mapping[str, str], path: str) -> str:
    known = {name: f"{path}{name}" for name in names}
    known |= {name.rpartition(".")[2]: name for name in list_keys() if name.rpartition(".")[2] not in known}
    close = get_close_matches(key.lower().replace("_", "-")[:60], list(known), n=1, cutoff=0.5)
    return f"; did you mean {known[close[0]]!r}?" if close else f": the keys are {', '.join(names)}"


_ERROR = re.compile(r"^(?P<problem>.*?)(?: - at (?P<place>.*))?$", re.DOTALL)
_VALUE = re.compile(r"invalid enum value '(?P<value>[^']*)'", re.IGNORECASE)


def _explain_error(message: str) -> str:
    """Return msgspec's ``Expected `int` >= 1 - at `$.limits.timeout``` with the key first, and the nearest value."""
    found = _ERROR.match(message)
    assert found is not None
    place = found["place"] or ""
    key = place.replace("`key` in ", "").strip("`").removeprefix("$").removeprefix(".").replace("[...]", "")
    problem = f"{found['problem'][0].lower()}{found['problem'][1:]}"
    if (value := _VALUE.search(problem)) is None:
        return f"{key or 'the file'}: {'a name in this section: ' if '`key` in' in place else ''}{problem}"
    names = [str(name) for name in (VerdictKind if key == "labels" else WithoutCode)]
    close = get_close_matches(value["value"].lower(), names, n=1, cutoff=0.5)
    suggestion = f"; did you mean {close[0]!r}?" if close else ""
    return f"{key}: {value['value']!r} is none of {', '.join(names)}{suggestion}"
