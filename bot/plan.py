"""Choose the releases to run: testcase × catalogue × options → plan. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import msgspec

from bot.extract.python.reference.caught import find_caught_labels
from bot.extract.python.reference.own_checks import has_own_check
from bot.extract.python.reference.own_reference import prints_reference
from bot.extract.python.reference.printed_rows import find_printed_rows
from bot.extract.types import Repro
from runners.core.errors import UserError
from runners.core.packages.catalogue import Catalogue, Release
from runners.core.packages.requirements import pin_layers
from runners.core.packages.versions import parse_version
from runners.core.protocol import Budget, BuildRange, ClaimKind, Limits, Plan
from runners.toolchains import find_device, find_toolchain

MAX_RUN_ALL = 8
"""Up to this number, all releases named by hand run. Of a larger number, the search chooses, unless it is off."""
COMMIT_SEARCH_MINUTES = 240.0
"""Default time for a search between commits. Building takes most of it; a search with all builds available takes a
few minutes."""
MAX_CONTROLS = 2
HANG_WALL_S = 40.0
"""Seconds for one run if a hang is reported. A small testcase takes a fortieth of this on an ordinary machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The caller's choices. None or empty leaves the choice to the plan."""

    versions: str | None = None
    devices: tuple[str, ...] = ()
    bisect: bool = True
    timeout_s: float | None = None
    """Seconds that one run may take."""
    sandbox: str = "auto"
    image: str = ""
    """The runner image in which the testcase runs, in the form of ``--image``."""
    allowed: tuple[str, ...] = ()
    """Packages that a testcase may install besides those on the list, in the form of ``--allow``."""
    wheels: tuple[str, ...] = ()
    """Directories of wheels, in the form of ``--wheels``."""
    ends: tuple[str, str] | None = None
    """A good and a bad version, tag or commit: search only between the two."""
    history: str = ""
    """A clone of the toolchain's repository, in the form of ``--history``."""
    minutes: float | None = None
    """Time limit of a search between two ends."""
    anyway: bool = False
    """Run a testcase even if the text around it reports no failure."""
    minimize: bool = False
    """Also reduce the testcase to the part that its failure needs."""
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWithNotes:
    """A plan, and sentences on how the reported version was mapped to a build."""

    plan: Plan
    notes: tuple[str, ...] = ()


def plan_commit_search(repro: Repro, builds: BuildRange, options: RunOptions) -> Plan:
    """Return a plan that only searches the range ``builds``."""
    minutes = options.minutes if options.minutes is not None else COMMIT_SEARCH_MINUTES
    return Plan(
        testcase=repro.testcase,
        claim=repro.claim,
        device=repro.device,
        checks_itself=has_own_check(repro.testcase),
        prints_reference=prints_reference(repro.testcase),
        rows=find_printed_rows(repro.testcase),
        caught=find_caught_labels(repro.testcase),
        order=(builds.builds[0].name, builds.builds[-1].name),
        first=(),
        trail=builds,
        chosen=True,
        day=repro.day,
        limits=_choose_limits(repro, options),
        budget=msgspec.structs.replace(options.budget, wall_s=60 * minutes),
    )


def make_plan(
    repro: Repro, catalogue: Catalogue, options: RunOptions, *, answered: Collection[str] = ()
) -> PlanWithNotes:
    """Choose the releases, and the order in which they are run.

    ``answered`` are the releases of an earlier answer to the same text.

    Raises:
        UserError: the options name a version or device that does not exist, or the catalogue has no release.
    """
    toolchain = repro.testcase.toolchain
    chosen = _select_releases(catalogue, toolchain, options)
    if not chosen:
        raise UserError(f"no release of {toolchain} is in the catalogue: run `reprobot refresh`")
    reported, notes = _find_reported_build(repro, catalogue)
    of_its_day = None
    if reported is None and repro.day is not None:
        of_its_day, why = catalogue.find_dated(toolchain, repro.day)
        notes = (*notes, f"by the day of the report: {why}")
    nearest = reported or of_its_day
    extra = [] if options.versions else [nearest, _find_early_before(repro, catalogue, reported)]
    order = _sort_by_age(chosen, [build for one in extra for build in _list_extra_builds(one, catalogue)])
    fits = len(order) <= MAX_RUN_ALL
    good = _find_good_builds(repro, order)
    known = [version for version in order if version in answered]
    before = known[-1] if known and known[-1] != order[-1] else None
    return PlanWithNotes(
        plan=Plan(
            testcase=repro.testcase,
            claim=repro.claim,
            device=repro.device,
            checks_itself=has_own_check(repro.testcase),
            prints_reference=prints_reference(repro.testcase),
            rows=find_printed_rows(repro.testcase),
            caught=find_caught_labels(repro.testcase),
            order=order,
            first=_choose_first(
                order, nearest, before, good, run_all=bool(options.versions) and (fits or not options.bisect)
            ),
            controls=repro.controls[:MAX_CONTROLS],
            reported=reported.version if reported is not None and reported.version in order else None,
            good=good,
            answered=before,
            day=repro.day,
            devices=tuple(d for d in _resolve_devices(toolchain, options.devices) if d != repro.device),
            bisect=options.bisect,
            deepen=options.bisect,
            chosen=bool(options.versions),
            limits=_choose_limits(repro, options),
            budget=options.budget,
        ),
        notes=(*notes, *_name_layers(repro)),
    )


