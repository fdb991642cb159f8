"""``.github/reprobot.yml`` and the action's inputs → Settings. Every fault is named with its key and the nearest one.

The file is read from the default branch, so whoever may change it may change the repository. It is small, plain YAML:
anything deeper is refused before it is looked at. ``docs/reprobot.schema.json`` is this module's schema, for editors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import msgspec
import yaml

from bot.verdict.verdict import VerdictKind
from runners.core.errors import UserError
from runners.core.toolchain.reports import TrackerDefaults
from runners.toolchains import TOOLCHAINS, list_compilers

PATH = ".github/reprobot.yml"
MAX_BYTES = 32 * 1024
MAX_NODES = 1_000
SCHEMA_ADDRESS = "https://json-schema.org/draft/2020-12/schema"


class WithoutCode(StrEnum):
    """What an issue without a testcase that can be run is answered, when nobody asked by a command."""

    SILENT = "silent"
    INCOMPLETE = "incomplete"
    """One polite request when there is a testcase and something of it is missing."""
    ASK = "ask"


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """Base of every part of the file."""


def _said(description: str, **more: Any) -> msgspec.Meta:
    return msgspec.Meta(description=description, **more)


_Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,60}$")]
_Label = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Device = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_-]{1,30}$")]
_Spec = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z.,<>=!~+_ -]{1,200}$")]


class Events(Section, frozen=True, kw_only=True):
    """Which events of an issue start a run by themselves."""

    opened: Annotated[bool, _said("Run when an issue is opened.")] = True
    edited: Annotated[bool, _said("Run again when an edit changed the testcase.")] = False
    label: Annotated[_Label | None, _said("Run when this label is put on an issue; null for none.")] = "repro"
    only: Annotated[
        tuple[_Label, ...], _said("Run on opening only when the issue has one of these labels; empty for all.")
    ] = ()
    skip: Annotated[tuple[_Label, ...], _said("Leave an issue with one of these labels alone on opening.")] = ()


class Budgets(Section, frozen=True, kw_only=True):
    """Runs within any 24 hours that people without triage permission may cause."""

    issue: Annotated[int, _said("Runs on one issue.", ge=0, le=1000)] = 4
    user: Annotated[int, _said("Runs caused by one account, on all issues.", ge=0, le=1000)] = 6
    repository: Annotated[int, _said("Runs caused by all of them.", ge=0, le=10000)] = 60
    replies: Annotated[int, _said("Replies to commands on one issue, whoever asks.", ge=0, le=1000)] = 12


class Limits(Section, frozen=True, kw_only=True):
    """What one investigation may use."""

    timeout: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=3600)] | None,
        _said("Seconds that one run of a testcase may take; null for 120, and 40 where a hang is reported."),
    ] = None
    probes: Annotated[int, _said("Runs of the testcase altogether.", ge=1, le=200)] = 24
    minutes: Annotated[int, _said("Minutes that one investigation may take.", ge=1, le=300)] = 25
    versions_per_job: Annotated[
        int, _said("Releases that one job runs when they are not searched but all run.", ge=1, le=100)
    ] = 8


def _profile(toolchain: str, tracker: TrackerDefaults) -> dict[str, Any]:
    made: dict[str, Any] = {"toolchain": toolchain, "events": {"skip": list(tracker.skip_labels)}}
    return made | {"devices": list(tracker.devices)} if tracker.devices else made


PROFILES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: _profile(name, one.REPORTS.tracker) for name, one in TOOLCHAINS.items() if one.REPORTS.tracker is not None}
)
"""What the projects' trackers need. In a repository without the labels that a profile names, the profile works all
the same."""

if TYPE_CHECKING:
    _Profile = str
else:
    _Profile = Literal[tuple(PROFILES)]  # editors complete the names from the published schema


class Settings(Section, frozen=True, kw_only=True):
    """How Reprobot behaves in one repository."""

    profile: Annotated[_Profile | None, _said(f"Defaults for one project: {list_compilers()}.")] = None
    toolchain: Annotated[_Word | None, _said("The compiler; null to find it from each issue's text.")] = None
    versions: Annotated[_Spec | None, _said("Releases to run: a list, a range A..B, latest or all.")] = None
    devices: Annotated[tuple[_Device, ...], _said("Further devices to run every testcase on.", max_length=8)] = ()
    bisect: Annotated[bool, _said("Look for the release where the behaviour changes.")] = True
    sandbox: Annotated[
        str, _said("auto, docker, podman, bubblewrap or gvisor.", pattern=r"^(auto|docker|podman|bubblewrap|gvisor)$")
    ] = "auto"
    allow: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,60}(=[A-Za-z0-9._-]{1,60})?$")], ...],
        _said("Packages that a testcase may also install, as NAME or import=NAME.", max_length=40),
    ] = ()
    attachments: Annotated[bool, _said("Fetch files that an issue links to on the forge when it lacks them.")] = True
    without_code: Annotated[
        WithoutCode, _said("Answer to an issue without a runnable testcase: silent, incomplete or ask.")
    ] = WithoutCode.INCOMPLETE
    events: Annotated[Events, _said("Which events start a run by themselves.")] = Events()
    budgets: Annotated[Budgets, _said("Runs per 24 hours for people without triage permission.")] = Budgets()
    limits: Annotated[Limits, _said("What one investigation may use.")] = Limits()
    machines: Annotated[
        dict[Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,30}$")], tuple[_Device, ...]],
        _said(
            "Machines of your own that need approval for each testcase: the name of the matrix in the workflow → "
            "the devices it has.",
            max_length=8,
        ),
    ] = {}
    labels: Annotated[
        bool | dict[VerdictKind, _Label],
        _said("Labels put on issues: true for the usual names, false for none, or your own name for each verdict."),
    ] = True

    def label(self, kind: VerdictKind, usual: tuple[str, ...]) -> tuple[str, ...]:
        """The labels of a verdict under this repository's names."""
        if self.labels is False:
            return ()
        own = self.labels.get(kind) if isinstance(self.labels, dict) else None
        return (own,) if own is not None else usual


