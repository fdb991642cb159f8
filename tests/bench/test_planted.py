"""The planted programs are many, differ from each other, and are told so that their testcase can be found."""

from __future__ import annotations

import json
import re
import runpy
import zipfile
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from bench.proving.planted import Planted, load_planted, planted_cases
from bench.proving.planted.broken_wheels import CODE, list_files, make_wheel, rewrite_metadata
from bench.proving.planted.builds import BROKEN, CREATED
from bench.proving.planted.check import fails
from bench.proving.planted.running import Run
from bench.proving.telling import plain, render
from bot.extract import Repro, extract
from bot.forge.source import parse_issue
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import FindingKind, Outcome

PLANTED = load_planted()
FAULTY = ("regression", "fixed", "confirmed", "flaky")
MISTAKEN = ("invalid-repro", "not-reproduced", "untestable", "incomplete")


def test_there_are_enough_programs_of_both_compilers() -> None:
    """No text occurs twice, and no name."""
    counted = Counter(planted.story.toolchain for planted in PLANTED)
    assert len(PLANTED) >= 300
    assert counted["tvm"] >= 150
    assert counted["iree"] >= 120
    assert len({planted.story.name for planted in PLANTED}) == len(PLANTED)
    texts = {json.dumps([dict(planted.story.files), planted.story.steps]) for planted in PLANTED}
    assert len(texts) == len(PLANTED)


def test_no_family_is_most_of_the_set() -> None:
    """A rule that fits one family cannot move the result much."""
    families = Counter(planted.family for planted in PLANTED)
    assert len(families) >= 80
    assert max(families.values()) <= len(PLANTED) // 20


def test_about_as_many_reports_are_mistaken_as_right() -> None:
    """An answer that always blames the compiler, or never does, is wrong half of the time."""
    verdicts = Counter(planted.verdict for planted in PLANTED)
    assert set(verdicts) == {*FAULTY, *MISTAKEN}
    mistaken = sum(verdicts[verdict] for verdict in MISTAKEN)
    assert 0.35 <= mistaken / len(PLANTED) <= 0.65


def test_builds_and_outcomes_and_findings_exist() -> None:
    """A misspelled build, outcome or kind of finding would never be met."""
    known = {release.version for listing in load_catalogue().listings.values() for release in listing.releases}
    known |= {broken.version for broken in BROKEN}
    kinds = {str(kind) for kind in FindingKind}
    for planted in PLANTED:
        assert {*planted.versions, planted.story.version} <= known
        assert set(planted.outcomes.values()) <= {*map(str, Outcome), "flaky"}
        assert tuple(planted.outcomes) == planted.versions
        assert {*planted.findings.must, *planted.findings.may, *planted.findings.never} <= kinds
        assert not {*planted.findings.must, *planted.findings.may} & set(planted.findings.never)
        assert planted.verdict not in planted.never
        assert planted.story.version in CREATED


def test_every_verdict_follows_from_its_outcomes() -> None:
    """The newest build decides between regression, confirmed and fixed."""
    for planted in PLANTED:
        shown = list(planted.outcomes.values())
        match planted.verdict:
            case "regression":
                assert shown[-1] == "match"
                assert "pass" in shown
            case "fixed":
                assert shown[-1] == "pass"
                assert "match" in shown
            case "confirmed" | "invalid-repro":
                assert set(shown) == {"match"}
            case "not-reproduced":
                assert set(shown) == {"pass"}
            case "flaky":
                assert "flaky" in shown


def find_testcase(planted: Planted) -> tuple[dict[str, str], tuple[tuple[str, ...], ...], bool]:
    """Return the files and steps that are read in the plain telling, and whether the build is."""
    story = planted.story
    assert story.failure or story.wrong or story.claim == "hang", story.name
    issue = parse_issue(render(story, plain()).encode(), source="planted.md", today=date(2026, 11, 22))
    found = extract(issue)
    assert isinstance(found, Repro), story.name
    files = {name: text.strip() for name, text in found.testcase.files.items()}
    return files, found.testcase.steps, story.version in found.claim.versions


def check_tellings(some: Sequence[Planted]) -> None:
    told = {
        planted.story.name: (
            {name: text.strip() for name, text in planted.story.files.items()},
            planted.story.steps,
            True,
        )
        for planted in some
    }
    assert {planted.story.name: find_testcase(planted) for planted in some} == told


def test_the_testcase_is_found_in_the_plain_telling() -> None:
    """With the files and steps of the story, and the build that it names: one program in eight."""
    check_tellings(PLANTED[::8])


@pytest.mark.thorough
def test_the_testcase_is_found_in_each_plain_telling() -> None:
    """As above, for the other programs."""
    check_tellings([planted for number, planted in enumerate(PLANTED) if number % 8])


