"""Random kills leave nothing behind: short runs of ``bench.robustness``, and what its checks notice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bench.robustness import remains
from bench.robustness.__main__ import Record, read_records, summarise
from bench.robustness.kills import run_trials, usable
from bench.robustness.verb_kills import CASES, ROOT, VERSIONS, Case, find_wrong_answers, is_whole
from runners.sandbox import owner

TRIALS = 12
"""`python -m bench.robustness` makes 500."""
SEED = 20261121
MOST_ROUNDS = 3


@pytest.mark.sandbox
def test_random_kills_of_host_engine_and_guest_leave_nothing_behind() -> None:
    """No process, control group, mount, container or temporary file is left after a second, or after
    `remove_leftovers`."""
    if not usable():
        pytest.skip("no sandbox works here")
    outcomes, hit = [], set()
    for seed in range(SEED, SEED + MOST_ROUNDS):  # on a busy machine, a victim may end before its kill
        outcomes += run_trials(TRIALS, seed)
        hit = {one.trial.victim for one in outcomes if one.hit}
        if hit == {"host", "engine", "guest"}:
            break
    assert [one for one in outcomes if one.left] == []
    assert hit == {"host", "engine", "guest"}


@pytest.mark.sandbox
def test_random_kills_of_the_commands_change_no_answer() -> None:
    """``watch``, ``reproduce``, ``sweep`` and probes, in namespaces of their own."""
    if os.geteuid() != 0 or not usable():
        pytest.skip("needs namespaces of its own and a sandbox: run as root")
    where = subprocess.run(
        [sys.executable, "-Ic", "import runners; print(runners.__file__)"], capture_output=True, text=True, cwd="/"
    ).stdout
    if not where.startswith(f"{ROOT}/"):
        pytest.skip(f"the interpreter has another Reprobot installed: {where.strip()}")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are too long for the path of a socket
        words = [sys.executable, "-m", "bench.robustness", "--kills", "6", "--seed", str(SEED), "--out", folder]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sum(len(one.hits) for one in read_records(Path(folder, "records.jsonl"))) >= 6


@pytest.mark.sandbox
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.verdict)
def test_a_case_has_its_verdict_without_a_kill(case: Case, tmp_path: Path) -> None:
    """Chance chooses the case of a trial, so that a short run may never play a case whose verdict changed."""
    if not usable():
        pytest.skip("no sandbox works here")
    issue, answer = tmp_path / "issue.txt", tmp_path / "answer.json"
    issue.write_text(f"# {case.title}\n\n{case.body}")
    words = ["reproduce", str(issue), "--toolchain", "python", "--versions", VERSIONS, "--json", str(answer)]
    subprocess.run([sys.executable, "-m", "bot", *words], cwd=ROOT, check=True, capture_output=True)
    document = json.loads(answer.read_bytes())
    assert document["verdict"]["kind"] == case.verdict
    assert not list(find_wrong_answers(document, case))


def test_leftovers_of_this_namespace_alone_are_found() -> None:
    """A name with another boot or PID namespace is another run's."""
    name = owner.make_name()
    elsewhere = name.replace(remains.SPACE, "00000000.1")
    pid = int(name.split("-")[1])
    for one in (name, elsewhere):
        Path(tempfile.gettempdir(), one).mkdir()
    try:
        for is_mine in (remains.is_of_space, remains.is_of_maker(pid)):
            found = remains.find_named(is_mine, with_containers=False)
            assert str(Path(tempfile.gettempdir(), name)) in found
            assert not any(elsewhere in one for one in found)
        assert not any(name in one for one in remains.find_named(remains.is_of_maker(1), with_containers=False))
    finally:
        for one in (name, elsewhere):
            Path(tempfile.gettempdir(), one).rmdir()


@pytest.mark.parametrize(
    ("name", "whole"), [("a.json", '{"a": 1}\n'), ("a.html", "<html>\n</html>\n"), ("a.md", "text\n<!-- end -->\n")]
)
def test_a_file_that_was_cut_short_is_noticed(tmp_path: Path, name: str, whole: str) -> None:
    path = tmp_path / name
    for length in range(len(whole.rstrip())):
        path.write_text(whole[:length])
        assert not is_whole(path)
    path.write_text(whole)
    assert is_whole(path)


def test_a_wrong_answer_is_noticed_and_no_answer_is_none() -> None:
    """Runs of changed testcases do not count."""
    case = CASES[0]

    def see(version: str, answer: str, variant: str = "original") -> dict[str, Any]:
        return {"observations": [{"version": version, "answer": answer, "variant": variant}]}

    assert list(find_wrong_answers(see("3.11", "good"), case))
    assert list(find_wrong_answers(see("3.12", "bad"), case))
    for right in (see("3.11", "bad"), see("3.12", "good"), see("3.11", "skip"), see("3.11", "good", "ported")):
        assert not list(find_wrong_answers(right, case))


def test_a_stopped_campaign_keeps_its_trials_and_shows_its_faults(tmp_path: Path) -> None:
    """A line that was cut short is played again."""
    file = tmp_path / "records.jsonl"
    line = (
        '{"subject": "probe", "engine": "podman", "seed": 7, '
        '"hits": ["host: x"], "faults": ["left: y"], "seconds": 1}'
    )
    file.write_text(f"{line}\n{line[:40]}")
    (record,) = read_records(file)
    assert record == Record(
        subject="probe", engine="podman", seed=7, hits=("host: x",), faults=("left: y",), seconds=1
    )
    assert "| probe | podman | 1 | 1 | 1 | 1 |" in summarise([record])
    assert "seed 7, probe: left: y" in summarise([record])
