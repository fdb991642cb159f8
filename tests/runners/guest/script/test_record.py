"""The record of a script's run, with a real compiler and a real numpy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runners.probe.guest_records import StepRecord, build_record
from runners.toolchains import tvm
from tests.runners.guest.tvm.guilty import COMPILE, MODEL, RUN
from tests.runners.guest.tvm.sweep import LAUNCHER, ROOT, environment, variables

pytestmark = pytest.mark.compilers

VERSION = "0.27.0"
FUNCTIONS = ",".join(tvm.GUEST.compile_functions)

AFTER_IMPORTS = """\
import sys
import tvm, tvm.relax
sys.path.insert(0, sys.argv[1])
from runners.guest.script import run as script
record, stacks = (script.move_descriptor(int(number)) for number in sys.argv[2:4])
script.run_script([sys.argv[5]], record, stacks, None, sys.argv[4].split(","))
"""
"""Run a script as in a zygote's child: the first imports of the script are done, and their functions watched."""


def run_recorded(
    code: str, folder: Path, *, imported: bool = False
) -> tuple[list[dict[str, Any]], subprocess.CompletedProcess[str]]:
    """Run a program by ``script/run.py``. Return the lines of its record and how it ended."""
    script = folder / "repro.py"
    script.write_text(code)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    stacks = os.open(os.devnull, os.O_WRONLY)
    python = str(environment(VERSION).interpreter.executable)
    words = ["-c", AFTER_IMPORTS, str(ROOT), str(writer), str(stacks), FUNCTIONS] if imported else [
        str(LAUNCHER), "script.run", f"{writer},{stacks},", FUNCTIONS
    ]  # fmt: skip
    done = subprocess.run(
        [python, *words, str(script)],
        env=variables(VERSION), pass_fds=(writer, stacks), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    lines = os.read(reader, 48 * 1024).decode().splitlines()
    for descriptor in (reader, writer, stacks):
        os.close(descriptor)
    step = StepRecord(
        argv=("python", "repro.py"), status=1, timed_out=False, seconds=1.0, maxrss_bytes=1, stdout="", stderr="",
        truncated=False, claims="\n".join(lines),
    )  # fmt: skip
    record = build_record(step, tvm.GUEST, script="repro.py")
    entries = [json.loads(line) for line in lines]
    assert len(record.chain) == len(entries[-1].get("failed", []))  # the host reads what the guest writes
    return entries, done


def test_record_has_each_exception_with_its_frames(tmp_path: Path) -> None:
    """The final exception comes first, frames are innermost first, and each cause has its relation."""
    code = (
        "def inner():\n    return {}['a']\n\ndef outer():\n    try:\n        inner()\n"
        "    except KeyError as e:\n        raise ValueError('b') from e\n\nouter()\n"
    )
    lines, done = run_recorded(code, tmp_path)
    ended_it, cause = lines[-1]["failed"]
    assert done.returncode == 1
    assert (ended_it["type"], ended_it["message"], ended_it["because"]) == ("ValueError", "b", "")
    assert [frame[1:] for frame in ended_it["frames"]] == [[8, "outer"], [10, "<module>"]]
    assert (cause["type"], cause["because"]) == ("KeyError", "cause")
    assert [frame[1:] for frame in cause["frames"]] == [[2, "inner"], [6, "outer"]]


def test_warnings_are_recorded_and_printed(tmp_path: Path) -> None:
    """Each warning is recorded once, with its category, and printed as in a plain run."""
    code = "import warnings\nfor _ in range(3):\n    warnings.warn('careful')\nwarnings.warn('old', FutureWarning)\n"
    lines, done = run_recorded(code, tmp_path)
    assert lines[-1]["warnings"] == [["UserWarning", "careful"], ["FutureWarning", "old"]]
    assert (done.stderr.count("careful"), done.returncode) == (2, 0)  # the text, and the line of code


@pytest.mark.parametrize("imported", [True, False])
def test_record_has_compile_and_run_phases(tmp_path: Path, imported: bool) -> None:
    """Phases are in order, in a fork and in a process of its own. The final failure comes after both."""
    lines, _ = run_recorded(MODEL + COMPILE + RUN + "raise ValueError('wrong')\n", tmp_path, imported=imported)
    assert [line.get("phase") for line in lines] == ["compile", "run", None]
    times = [line["at"] for line in lines]
    assert times == sorted(times)
    assert lines[-1]["failed"][0]["type"] == "ValueError"


@pytest.mark.parametrize("imported", [True, False])
def test_crash_in_the_compiler_leaves_the_phase(tmp_path: Path, imported: bool) -> None:
    """After a crash the record ends with the phase of the crash."""
    crash = (
        "@tvm.transform.module_pass(opt_level=0, name='Crash')\ndef crash(module, _context):\n"
        "    import ctypes\n    ctypes.string_at(8)\n"
        "tvm.compile(module, target='llvm', relax_pipeline=crash)\n"
    )
    lines, done = run_recorded(MODEL + crash, tmp_path, imported=imported)
    assert done.returncode < 0
    assert [line.get("phase") for line in lines] == ["compile"]
