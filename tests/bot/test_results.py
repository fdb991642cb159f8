"""The door: what of a result file is believed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.results import MAX_RESULT_BYTES, Results, check_result, most_observations, read_results
from runners.protocol import (
    Answer,
    CellResult,
    Claim,
    Exited,
    JobCell,
    Observation,
    Outcome,
    Plan,
    Smaller,
    Testcase,
    TestcaseKind,
    Variant,
    digest_of,
)

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
)
SMALLER = Smaller(
    testcase=CASE,
    version="0.27.0",
    device="llvm",
    before=9,
    after=1,
    probes=20,
    seconds=3.0,
    confirmed=3,
    stopped="minimal",
)
GOOD = CellResult(cell="any", plan_sha256=SHA, observations=(SEEN,))


def write(folder: Path, result: CellResult | bytes, name: str = "any.json") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(result if isinstance(result, bytes) else msgspec.json.encode(result))


def read(folder: Path) -> Results:
    return read_results(folder, (CELL,), SHA)


@pytest.mark.parametrize("name", ["any.json", "cell-any/any.json"])
def test_a_result_is_read_as_written_and_as_an_artifact(name: str, tmp_path: Path) -> None:
    write(tmp_path, GOOD, name)
    assert read(tmp_path).observations == (SEEN,)
    assert read(tmp_path).problems == ()


def test_files_that_were_not_planned_are_not_looked_at(tmp_path: Path) -> None:
    """Not even opened: a pipe with a planned cell's name in another place would wait for ever."""
    write(tmp_path, GOOD)
    write(tmp_path, b"x", "other.json")
    write(tmp_path, b"x", "cell-other/other.json")
    os.mkfifo(tmp_path / "pipe.json")
    assert read(tmp_path).observations == (SEEN,)


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


def huge(folder: Path) -> None:
    with (folder / "any.json").open("wb") as file:
        file.truncate(MAX_RESULT_BYTES + 1)


def nothing(folder: Path) -> None:
    pass


@pytest.mark.parametrize("make", [symlink, symlinked_folder, pipe, directory, huge, nothing])
def test_only_a_plain_file_of_bearable_size_is_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    """Whatever lies there is one problem, named with its cell, and never waited for."""
    make(tmp_path)
    results = read(tmp_path)
    assert results.observations == ()
    assert [one.cell for one in results.problems] == ["any"]


def with_(**changes: Any) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(GOOD, **changes))


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
        (with_(schema=2), "schema number"),
        (with_(cell="on-lab"), "another cell"),
        (with_(plan_sha256="cd" * 32), "another plan"),
        (with_(problem="no space left"), "no space left"),
        (saw(version="0.28.0"), "release"),
        (saw(toolchain="iree"), "release"),
        (saw(device="$(id)"), "device"),
        (saw(answer=Answer.BAD), "answer"),
        (saw(outcome=Outcome.INFRA), "answer"),
        (saw(attempt=0), "number"),
        (saw(seconds=-1.0), "number"),
        (saw(peak_bytes=-1), "number"),
        (with_(smaller=SMALLER), "smaller testcase"),
        (with_(observations=(SEEN,) * (most_observations(CELL) + 1)), "budget"),
    ],
)
def test_what_is_not_exactly_a_result_of_this_cell_is_refused(data: bytes, why: str, tmp_path: Path) -> None:
    """A job that was taken over can only speak about its own cell, and only in our words."""
    write(tmp_path, data)
    results = read(tmp_path)
    assert results.observations == ()
    assert why in results.problems[0].why


@pytest.mark.parametrize(
    "change", [{}, {"version": "0.28.0"}, {"device": "cuda"}, {"control": "x"}, {"after": -1}, {"seconds": -1.0}]
)
def test_a_smaller_testcase_is_believed_where_one_was_asked_for(change: dict[str, Any]) -> None:
    """And only about a release and the device of the plan."""
    cell = msgspec.structs.replace(CELL, minimize=True)
    smaller = msgspec.structs.replace(SMALLER, **change)
    checked = check_result(with_(smaller=smaller), cell, SHA)
    assert isinstance(checked, str) is bool(change)


@given(st.binary(max_size=300) | st.recursive(st.none() | st.text() | st.floats(), st.lists).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
def test_any_bytes_are_a_result_or_a_reason(data: bytes) -> None:
    """No exception gets out of the door."""
    assert isinstance(check_result(data, CELL, SHA), str | CellResult)