def test_a_case_has_what_an_evaluation_needs() -> None:
    """A harmful verdict is never accepted; every build to run has its outcome."""
    cases = planted_cases()
    assert [case.story.name for case in cases] == [planted.story.name for planted in PLANTED]
    for case, planted in zip(cases, PLANTED, strict=True):
        assert case.label.verdict == planted.verdict
        assert not {case.label.verdict, *case.label.accepted} & set(case.label.never)
        assert case.versions == tuple(case.outcomes)


def test_every_fault_of_the_iree_wheels_has_a_program() -> None:
    """A fault without a program would be dead code, and a misspelled pattern a program without a fault."""
    driver = runpy.run_path(str(CODE / "iree_driver.py"), run_name="driver")
    texts = [text for planted in PLANTED for name, text in planted.story.files.items() if name.endswith(".mlir")]
    rewrites = [*driver["VALUES"], *(rule[1:] for rule in driver["ON_ONE_TARGET"]), *driver["BY_CHANCE"]]
    for where, operation, _ in rewrites:
        assert any(re.search(where, text) and re.search(operation, text) for text in texts), (where, operation)
    failures = [*driver["CRASHES"], *driver["REFUSALS"]]
    for pattern in [*(rule[0] for rule in failures), *driver["ENDLESS"], *driver["EMPTY"]]:
        assert any(re.search(pattern, text) for text in texts), pattern


def test_no_report_names_its_mechanism() -> None:
    """Nothing in a report says that a fault was planted, or shows a path of the machine that recorded it."""
    for planted in PLANTED:
        told = render(planted.story, plain()).lower()
        assert not any(word in told for word in ("planted", "broken build", "reprobot", ".cache/", "/tmp/"))


def test_an_installed_package_becomes_a_wheel_of_another_version(tmp_path: Path) -> None:
    """With the version and the pins of its base, a record of its own, and one module more."""
    site = tmp_path / "site"
    info = site / "apache_tvm-0.27.0.post1.dist-info"
    info.mkdir(parents=True)
    (site / "apache_tvm_ffi-0.1.14.dist-info").mkdir()
    (site / "tvm").mkdir()
    (site / "tvm/__init__.py").write_text("x = 1\n")
    (site / "tvm/_version.py").write_text("version = '0.27.0.post1'\n")
    text = "Name: apache-tvm\nVersion: 0.27.0.post1\nRequires-Dist: apache-tvm-ffi>=0.1\n"
    (info / "METADATA").write_text(text)
    (info / "WHEEL").write_text("Tag: py3-none-any\n")
    (info / "RECORD").write_text(
        "tvm/__init__.py,,\ntvm/_version.py,,\nbin/tool,,\ntvm/__pycache__/a.pyc,,\n"
        + "".join(f"{info.name}/{name},,\n" for name in ("METADATA", "WHEEL", "INSTALLER", "RECORD"))
    )
    broken = next(one for one in BROKEN if one.version == "0.27.1.dev1")
    assert "bin/tool" not in list(list_files(info))
    assert "Requires-Dist: apache-tvm-ffi==0.1.14" in rewrite_metadata(text, site, broken.version)
    wheel = make_wheel(site, "apache-tvm", broken, tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert wheel.name == "apache_tvm-0.27.1.dev1-py3-none-any.whl"
        assert "tvm/relax/shape_rules.py" in names
        assert "shape_rules" in archive.read("tvm/__init__.py").decode()
        assert "0.27.1.dev1" in archive.read("tvm/_version.py").decode()
        record = archive.read("apache_tvm-0.27.1.dev1.dist-info/RECORD").decode()
        assert {line.split(",")[0] for line in record.splitlines()} == set(names)


def test_the_check_tells_a_reported_failure_from_any_other() -> None:
    """By the ending and the words; a clean run that prints the right lines is none."""
    by_ending = {planted.ending: planted for planted in PLANTED}
    clean = Run(ended="exit 0", stdout="", stderr="", seconds=0.0)
    died = Run(ended="signal 11", stdout="", stderr="", seconds=0.0)
    other = Run(ended="exit 1", stdout="", stderr="SyntaxError: invalid syntax", seconds=0.0)
    assert not any(fails(planted, clean) for planted in by_ending.values() if planted.ending != "printed")
    assert not any(fails(planted, other) for planted in by_ending.values())
    signals = [planted for planted in PLANTED if planted.shows == "signal 11"]
    assert all(fails(planted, died) for planted in signals)
    printed = next(planted for planted in PLANTED if planted.ending == "printed" and planted.story.right)
    right = Run(ended="exit 0", stdout=printed.story.right, stderr="", seconds=0.0)
    wrong = Run(ended="exit 0", stdout=printed.story.wrong, stderr="", seconds=0.0)
    assert not fails(printed, right)
    assert fails(printed, wrong)