def _name_layers(repro: Repro) -> tuple[str, ...]:
    """Return a note on the versions of large packages that the report's day chooses."""
    required = repro.testcase.requirements
    pinned = [one for one in pin_layers(required, repro.day) if one not in required]
    if not pinned:
        return ()
    why = "chosen by the day of the report" if repro.day is not None else "the newest that is offered"
    return (f"the testcase requires packages without a version: every release ran with {', '.join(pinned)}, {why}",)


def _select_releases(catalogue: Catalogue, toolchain: str, options: RunOptions) -> tuple[Release, ...]:
    """Return the versions asked for; without any, all releases, and every build of the ``--wheels`` directories."""
    if options.versions:
        return catalogue.select(toolchain, options.versions)
    builds = catalogue.list_releases(toolchain, prereleases=True)
    return tuple(r for r in builds if r.is_ordinary or not set(options.wheels).isdisjoint(r.links))


def _resolve_devices(toolchain: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the toolchain's own names of the devices asked for."""
    known = find_toolchain(toolchain)
    devices = [find_device(known, name) for name in names]
    for name, device in zip(names, devices, strict=True):
        if device is None:
            available = ", ".join(device.name for device in known.DEVICES)
            raise UserError(f"{known.TITLE} has no device {name!r}: choose among {available}")
    return tuple(device.name for device in devices if device is not None)


def _find_reported_build(repro: Repro, catalogue: Catalogue) -> tuple[Release | None, tuple[str, ...]]:
    """Return the available build nearest to the first reported version that maps to a build, and a note on it.

    Without a version in the report, the build of its day represents the reported one. If a named version maps to no
    build, the reported build is unknown: the build of the day runs, but represents no version.
    """
    notes = []
    toolchain = repro.testcase.toolchain
    for text in repro.claim.versions:
        release, why = catalogue.find_nearest(toolchain, text, repro.day)
        notes.append(f"the version that the report names: {why}")
        if release is not None:
            return release, (notes[-1],)
    if notes or repro.day is None:
        return None, tuple(notes[:1])
    release, why = catalogue.find_dated(toolchain, repro.day)
    return release, (f"the report names no version: {why}",)


def _find_good_builds(repro: Repro, order: Sequence[str]) -> tuple[str, ...]:
    """Return the newest build that a report calls good, if the report is about wrong values and quotes none."""
    claim = repro.claim
    if claim.kind is not ClaimKind.WRONG_RESULT or claim.actual or claim.expected:
        return ()
    named = {parse_version(text.lstrip("vV")) for text in claim.good} - {None}
    found = [version for version in order if parse_version(version) in named]
    return tuple(found[-1:])


def _find_early_before(repro: Repro, catalogue: Catalogue, reported: Release | None) -> Release | None:
    """Return the last early build before the named version, or before the day of the report.

    Return None unless the report predates every ordinary release. Return None too if a named version has a build, or
    if the build that represents the day of the report is not younger than that day: a younger one may have the fix.

    A recent report may name a version older than all early builds: then return the oldest of these. Without its day,
    it is not known whether the report is recent.
    """
    toolchain, day = repro.testcase.toolchain, repro.day
    named = any(re.search(r"\d", text) for text in repro.claim.versions)
    is_younger = reported is not None and day is not None and reported.released > day
    if reported is not None and (named or (reported.source == "bundle" and not is_younger)):
        return None
    early = next(
        (
            build
            for find in (catalogue.find_early_before, *([catalogue.find_oldest_early] if day is not None else []))
            for text in repro.claim.versions
            if (build := find(toolchain, text)) is not None
        ),
        None,
    )
    return early or (catalogue.find_early_before_day(toolchain, day) if day is not None else None)


def _sort_by_age(chosen: Sequence[Release], extra: Sequence[Release]) -> tuple[str, ...]:
    """Return the versions of both sequences, oldest first, each once."""
    releases = {release.version: release for release in (*chosen, *extra)}
    return tuple(sorted(releases, key=lambda version: releases[version].order))


def _list_extra_builds(reported: Release | None, catalogue: Catalogue) -> tuple[Release, ...]:
    """Return the reported build, even a pre-release. For an early build, return the later early builds too.

    The first ordinary release is years younger than an early build: the search needs the builds between them.
    """
    if reported is None or not reported.is_early:
        return () if reported is None else (reported,)
    builds = catalogue.list_releases(reported.toolchain, prereleases=True)
    return tuple(r for r in builds if r.is_early and r.order >= reported.order)


def _choose_first(
    order: Sequence[str], nearest: Release | None, answered: str | None, good: Sequence[str], *, run_all: bool
) -> tuple[str, ...]:
    """Return the versions to run before any search.

    The build nearest to the report comes first, so that its answer is early; then the newest and the oldest, or all.
    The newest release of an earlier answer shows whether anything has changed since.
    """
    early = [nearest.version] if nearest is not None and nearest.version in order else []
    before = [answered] if answered is not None else []
    return tuple(dict.fromkeys([*early, *before, *good, order[-1], order[0], *(order if run_all else ())]))


def _choose_limits(repro: Repro, options: RunOptions) -> Limits:
    """Return the limits of one run. A reported hang gets less time, because a hang always uses all of it."""
    if options.timeout_s is not None:
        return Limits(wall_s=options.timeout_s)
    return Limits(wall_s=HANG_WALL_S) if repro.claim.kind is ClaimKind.HANG else Limits()
