"""Declare the settings, the profiles of the compilers' own trackers, and the inputs of the action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import msgspec

from bot.verdict.verdict import VerdictKind
from runners.core.toolchain.reports import TrackerDefaults
from runners.toolchains import TOOLCHAINS, list_compilers

MAX_ISSUE_RUNS = 16
"""The largest budget of one issue: a record in a comment keeps this number of runs (`bot.forge.run_record`)."""
SCHEMA_ADDRESS = "https://json-schema.org/draft/2020-12/schema"


class WithoutCode(StrEnum):
    """The answer to an issue without a runnable testcase, unless a command asked for a run."""

    SILENT = "silent"
    INCOMPLETE = "incomplete"
    """One polite request if there is a testcase with missing parts."""
    ASK = "ask"


class UnaskedAnswers(StrEnum):
    """The answers that an unasked run may post: a run on opening an issue, or a scheduled run."""

    ANSWERS = "answers"
    """Verdicts with a statement about the failure: all except ``untestable`` and ``inconclusive``."""
    ALL = "all"
    NOTHING = "nothing"
    """Neither comments nor labels: a trial. The answers are on the pages of the jobs."""


class SettingsSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """Base of every section of the file."""


def _describe(description: str, **more: Any) -> msgspec.Meta:
    return msgspec.Meta(description=description, **more)


_Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,60}$")]
_Label = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Device = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_-]{1,30}$")]
_Spec = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z.,<>=!~+_ -]{1,200}$")]


class Events(SettingsSection, frozen=True, kw_only=True):
    """Events of an issue that start a run without a command."""

    opened: Annotated[bool, _describe("Run when an issue is opened.")] = True
    edited: Annotated[bool, _describe("Run again when an edit changed the testcase.")] = True
    replies: Annotated[bool, _describe("Run when a reply of the issue's author brings code that was missing.")] = True
    label: Annotated[_Label | None, _describe("Run when this label is put on an issue; null for none.")] = "repro"
    only: Annotated[
        tuple[_Label, ...], _describe("Start unasked runs only if the issue has one of these labels; empty for all.")
    ] = ()
    skip: Annotated[tuple[_Label, ...], _describe("Start no unasked run if the issue has one of these labels.")] = ()
    post: Annotated[
        UnaskedAnswers,
        _describe("Verdicts that are posted although nobody asked for the run: answers, all or nothing."),
    ] = UnaskedAnswers.ANSWERS

    @property
    def follows(self) -> bool:
        """True if a part that was missing starts a run, wherever the author adds it."""
        return self.edited and self.replies


class Budgets(SettingsSection, frozen=True, kw_only=True):
    """Runs within any 24 hours that people without triage permission may cause."""

    issue: Annotated[int, _describe("Runs on one issue.", ge=0, le=MAX_ISSUE_RUNS)] = 4
    user: Annotated[int, _describe("Runs caused by one account, on all issues.", ge=0, le=1000)] = 6
    repository: Annotated[int, _describe("Runs caused by all accounts.", ge=0, le=10000)] = 60
    replies: Annotated[int, _describe("Replies on one issue to people without triage permission.", ge=0, le=1000)] = (
        12
    )


class InvestigationLimits(SettingsSection, frozen=True, kw_only=True):
    """Limits of one investigation."""

    timeout: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=3600)] | None,
        _describe("Seconds that one run of a testcase may take; null for 120, and 40 if a hang is reported."),
    ] = None
    probes: Annotated[int, _describe("Runs of the testcase altogether.", ge=1, le=200)] = 24
    minutes: Annotated[int, _describe("Minutes that one investigation may take.", ge=1, le=300)] = 25
    download: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None,
        _describe("MiB to download for a release and the packages that a testcase requires; null for 1536."),
    ] = None
    versions_per_job: Annotated[
        int, _describe("Releases that one job runs if all releases run, without a search.", ge=1, le=100)
    ] = 8


def _make_profile(toolchain: str, tracker: TrackerDefaults) -> dict[str, Any]:
    profile: dict[str, Any] = {"toolchain": toolchain, "events": {"skip": list(tracker.skip_labels)}}
    return profile | {"devices": list(tracker.devices)} if tracker.devices else profile


PROFILES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {name: _make_profile(name, tc.REPORTS.tracker) for name, tc in TOOLCHAINS.items() if tc.REPORTS.tracker}
)
"""Defaults for the compilers' own trackers. A profile also works in a repository without the labels that it names."""

if TYPE_CHECKING:
    _Profile = str
else:
    _Profile = Literal[tuple(PROFILES)]  # editors complete the names from the published schema


