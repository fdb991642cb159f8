"""The releases of a plan: the reported one, the ends, and those of the options."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import msgspec
import pytest

from bot.extract.types import Repro
from bot.plan import HANG_WALL_S, RunOptions, make_plan
from runners.core.errors import UserError
from runners.core.packages.catalogue import Catalogue, Listing, Release
from runners.core.packages.requirements import load_layers
from runners.core.protocol import Claim, ClaimKind, Plan, Testcase, TestcaseKind


def release(version: str) -> Release:
    return Release(
        toolchain="tvm", version=version, released=date(2026, 1, 1), distributions=(f"apache-tvm=={version}",),
        pythons=("3.11",), prerelease="rc" in version,
    )  # fmt: skip


VERSIONS = ("1.0rc0", *(f"1.{minor}" for minor in range(12)))
CATALOGUE = Catalogue(
    {
        "tvm": Listing(
            toolchain="tvm", repository="a/b", taken=date(2026, 1, 2), releases=tuple(map(release, VERSIONS))
        )
    }
)


def repro(*versions: str, kind: ClaimKind = ClaimKind.ERROR) -> Repro:
    return Repro(
        testcase=Testcase(
            kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "pass"}, steps=(("python", "a.py"),)
        ),
        claim=Claim(kind=kind, versions=versions),
        spans=(),
        device="llvm",
    )


def plan(*versions: str, kind: ClaimKind = ClaimKind.ERROR, **options: object) -> Plan:
    return make_plan(repro(*versions, kind=kind), CATALOGUE, RunOptions(**options)).plan  # type: ignore[arg-type]  # keywords of RunOptions


def test_the_reported_newest_and_oldest_releases_come_first() -> None:
    """The others are there for the search."""
    made = plan("1.4")
    assert made.first == ("1.4", "1.11", "1.0")
    assert made.order == VERSIONS[1:]
    assert made.reported == "1.4"


def test_a_report_about_a_fork_is_run_on_the_later_forks_too() -> None:
    """Years lie between a fork and the first release. A report about a release runs on no fork."""
    forks = tuple(replace(release(v), source="bundle", fork="abc") for v in ("0.1.dev0", "0.2.dev0", "0.3"))
    listing = CATALOGUE.get_listing("tvm")
    catalogue = Catalogue({"tvm": replace(listing, releases=(*forks, *listing.releases))})
    assert make_plan(repro("0.2.dev0"), catalogue, RunOptions()).plan.order == ("0.2.dev0", "0.3", *VERSIONS[1:])
    assert make_plan(repro("1.4"), catalogue, RunOptions()).plan.order == VERSIONS[1:]
    chosen = make_plan(repro("0.2.dev0"), catalogue, RunOptions(versions="0.2.dev0,1.4")).plan.order
    assert chosen == ("0.2.dev0", "1.4")


def test_a_version_between_two_forks_is_enclosed_by_builds() -> None:
    """The fork before the named version runs, and the later ones. It stands for no version."""
    forks = tuple(replace(release(v), source="bundle", fork="abc") for v in ("0.1.dev0", "0.4.dev0", "0.6"))
    listing = CATALOGUE.get_listing("tvm")
    catalogue = Catalogue({"tvm": replace(listing, releases=(*forks, *listing.releases))})
    for named, ran in (("0.2.5", forks), ("0.5.dev0", forks[1:]), ("0.7", forks[2:]), ("0.0.9", ())):
        made = make_plan(repro(named), catalogue, RunOptions()).plan
        assert made.order == (*(fork.version for fork in ran), *VERSIONS[1:]), named
        assert made.reported is None


def test_a_young_report_of_a_version_older_than_all_forks_is_run_on_all_of_them() -> None:
    """Later builds lack more of that version's API. The day alone would choose a build of today."""
    forks = tuple(replace(release(v), source="bundle", fork="abc") for v in ("0.4.dev0", "0.6"))
    listing = CATALOGUE.get_listing("tvm")
    catalogue = Catalogue({"tvm": replace(listing, releases=(*forks, *listing.releases))})
    young = replace(repro("0.1.5"), day=date(2026, 6, 1))
    assert make_plan(young, catalogue, RunOptions()).plan.order == ("0.4.dev0", "0.6", *VERSIONS[1:])


def test_a_report_from_before_the_first_release_runs_on_the_fork_before_it() -> None:
    """Where its day chooses a release, which may hold the fix already. A named release needs no fork."""
    older = replace(release("0.6"), source="bundle", fork="abc", released=date(2025, 6, 1))
    listing = CATALOGUE.get_listing("tvm")
    catalogue = Catalogue({"tvm": replace(listing, releases=(older, *listing.releases))})
    for day, named, runs in (
        (date(2025, 12, 20), None, True),
        (date(2025, 12, 20), "1.2", False),
        (date(2026, 3, 1), None, False),
        (date(2025, 5, 1), None, True),
    ):
        asked = replace(repro(named) if named else repro(), day=day)
        assert ("0.6" in make_plan(asked, catalogue, RunOptions()).plan.order) is runs, (day, named)


