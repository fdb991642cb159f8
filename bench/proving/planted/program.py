"""A program whose truth is known by construction, and what is told about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.proving.planted.builds import CREATED, ROWS, Pattern, find_base
from bench.proving.story import Claim, Story

Steps = tuple[tuple[str, ...], ...]
Ending = Literal["error", "assertion", "printed", "signal", "hang"]
"""How a run that fails as reported ends: with an error, with a check of the program's own, cleanly but with other
values printed, by a signal, or not at all."""
WRONG_DONE = ("confirmed", "regression", "fixed")
"""Verdicts that put a program's own mistake on the compiler."""
PYTHON: Steps = (("python", "repro.py"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The kinds of finding that an answer must, may and must not report."""

    must: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A text beside the program that proves where the fault lies: run by the check, never told in the report."""

    files: Mapping[str, str]
    steps: Steps
    clean_on: tuple[str, ...]
    """Builds on which the control must run cleanly, and print ``shows``."""
    fails_on: tuple[str, ...] = ()
    shows: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One program, its report, and the right answer."""

    story: Story
    family: str
    verdict: str
    accepted: tuple[str, ...] = ()
    """Verdicts that are acceptable beside ``verdict``."""
    never: tuple[str, ...] = ()
    """Verdicts that would do harm."""
    versions: tuple[str, ...]
    """Builds to run, oldest first."""
    outcomes: Mapping[str, str]
    """Build → outcome of a run, as `runners.core.protocol.Outcome` names them; ``flaky``: runs of it disagree."""
    ending: Ending
    shows: str = ""
    """A part of the output of every run that fails as reported."""
    told_by: str
    """The build whose output the story quotes; empty where the story quotes what no build prints."""
    findings: Findings = field(default_factory=Findings)
    control: Control | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program and how it fails, apart from the builds on which it does."""

    name: str
    family: str
    toolchain: str
    title: str
    files: Mapping[str, str]
    steps: Steps
    claim: Claim
    ending: Ending
    shows: str = ""
    right: str = ""
    """The lines that a good run prints; empty where the control shows which run is good."""
    quoted: str = ""
    """What the report quotes of a failure that no build here shows: an output, or lines of values."""
    accused: tuple[str, ...] = ()
    device: str = ""
    findings: Findings = field(default_factory=Findings)
    proof: Mapping[str, str] = field(default_factory=dict)
    """The files of a text that is clean where this program is right and fails where it is not."""

    def make_story(self, version: str) -> Story:
        return Story(
            name=self.name,
            toolchain=self.toolchain,
            title=self.title,
            files=self.files,
            steps=self.steps,
            claim=self.claim,
            failure=self.quoted if self.ending != "printed" else "",
            wrong=self.quoted if self.ending == "printed" else "",
            right=self.right,
            version=version,
            created=CREATED[version],
            device=self.device,
            accused=self.accused,
        )


def tell(program: Program, pattern: Pattern) -> Planted:
    """A program that a broken build runs wrongly, over the builds of a pattern."""
    good = tuple(version for version, outcome in pattern.outcomes.items() if outcome == "pass")
    bad = tuple(version for version, outcome in pattern.outcomes.items() if outcome == "match")
    clean = good or tuple(dict.fromkeys(find_base(version) for version in bad))
    control = Control(
        files=program.proof or program.files,
        steps=program.steps,
        clean_on=clean[:1],
        fails_on=bad[:1] if program.proof else (),
        shows=program.right,
    )
    return Planted(
        story=program.make_story(pattern.reported),
        family=program.family,
        verdict=pattern.verdict,
        accepted=pattern.accepted,
        never=pattern.never,
        versions=tuple(pattern.outcomes),
        outcomes=pattern.outcomes,
        ending=program.ending,
        shows=program.shows,
        told_by=pattern.told_by,
        findings=program.findings,
        control=control if program.proof or not good else None,
    )


def tell_flaky(program: Program, toolchain: str) -> Planted:
    """A program that a broken build runs wrongly in some runs."""
    _, _, good, newest = ROWS[toolchain]
    return Planted(
        story=program.make_story(newest),
        family=program.family,
        verdict="flaky",
        accepted=("regression",),
        never=("invalid-repro", "fixed"),
        versions=(good, newest),
        outcomes={good: "pass", newest: "flaky"},
        ending=program.ending,
        shows=program.shows,
        told_by=newest,
        findings=program.findings,
    )


def tell_over(
    program: Program,
    outcomes: Mapping[str, str],
    verdict: str,
    *,
    reported: str,
    told_by: str | None = None,
    accepted: tuple[str, ...] = (),
    never: tuple[str, ...] = (),
    control: Mapping[str, str] | None = None,
    steps: Steps | None = None,
) -> Planted:
    """A program over builds of its own. ``control`` and ``steps`` are clean on all of them."""
    return Planted(
        story=program.make_story(reported),
        family=program.family,
        verdict=verdict,
        accepted=accepted,
        never=never,
        versions=tuple(outcomes),
        outcomes=outcomes,
        ending=program.ending,
        shows=program.shows,
        told_by=reported if told_by is None else told_by,
        findings=program.findings,
        control=None
        if control is None and steps is None
        else Control(files=control or program.files, steps=steps or program.steps, clean_on=tuple(outcomes)),
    )
