"""Issue to verdict on real compilers in a real sandbox, as a user would start it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.sandbox.select import remove_leftovers
from tests.flow.test_command_line import EXAMPLES, ROOT, reprobot
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]


def reproduce(name: str, tmp_path: Path, *options: str) -> dict[str, Any]:
    out = tmp_path / "out.json"
    done = reprobot("reproduce", str(EXAMPLES / f"{name}.md"), "--json", str(out), *options)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {seen["version"]: seen["outcome"] for seen in document["observations"] if seen["variant"] == "original"}


def test_a_fix_in_tvm_is_found_between_its_releases(tmp_path: Path) -> None:
    """Checked by hand on both wheels: 0.25.0.post1 merges the layers, 0.26.0 does not."""
    document = reproduce("two-dense-layers-share-one-weight", tmp_path)
    assert document["verdict"]["kind"] == "fixed"
    assert document["bisection"]["last_bad"] == "0.25.0.post1"
    assert document["bisection"]["first_good"] == "0.26.0"
    assert "v0.25.0.post1...v0.26.0" in document["comment"]


def test_a_regression_in_iree_is_found_between_its_releases(tmp_path: Path) -> None:
    """Only the printed numbers differ, exit code 0 throughout: 3.10.0 is right, 3.11.0 is not."""
    document = reproduce("f16-row-sums-stuck-at-256", tmp_path)
    assert document["verdict"]["kind"] == "regression"
    assert document["bisection"]["last_good"] == "3.10.0"
    assert document["bisection"]["first_bad"] == "3.11.0"
    assert document["bisection"]["commits"]["from"].startswith("ae97779f59a8")


def test_a_repro_that_reads_outside_its_data_is_told_so(tmp_path: Path) -> None:
    """The finding names the axis and the range, as a maintainer would."""
    document = reproduce("take-columns-reordered", tmp_path, "--versions", "0.25.0,0.27.0")
    assert document["verdict"]["kind"] == "invalid-repro"
    finding = next(f for f in document["findings"] if f["kind"] == "out-of-bounds-access")
    assert "15" in finding["summary"]


def test_a_snippet_of_another_time_is_no_bug_of_the_newest_release(tmp_path: Path) -> None:
    """Its API has moved: never a different failure."""
    document = reproduce("unused-outputs-replaced-by-nan", tmp_path, "--versions", "0.25.0,0.27.0", "--no-bisect")
    assert set(outcomes(document).values()) == {"incompatible"}
    assert document["verdict"]["kind"] in {"untestable", "inconclusive"}


def test_a_bug_older_than_every_release_is_seen_on_a_fork_and_gone_since(tmp_path: Path) -> None:
    """It lived until September 2024: on the fork of that year as reported, on the next fork and ever since not."""
    document = reproduce("device-hints-left-in-sequential", tmp_path)
    assert document["verdict"]["kind"] == "fixed"
    assert outcomes(document)["0.17.dev0"] == "match"
    answers = {(seen["version"], seen["answer"]) for seen in document["observations"]}
    assert ("0.22.0", "good") in answers
    assert ("0.27.0.post1", "good") in answers
    assert "bitblas 0.0.1.dev13" in document["comment"]
    assert "tilelang 0.1.7" in document["comment"]
    assert "fork 0.17.dev0 fails as reported; fork 0.22.0" in document["comment"]


def test_without_network_and_store_one_sentence_is_said(tmp_path: Path) -> None:
    """Exit code 75: worth a retry."""
    done = reprobot(
        "reproduce", str(EXAMPLES / "equal-on-bool-tensors.md"), "--sandbox", "bubblewrap",
        REPROBOT_CACHE=str(tmp_path / "cache"), UV_OFFLINE="1", HTTPS_PROXY="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9",
        PIP_INDEX_URL="http://127.0.0.1:9/simple", UV_DEFAULT_INDEX="http://127.0.0.1:9/simple",
    )  # fmt: skip
    assert done.returncode == 75, done.stderr
    assert "reprobot: " in done.stderr.splitlines()[-1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 40 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_one_sentence_and_leaves_no_half_built_environment(small_disk: Path) -> None:
    """Exit code 75, and what is in the store is whole."""
    done = reprobot(
        "reproduce", str(EXAMPLES / "equal-on-bool-tensors.md"), "--versions", "0.27.0", "--sandbox", "bubblewrap",
        REPROBOT_CACHE=str(small_disk),
    )  # fmt: skip
    assert done.returncode == 75, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("reprobot: ")
    assert "space" in last
    assert not any((small_disk / "environments").glob("*/*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """No process, container, control group or directory; and the store goes on working."""
    issue = tmp_path / "hang.md"
    issue.write_text(
        "# It hangs\n\napache-tvm 0.27.0\n\n```python\nimport time\nimport tvm\n\nprint(tvm.__version__)\n"
        "while True:\n    time.sleep(1)\n```\n"
    )
    with start_reproduction(str(issue), "--timeout", "60") as process:
        assert process.stderr is not None
        assert any(b"matrix" in line for line in process.stderr), "no run began"
        time.sleep(4)  # the testcase hangs by then, or soon will
        end_without_traces(process, number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_before_the_first_run_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """While the issue is read, a thread tries the engines: no engine has passed its self-test for an empty store."""
    with start_reproduction("-", REPROBOT_CACHE=str(tmp_path / "store")) as process:
        assert wait_until(lambda: _is_caught(process.pid, number), 20), "the signal would end the process at once"
        time.sleep(1)
        end_without_traces(process, number)


@contextlib.contextmanager
def start_reproduction(*arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command line as a terminal does. A shell starts a job in the background with SIGINT ignored."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bot", "reproduce", *arguments],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, **variables}, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    with process:
        yield process
        process.kill()


def end_without_traces(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert b"nothing was left running" in stderr
    assert _members(process.pid) == []
    assert list(remove_leftovers()) == []


def _is_caught(process: int, number: signal.Signals) -> bool:
    """True if a process handles a signal itself: ``SigCgt`` of ``/proc/PID/status`` has one bit for each signal."""
    (mask,) = re.findall(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return bool(int(mask, 16) & 1 << number - 1)


def _members(session: int) -> list[str]:
    """Command lines of processes that are still in a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((stat.parent / "cmdline").read_text())
        except (OSError, ValueError):
            continue
    return found