# ---------------------------------------------------------------------------------------------- inputs of the action


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One input of ``action.yml`` that overrides the file. ``key`` is its place there."""

    key: str
    description: str


INPUTS: Mapping[str, Input] = MappingProxyType(
    {
        name: Input(key=key, description=description)
        for name, key, description in (
            ("profile", "profile", f"Defaults for one project: {list_compilers()}."),
            ("toolchain", "toolchain", f"The compiler: {list_compilers()}. Found from each issue's text when empty."),
            ("versions", "versions", "Releases to run: a list, a range A..B, latest or all."),
            ("devices", "devices", "Further devices to run every testcase on, separated by commas."),
            ("bisect", "bisect", "Look for the release where the behaviour changes: true or false."),
            ("timeout", "limits.timeout", "Seconds that one run of a testcase may take, at most 3600."),
            ("without-code", "without-code", "Answer to an issue without a testcase: silent, incomplete or ask."),
            ("labels", "labels", "Put labels on issues: true or false."),
        )
    }
)
"""Inputs mirrored by settings: an empty input leaves the file's word. A test holds ``action.yml`` to this table."""


def load_settings(file: bytes | None, inputs: Mapping[str, str] | None = None) -> Settings:
    """The profile's defaults, then the file, then the inputs that are not empty.

    Raises:
        UserError: something is no setting; the sentence names the key and the nearest valid one.
    """
    own = _parse(file) if file is not None else {}
    given = _from_inputs(inputs or {})
    profile = given.get("profile", own.get("profile"))
    if profile is not None and profile not in PROFILES:
        raise UserError(f"{PATH}: there is no profile {str(profile)[:40]!r}: choose among {', '.join(PROFILES)}")
    merged = _merge(_merge(dict(PROFILES[profile]) if profile else {}, own), given)
    if wrong := next(_unknown(merged, Settings, ""), None):
        raise UserError(f"{PATH}: {wrong}")
    try:
        return msgspec.convert(merged, Settings, strict=True)
    except msgspec.ValidationError as error:
        raise UserError(f"{PATH}: {_explain(str(error))}") from None


def schema() -> dict[str, Any]:
    """The JSON Schema of the file, as published for editors."""
    made = msgspec.json.schema(Settings)
    return {"$schema": SCHEMA_ADDRESS, "title": "Reprobot's settings for one repository", **made}


