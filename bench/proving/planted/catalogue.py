"""All programs, with the outputs that their reports quote: recorded from runs, as ``check --record`` does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import msgspec

from bench.proving.grades import Label
from bench.proving.planted.builds import list_patterns
from bench.proving.planted.families import iree, tvm
from bench.proving.planted.program import Findings, Planted, Program, tell, tell_flaky
from bench.proving.story import Story

TELLINGS = Path(__file__).parent / "tellings.jsonl"
UNDECIDABLE = ("untestable", "incomplete")
"""Verdicts on programs that the builds at hand cannot run as reported."""
ORDER = (0, 1, 2, 0, 1, 4, 3)
"""The patterns that one program after another is told over: one in seven where it never failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedCase:
    """What an evaluation needs of a program: its report, the builds to run, and the right answer."""

    story: Story
    versions: tuple[str, ...]
    """Builds to run, oldest first: releases, and builds of the folder that ``broken_wheels`` makes."""
    label: Label
    outcomes: Mapping[str, str]
    """Build → outcome of the testcase as told; ``flaky``: its runs disagree."""
    findings: Findings
    family: str


class Telling(msgspec.Struct, frozen=True):
    """What a run has printed, as a report quotes it. ``text`` names the program that was run."""

    name: str
    text: str
    failure: str = ""
    wrong: str = ""
    right: str = ""


def planted_cases() -> tuple[PlantedCase, ...]:
    """Return every program as an evaluation takes it."""
    return tuple(_make_case(planted) for planted in load_planted())


def _make_case(planted: Planted) -> PlantedCase:
    return PlantedCase(
        story=planted.story,
        versions=planted.versions,
        label=Label(
            verdict=planted.verdict,
            accepted=planted.accepted,
            never=planted.never,
            decidable=planted.verdict not in UNDECIDABLE,
        ),
        outcomes=planted.outcomes,
        findings=planted.findings,
        family=planted.family,
    )


def load_planted() -> tuple[Planted, ...]:
    """Every program, told.

    Raises:
        ValueError: a program was changed after its output was recorded.
    """
    tellings = read_tellings()
    return tuple(_tell(planted, tellings.get(planted.story.name)) for planted in list_untold())


def list_untold() -> Iterator[Planted]:
    """Every program, without the output of its run."""
    for toolchain, families in (("tvm", tvm), ("iree", iree)):
        yield from _tell_over_patterns(toolchain, families.faults())
        for program in families.by_chance():
            yield tell_flaky(program, toolchain)
        yield from families.on_releases()


def _tell_over_patterns(toolchain: str, programs: Iterable[Program]) -> Iterator[Planted]:
    choices = list_patterns(toolchain)
    for program, number in zip(programs, cycle(ORDER), strict=False):
        yield tell(program, choices[number])


def _tell(planted: Planted, telling: Telling | None) -> Planted:
    story = planted.story
    if not planted.told_by:
        return planted
    if telling is None or telling.text != digest_text(planted):
        raise ValueError(f"{story.name}: run `python -m bench.proving.planted.check --record --only {story.name}`")
    return replace(
        planted,
        story=replace(story, failure=telling.failure, wrong=telling.wrong, right=telling.right or story.right),
    )


def digest_text(planted: Planted) -> str:
    """Name what is run, and on what."""
    story = planted.story
    return hashlib.sha256(json.dumps([dict(story.files), story.steps, planted.told_by]).encode()).hexdigest()[:16]


def read_tellings() -> Mapping[str, Telling]:
    lines = TELLINGS.read_bytes().splitlines() if TELLINGS.exists() else []
    return {telling.name: telling for telling in (msgspec.json.decode(line, type=Telling) for line in lines)}


def write_tellings(tellings: Iterable[Telling]) -> None:
    ordered = sorted(tellings, key=lambda telling: telling.name)
    TELLINGS.write_bytes(b"".join(msgspec.json.encode(telling) + b"\n" for telling in ordered))