def minimized(name: str, tmp_path: Path, *options: str) -> dict[str, Any]:
    out = tmp_path / "out.json"
    done = reprobot("minimize", str(EXAMPLES / f"{name}.md"), "--json", str(out), *options)
    assert done.returncode == 0, done.stderr
    smaller: dict[str, Any] = json.loads(out.read_text())["smaller"]
    assert smaller["confirmed"] == 2
    return smaller


def test_a_testcase_of_iree_is_cut_down(tmp_path: Path) -> None:
    """The crash needs one operation and no flag: found by hand on 3.11.0 too."""
    smaller = minimized("dense-resource-constant-crash", tmp_path, "--version", "3.10.0")
    (text,) = smaller["files"].values()
    assert "dense_resource" in text
    assert smaller["lines"]["after"] <= 6 < smaller["lines"]["before"]
    assert smaller["steps"] == [["iree-compile", "bn_state.mlir"]]
    assert smaller["signature"]["type"] == "SIGSEGV"


def test_a_testcase_of_tvm_is_cut_down(tmp_path: Path) -> None:
    """Only what makes the verifier complain is left; the printing before it is gone."""
    smaller = minimized("te-function-not-well-formed", tmp_path, "--version", "0.27.0", "--probes", "50")
    (text,) = smaller["files"].values()
    assert "print(func)" not in text
    assert "verify_well_formed(func)" in text
    assert "SBlockRealize" in smaller["signature"]["message"]