def _from_inputs(inputs: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, text in inputs.items():
        if name not in INPUTS:
            raise UserError(f"there is no input {name!r}: there are {', '.join(INPUTS)}")
        if not text.strip():
            continue
        *outer, last = INPUTS[name].key.split(".")
        place = given
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = _typed(name, text.strip())
    return given


def _typed(name: str, text: str) -> Any:
    """An input is always text; which type it stands for is known by its name."""
    match name:
        case "bisect" | "labels":
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


# ---------------------------------------------------------------------------------------------- YAML, with suspicion


def _parse(file: bytes) -> dict[str, Any]:
    if len(file) > MAX_BYTES:
        raise UserError(f"{PATH} has {len(file):,} bytes: at most {MAX_BYTES:,} are read")
    try:
        text = file.decode("utf-8-sig")
        _bounded(text)
        value = yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise UserError(f"{PATH} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise UserError(
            f"{PATH} is no YAML{where}: {getattr(error, 'problem', None) or type(error).__name__}"
        ) from None
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UserError(f"{PATH} holds no settings: write lines such as `profile: {next(iter(PROFILES))}`")
    return value


def _bounded(text: str) -> None:
    """Aliases multiply, and a bomb of them is small; a file of settings needs neither them nor depth."""
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            raise UserError(f"{PATH} uses an alias (`*…`): write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if nodes > MAX_NODES or depth > 8:
            raise UserError(f"{PATH} is too large or too deep for settings: keep to the documented keys")


def _merge(under: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return merged


def _unknown(value: Mapping[str, Any], struct: type[Section], path: str) -> Iterator[str]:
    """A sentence for each key that no section has, with the nearest key anywhere that is one."""
    names = {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
    for key, inner in value.items():
        if key not in names:
            yield f"there is no key {f'{path}{key}'[:80]!r}{_nearest(str(key), names, path)}"
        elif (section := _section(struct, names[key])) is not None and isinstance(inner, Mapping):
            yield from _unknown(inner, section, f"{path}{key}.")


def _nearest(key: str, names: Mapping[str, str], path: str) -> str:
    known = {name: f"{path}{name}" for name in names}
    known |= {name.rpartition(".")[2]: name for name in all_keys() if name.rpartition(".")[2] not in known}
    close = get_close_matches(key.lower().replace("_", "-")[:60], list(known), n=1, cutoff=0.5)
    return f"; did you mean {known[close[0]]!r}?" if close else f": there are {', '.join(names)}"


def all_keys(struct: type[Section] = Settings, path: str = "") -> Iterator[str]:
    """Every key of the file with its path: ``limits.timeout``."""
    for field in msgspec.structs.fields(struct):
        yield f"{path}{field.encode_name}"
        if (section := _section(struct, field.name)) is not None:
            yield from all_keys(section, f"{path}{field.encode_name}.")


def _section(struct: type[Section], name: str) -> type[Section] | None:
    hint = get_type_hints(struct)[name]
    return hint if isinstance(hint, type) and issubclass(hint, Section) else None


_AT = re.compile(r"^(?P<what>.*?)(?: - at (?P<where>.*))?$", re.DOTALL)
_VALUE = re.compile(r"invalid enum value '(?P<value>[^']*)'", re.IGNORECASE)


def _explain(message: str) -> str:
    """msgspec's ``Expected `int` >= 1 - at `$.limits.timeout``` with the key first, and the nearest name."""
    found = _AT.match(message)
    assert found is not None
    where = found["where"] or ""
    key = where.replace("`key` in ", "").strip("`").removeprefix("$").removeprefix(".").replace("[...]", "")
    what = f"{found['what'][0].lower()}{found['what'][1:]}"
    if (value := _VALUE.search(what)) is None:
        return f"{key or 'the file'}: {'a name in it: ' if '`key` in' in where else ''}{what}"
    names = [str(name) for name in (VerdictKind if key == "labels" else WithoutCode)]
    close = get_close_matches(value["value"].lower(), names, n=1, cutoff=0.5)
    return f"{key}: {value['value']!r} is none of {', '.join(names)}" + (
        f"; did you mean {close[0]!r}?" if close else ""
    )


if __name__ == "__main__":
    import sys

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n")
