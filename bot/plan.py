"""Repro × catalogue × wishes → Plan: which releases are worth running, and which must be. Pure."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from bot.extract.types import Repro
from runners.core.catalogue import Catalogue, Release
from runners.core.errors import UserError
from runners.core.protocol import Budget, BuildRange, ClaimKind, Limits, Plan, TestcaseKind
from runners.toolchains import find_device, find_toolchain

MOST_CHOSEN = 8
"""So many releases named by hand are all run; of more, the search chooses (unless it is switched off)."""
MINUTES_OF_A_SEARCH = 240.0
"""Between commits most of the time goes into building; one that has every build at hand takes a few minutes."""
MOST_CONTROLS = 2
HANG_WALL_S = 40.0
"""Some forty times what a small testcase takes on an ordinary machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the caller asked for; None or empty means: as the plan sees fit."""

    versions: str | None = None
    devices: tuple[str, ...] = ()
    bisect: bool = True
    timeout_s: float | None = None
    """Seconds that one run may take."""
    sandbox: str = "auto"
    allowed: tuple[str, ...] = ()
    """Packages that a testcase may install besides those on the list, as ``--allow`` takes them."""
    wheels: tuple[str, ...] = ()
    """Directories of wheels, as ``--wheels`` takes them."""
    ends: tuple[str, str] | None = None
    """A good and a bad version, tag or commit: search only between the two."""
    history: str = ""
    """A clone of the toolchain's repository, as ``--history`` takes it."""
    minutes: float | None = None
    """How long a search between two ends may take."""
    minimize: bool = False
    """Also cut the testcase down to what its failure needs."""
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan, and in words how the reporter's version was understood."""

    plan: Plan
    notes: tuple[str, ...] = ()


def follow_plan(repro: Repro, trail: BuildRange, wishes: Wishes) -> Plan:
    """Only the search along a trail."""
    minutes = wishes.minutes if wishes.minutes is not None else MINUTES_OF_A_SEARCH
    return Plan(
        testcase=repro.testcase,
        claim=repro.claim,
        device=repro.device,
        checks_itself=checks_itself(repro),
        order=(trail.builds[0].name, trail.builds[-1].name),
        first=(),
        trail=trail,
        chosen=True,
        limits=_limits(repro, wishes),
        budget=msgspec.structs.replace(wishes.budget, wall_s=60 * minutes),
    )


def make_plan(repro: Repro, catalogue: Catalogue, wishes: Wishes) -> Planned:
    """Choose the releases.

    Raises:
        UserError: a version or toolchain that does not exist was asked for.
    """
    toolchain = repro.testcase.toolchain
    chosen = _chosen(catalogue, toolchain, wishes)
    if not chosen:
        raise UserError(f"no release of {toolchain} is in the catalogue: run `reprobot refresh`")
    reported, notes = _reported(repro, catalogue)
    order = _in_order(chosen, () if wishes.versions else _around(reported, catalogue))
    fits = len(order) <= MOST_CHOSEN
    return Planned(
        plan=Plan(
            testcase=repro.testcase,
            claim=repro.claim,
            device=repro.device,
            checks_itself=checks_itself(repro),
            order=order,
            first=_first(order, reported, every=bool(wishes.versions) and (fits or not wishes.bisect)),
            controls=repro.controls[:MOST_CONTROLS],
            reported=reported.version if reported is not None and reported.version in order else None,
            devices=tuple(d for d in _devices(toolchain, wishes.devices) if d != repro.device),
            bisect=wishes.bisect,
            deepen=wishes.bisect,
            chosen=bool(wishes.versions),
            limits=_limits(repro, wishes),
            budget=wishes.budget,
        ),
        notes=notes,
    )


def _chosen(catalogue: Catalogue, toolchain: str, wishes: Wishes) -> tuple[Release, ...]:
    """The versions asked for; else the releases, and every build of a directory that was named to have it run."""
    if wishes.versions:
        return catalogue.select(toolchain, wishes.versions)
    every = catalogue.releases(toolchain, prereleases=True)
    return tuple(r for r in every if r.ordinary or not set(wishes.wheels).isdisjoint(r.links))


def _devices(toolchain: str, names: Sequence[str]) -> tuple[str, ...]:
    """The toolchain's own names for the devices that were asked for."""
    known = find_toolchain(toolchain)
    found = [find_device(known, name) for name in names]
    for name, device in zip(names, found, strict=True):
        if device is None:
            there = ", ".join(device.name for device in known.DEVICES)
            raise UserError(f"{known.TITLE} has no device {name!r}: choose among {there}")
    return tuple(device.name for device in found if device is not None)


def _reported(repro: Repro, catalogue: Catalogue) -> tuple[Release | None, tuple[str, ...]]:
    """The available build nearest to the first version of the report that maps to one."""
    notes = []
    for text in repro.claim.versions:
        release, why = catalogue.nearest(repro.testcase.toolchain, text)
        notes.append(f"the version that the report names: {why}")
        if release is not None:
            return release, (notes[-1],)
    return None, tuple(notes[:1])


def _in_order(chosen: Sequence[Release], besides: Sequence[Release]) -> tuple[str, ...]:
    """The chosen releases and those besides, oldest first."""
    releases = {release.version: release for release in (*chosen, *besides)}
    return tuple(sorted(releases, key=lambda version: releases[version].order))


def _around(reported: Release | None, catalogue: Catalogue) -> tuple[Release, ...]:
    """The reporter's own build, even when it is a pre-release; from a fork on, the later forks too.

    Between a fork and the first release lie years: the other forks halve them.
    """
    if reported is None or reported.source != "bundle":
        return () if reported is None else (reported,)
    every = catalogue.releases(reported.toolchain, prereleases=True)
    return tuple(r for r in every if r.source == "bundle" and r.order >= reported.order)


def _first(order: Sequence[str], reported: Release | None, *, every: bool) -> tuple[str, ...]:
    """The reporter's release first, so that its answer is there early; then the newest and the oldest, or all."""
    wanted = [reported.version] if reported is not None and reported.version in order else []
    return tuple(dict.fromkeys([*wanted, order[-1], order[0], *(order if every else ())]))


def _limits(repro: Repro, wishes: Wishes) -> Limits:
    """What a run may use. A hang shows itself by running out of time: there, less of it is enough."""
    if wishes.timeout_s is not None:
        return Limits(wall_s=wishes.timeout_s)
    return Limits(wall_s=HANG_WALL_S) if repro.claim.kind is ClaimKind.HANG else Limits()


def checks_itself(repro: Repro) -> bool:
    """Whether the testcase asserts anything, so that running to its end is evidence. Parsed, never run."""
    match repro.testcase.kind:
        case TestcaseKind.PYTHON:
            return any(_asserts(text) for name, text in repro.testcase.files.items() if name.endswith(".py"))
        case TestcaseKind.COMMAND_LINE:
            return any(word.startswith("--expected_output") for step in repro.testcase.steps for word in step)


def _asserts(code: str) -> bool:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.Assert | ast.Raise) or _is_assertion_call(node) for node in ast.walk(tree))


def _is_assertion_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.startswith("assert_")