def test_a_report_between_two_forks_runs_on_both() -> None:
    """The younger fork, which represents the day, may have the fix already. An older one needs no company."""
    days = {"0.5": date(2024, 7, 1), "0.6": date(2025, 12, 1)}
    forks = [replace(release(v), source="bundle", fork="abc", released=day) for v, day in days.items()]
    listing = CATALOGUE.get_listing("tvm")
    catalogue = Catalogue({"tvm": replace(listing, releases=(*forks, *listing.releases))})
    between = make_plan(replace(repro(), day=date(2025, 10, 1)), catalogue, RunOptions()).plan
    assert between.order[:2] == ("0.5", "0.6")
    assert between.first[0] == "0.6"
    assert make_plan(replace(repro(), day=date(2025, 12, 2)), catalogue, RunOptions()).plan.order[0] == "0.6"


def test_a_pre_release_is_run_only_when_the_report_is_about_it() -> None:
    """It keeps its position in the order."""
    assert "1.0rc0" not in plan("1.4").order
    assert plan("1.0rc0").order[0] == "1.0rc0"


def test_an_unavailable_version_is_noted() -> None:
    """The note says how the version was understood."""
    made = make_plan(repro("0.3"), CATALOGUE, RunOptions())
    assert made.plan.reported is None
    assert "older than every release" in made.notes[0]


def test_a_version_without_a_build_brings_the_build_of_the_reports_day() -> None:
    """It runs first, and stands for no version: a clean run there says nothing about the named one."""
    fork = replace(release("0.1.dev0"), source="bundle", fork="abc", released=date(2019, 1, 1))
    listing = CATALOGUE.get_listing("tvm")
    catalogue = Catalogue({"tvm": replace(listing, releases=(fork, *listing.releases))})
    made = make_plan(replace(repro("0.0.7"), day=date(2019, 2, 1)), catalogue, RunOptions())
    assert made.plan.reported is None
    assert made.plan.first[0] == "0.1.dev0"
    assert "by the day of the report" in made.notes[-1]


def test_chosen_versions_are_run() -> None:
    """All of a short list; a long range is searched, unless searching is switched off."""
    assert set(plan("1.4", versions="1.1,1.2,1.3").first) == {"1.1", "1.2", "1.3"}
    assert len(plan("1.4", versions="1.0..1.11").first) == 3
    assert len(plan("1.4", versions="all", bisect=False).first) == 12


@pytest.mark.parametrize("spec", ["2.0", "1.5..1.2", ">=banana", ","])
def test_versions_that_do_not_exist_are_refused(spec: str) -> None:
    """The message names the nearest that do."""
    with pytest.raises(UserError):
        plan("1.4", versions=spec)


def test_an_unknown_device_is_refused() -> None:
    """The message lists the known devices."""
    with pytest.raises(UserError, match="choose among"):
        plan("1.4", devices=("tpu",))


def test_a_hang_gets_less_time() -> None:
    """Each bad run costs all of it. A chosen limit is kept."""
    assert plan(kind=ClaimKind.HANG).limits.wall_s == HANG_WALL_S
    assert plan(kind=ClaimKind.HANG, timeout_s=7.0).limits.wall_s == 7.0
    assert plan().limits.wall_s > HANG_WALL_S


def _requiring(*requirements: str, day: date | None) -> Repro:
    made = repro("1.4")
    return replace(made, testcase=msgspec.structs.replace(made.testcase, requirements=requirements), day=day)


def test_every_release_gets_the_pytorch_of_the_reports_day() -> None:
    """The plan carries the day, the testcase stays as approved, and a note names the version."""
    day = load_layers()["torch"][0].published
    asked = _requiring("numpy", "torch", day=day)
    made = make_plan(asked, CATALOGUE, RunOptions())
    assert made.plan.day == day
    assert made.plan.testcase == asked.testcase
    assert f"torch=={load_layers()['torch'][0].version}, chosen by the day of the report" in made.notes[-1]


def test_a_version_named_in_the_testcase_needs_no_note() -> None:
    """Only our own choices are noted."""
    made = make_plan(_requiring("torch==2.6.0", "onnx", day=date(2026, 1, 1)), CATALOGUE, RunOptions())
    assert not any("torch" in note for note in made.notes)


def test_after_an_earlier_answer_its_newest_release_is_run_before_any_search() -> None:
    """That release tells whether a newer release changes anything. Without a newer release, nothing is added."""
    newest, before = VERSIONS[-1], VERSIONS[-2]
    plan = make_plan(repro(), CATALOGUE, RunOptions(), answered={before: "bad", VERSIONS[0]: "bad"}).plan
    assert plan.answered == before
    assert before in plan.first
    assert make_plan(repro(), CATALOGUE, RunOptions(), answered={newest: "bad", before: "bad"}).plan.answered is None


@pytest.mark.parametrize(
    ("actual", "first"), [("", ("1.4", "1.1", "1.11", "1.0")), ("sum 3", ("1.4", "1.11", "1.0"))]
)
def test_a_release_that_the_report_calls_good_runs_first_where_only_its_output_can_tell(
    actual: str, first: tuple[str, ...]
) -> None:
    told = repro("1.4")
    claim = Claim(kind=ClaimKind.WRONG_RESULT, versions=("1.4",), good=("v1.1", "7.0"), actual=actual)
    plan = make_plan(replace(told, claim=claim), CATALOGUE, RunOptions()).plan
    assert plan.first == first
    assert plan.good == (() if actual else ("1.1",))