class Settings(SettingsSection, frozen=True, kw_only=True):
    """The behaviour of Reprobot in one repository."""

    profile: Annotated[_Profile | None, _describe(f"Defaults for one project: {list_compilers()}.")] = None
    toolchain: Annotated[_Word | None, _describe("The compiler; null to find it from each issue's text.")] = None
    versions: Annotated[_Spec | None, _describe("Releases to run: a list, a range A..B, latest or all.")] = None
    devices: Annotated[tuple[_Device, ...], _describe("Further devices to run every testcase on.", max_length=8)] = ()
    bisect: Annotated[bool, _describe("Look for the release where the behaviour changes.")] = True
    commits: Annotated[bool, _describe("List the commits of a change that are most related to the issue.")] = True
    sandbox: Annotated[
        str,
        _describe("auto, docker, podman, bubblewrap or gvisor.", pattern=r"^(auto|docker|podman|bubblewrap|gvisor)$"),
    ] = "auto"
    allow: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,60}(=[A-Za-z0-9._-]{1,60})?$")], ...],
        _describe("Packages that a testcase may also install, as NAME or import=NAME.", max_length=40),
    ] = ()
    attachments: Annotated[
        bool, _describe("Fetch the files on the forge that an issue links to if its text lacks them.")
    ] = True
    without_code: Annotated[
        WithoutCode, _describe("Answer to an issue without a runnable testcase: silent, incomplete or ask.")
    ] = WithoutCode.INCOMPLETE
    events: Annotated[Events, _describe("Events that start a run without a command.")] = Events()
    budgets: Annotated[Budgets, _describe("Runs per 24 hours for people without triage permission.")] = Budgets()
    limits: Annotated[InvestigationLimits, _describe("Limits of one investigation.")] = InvestigationLimits()
    machines: Annotated[
        dict[Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,30}$")], tuple[_Device, ...]],
        _describe(
            "Machines of your own that need approval for each testcase: the name of the matrix in the workflow → "
            "the devices of the machine.",
            max_length=8,
        ),
    ] = {}
    labels: Annotated[
        bool | dict[VerdictKind, _Label],
        _describe(
            "Labels put on issues: true for the usual names, false for none, or your own name for each verdict."
        ),
    ] = True

    def choose_labels(self, kind: VerdictKind, usual: tuple[str, ...]) -> tuple[str, ...]:
        """Return the labels of a verdict: this repository's own name, else the ``usual`` names."""
        if self.labels is False:
            return ()
        own = self.labels.get(kind) if isinstance(self.labels, dict) else None
        return (own,) if own is not None else usual


class ActionInput(msgspec.Struct, frozen=True, kw_only=True):
    """One input of ``action.yml`` that overrides the file. ``key`` is the path of the setting in the file."""

    key: str
    description: str


INPUTS: Mapping[str, ActionInput] = MappingProxyType(
    {
        key.rpartition(".")[2]: ActionInput(key=key, description=description)
        for key, description in (
            ("profile", f"Defaults for one project: {list_compilers()}."),
            ("toolchain", f"The compiler: {list_compilers()}. Found from each issue's text when empty."),
            ("versions", "Releases to run: a list, a range A..B, latest or all."),
            ("devices", "Further devices to run every testcase on, separated by commas."),
            ("bisect", "Look for the release where the behaviour changes: true or false."),
            ("commits", "List the commits of a change that are most related to the issue: true or false."),
            ("limits.timeout", "Seconds that one run of a testcase may take, at most 3600."),
            ("without-code", "Answer to an issue without a testcase: silent, incomplete or ask."),
            ("labels", "Put labels on issues: true or false."),
        )
    }
)
"""Inputs of the action. An empty input leaves the setting to the file. A test compares it with ``action.yml``."""


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file, as published for editors."""
    schema = msgspec.json.schema(Settings)
    return {"$schema": SCHEMA_ADDRESS, "title": "Reprobot's settings for one repository", **schema}


def list_keys(struct: type[SettingsSection] = Settings, path: str = "") -> Iterator[str]:
    """Yield every key of the file with its path: ``limits.timeout``."""
    for field in msgspec.structs.fields(struct):
        yield f"{path}{field.encode_name}"
        if (section := find_section(struct, field.name)) is not None:
            yield from list_keys(section, f"{path}{field.encode_name}.")


@cache
def _get_types(struct: type[SettingsSection]) -> dict[str, Any]:
    return get_type_hints(struct)


def find_section(struct: type[SettingsSection], name: str) -> type[SettingsSection] | None:
    """Return the type of the field ``name`` if the field is a section, else None."""
    hint = _get_types(struct)[name]
    return hint if isinstance(hint, type) and issubclass(hint, SettingsSection) else None
