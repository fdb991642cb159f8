"""Reading of a script's record, and of stacks at a time-out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from runners.core.protocol import Frame, Phase, Record
from runners.core.toolchain.guest import GuestFacts
from runners.probe.guest_records import StepRecord, build_record, read_records, remove_own_frames
from runners.toolchains import iree, tvm

sys.path.append(str(Path("runners/guest").resolve()))  # the guest's modules import each other by name
from runners.guest.script import record as guest
from runners.sandbox.contract import WORK


def step(**changes: Any) -> StepRecord:
    given: dict[str, Any] = {"argv": ["/opt/env/bin/python", "repro.py"], "status": 0, "timed_out": False}
    rest = {"seconds": 1.0, "maxrss_bytes": 7, "stdout": "", "stderr": "", "truncated": False}
    return msgspec.convert({**given, **rest, **changes}, StepRecord)


def read(facts: GuestFacts = tvm.GUEST, **changes: Any) -> Record:
    return build_record(step(**changes), facts, script="repro.py")


def lines(*objects: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def test_broken_line_after_the_end_breaks_no_probe() -> None:
    """The line is about the session, which takes no further probe."""
    end = lines({"started": {"pid": 1, "python": "3.11"}}, {"end": {"probe_file": None}}).encode()
    found = read_records(end + b'{"session": {"spent": "\\udcff"}}\n')
    assert (found.broken, bool(found.spent)) == (None, True)
    assert read_records(b"?" + end).broken is not None


def test_whole_record_is_read() -> None:
    """The result has the chain, warnings, phases and the time of the end."""
    failed = {
        "failed": [
            {"type": "ValueError", "message": "m", "frames": [["a.py", 3, "f"]], "because": ""},
            {"type": "KeyError", "message": "k", "frames": [], "because": "cause"},
        ],
        "warnings": [["UserWarning", "w"]],
        "at": 2.5,
    }
    found = read(claims=lines({"phase": "compile", "at": 0.5}, {"phase": "run", "at": 1.5}, failed))
    assert [one.type for one in found.chain] == ["ValueError", "KeyError"]
    assert found.chain[0].frames == (Frame(file="a.py", line=3, function="f"),)
    assert found.warnings == (("UserWarning", "w"),)
    assert found.phases == (Phase(name="compile", at=0.5), Phase(name="run", at=1.5))
    assert (found.seconds, found.peak_bytes) == (2.5, 7)


def test_record_of_a_crash_ends_with_its_phase() -> None:
    """The record has neither a time of the end nor an exception."""
    found = read(claims=lines({"phase": "compile", "at": 0.5}), status=11)
    assert found.phases == (Phase(name="compile", at=0.5),)
    assert (found.seconds, found.chain) == (None, ())


@given(
    st.text(max_size=300)
    | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)).map(
        json.dumps
    )
)
@pytest.mark.thorough
def test_malformed_record_does_no_harm(claims: str) -> None:
    """Invalid lines are dropped, and the result can always be serialized."""
    msgspec.json.encode(read(claims=claims, stacks=claims, last_words=claims, timed_out=True))


@pytest.mark.parametrize(
    "line",
    [
        {"at": 1, "failed": [{"type": "T" * 900, "message": "m" * 2999, "frames": [["f" * 400, 1, "g"]] * 40}] * 3},
        {"at": 1, "failed": [], "unknown": {"shape": [1] * 99}},
        {"at": "late", "failed": []},
        {"at": 1, "phase": "sleep"},
        {"at": 1, "ended": 0, "warnings": [["a" * 900, "b" * 900]] * 20},
    ],
)
def test_invalid_or_oversized_lines_are_dropped_or_cut(line: object) -> None:
    """Every record is within the limits of the protocol."""
    found = read(claims=lines(line))
    assert msgspec.convert(msgspec.to_builtins(found), Record) == found


# ------------------------------------------------------------------------------------------- where it hangs

COMPUTING = [{"process": 2, "name": "python", "state": "R", "busy": 0.4, "waits_in": ""}]
WAITING = [{"process": 2, "name": "python", "state": "S", "busy": 0.0, "waits_in": "futex_wait_queue"}]
HEAD = "Current thread 0x1 (most recent call first):\n"
OWN = '  File "/opt/reprobot/runners/guest/script/run.py", line 61 in execute\n'
LOOP = f'{HEAD}  File "{WORK}/repro.py", line 4 in spin\n{OWN}'
BUILD = f'{HEAD}  File "/opt/env/lib/python3.11/site-packages/tvm/driver/build_module.py", line 9 in compile\n{OWN}'
CALL = f'{HEAD}  File "/opt/env/lib/python3.11/site-packages/tvm/runtime/vm.py", line 9 in invoke\n{OWN}'
APPLY = '  File "/opt/env/lib/python3.11/site-packages/tvm/ir/transform.py", line 9 in __call__\n'
LENGTH = '  File "/opt/env/lib/python3.11/site-packages/tvm_ffi/container.py", line 9 in __len__\n'
SCRIPT = f'  File "{WORK}/repro.py", line 4 in settle\n'
OWN_PASS = f"{HEAD}{LENGTH}{SCRIPT}{APPLY}{SCRIPT}{OWN}"
COMPILER_WITHIN = f"{HEAD}{APPLY}{SCRIPT}{APPLY}{SCRIPT}{OWN}"
DONE = lines({"phase": "compile", "at": 0.1}, {"phase": "run", "at": 0.2})


@pytest.mark.parametrize(
    ("threads", "stacks", "claims", "expected"),
    [
        (COMPUTING, LOOP, "", ("computing", "testcase")),
        (COMPUTING, BUILD, "", ("computing", "compiler")),
        (COMPUTING, LOOP, lines({"phase": "compile", "at": 0.1}), ("computing", "compiler")),
        (COMPUTING, OWN_PASS, "", ("computing", "testcase")),
        (COMPUTING, OWN_PASS, lines({"phase": "compile", "at": 0.1}), ("computing", "testcase")),
        (COMPUTING, COMPILER_WITHIN, "", ("computing", "compiler")),
        (COMPUTING, CALL, DONE, ("computing", "compiled")),
        (WAITING, CALL, DONE, ("waiting", "compiled")),
        (WAITING, LOOP, DONE, ("waiting", "testcase")),
        (COMPUTING, CALL, "", ("computing", "library")),
        ([], "", "", ("unknown", "unknown")),
    ],
)
def test_causes_of_a_time_out_are_distinguished(
    threads: list[Any], stacks: str, claims: str, expected: tuple[str, str]
) -> None:
    """A slow compilation, a loop of the testcase and a deadlock need different repairs."""
    hang = read(timed_out=True, threads=threads, stacks=stacks, claims=claims).hang
    assert hang is not None
    assert (hang.doing, hang.place) == expected
    assert all("reprobot" not in frame.file for frame in hang.frames)


def test_tool_name_places_a_hang_in_compiler_or_compiled_code() -> None:
    """Without the facts of the toolchain, the name has no meaning."""
    for program, place in (("iree-compile", "compiler"), ("iree-run-module", "compiled")):
        hang = read(iree.GUEST, argv=[f"/opt/env/x/{program}"], timed_out=True, threads=COMPUTING).hang
        assert hang is not None
        assert hang.place == place
        unknown = read(tvm.GUEST, argv=[f"/opt/env/x/{program}"], timed_out=True, threads=COMPUTING).hang
        assert unknown is not None
        assert unknown.place == "unknown"


def test_native_frames_exclude_the_interpreter() -> None:
    """Both formats are read, of TVM's handler and of LLVM's."""
    tvm = '  File "<unknown>", line 0, in tvm::relax::FuseOps(tvm::IRModule)\n  File "x.c", line 1, in run_mod\n'
    llvm = " #0 0x00007f12 llvm::sys::PrintStackTrace(int) (/opt/env/x.so+0x12)\n #1 0x00007f13 main (/x+0x1)\n"
    llvm += (
        " #2 0x00007f14 (/lib/libc.so.6+0x3)\n #3 0x00007f15 mlir::verify(mlir::Operation*, bool) Verifier.cpp:0:0\n"
    )
    found = [read(timed_out=True, threads=COMPUTING, last_words=text).hang for text in (tvm, llvm)]
    assert [hang.native for hang in found if hang] == [
        ("tvm::relax::FuseOps(tvm::IRModule)",),
        ("mlir::verify(mlir::Operation*, bool)",),
    ]


def test_frames_of_the_script_runner_are_removed() -> None:
    """A traceback loses both lines of a frame, a stack loses its line. All other text stays."""
    text = (
        'x\n  File "/opt/reprobot/runners/guest/script/run.py", line 61, in execute\n    exec(code)\n'
        f'  File "{WORK}/repro.py", line 1, in f\n    g()\n'
        '  File "/opt/reprobot/runners/guest/script/zygote.py", line 9 in main\nend\n'
    )
    assert remove_own_frames(text) == f'x\n  File "{WORK}/repro.py", line 1, in f\n    g()\nend\n'


# ------------------------------------------------------------------------------------------- as the guest writes it


def test_exception_chain_goes_from_last_to_first() -> None:
    """As in a traceback, a link is a cause, or a context that is not suppressed. A circle ends."""
    try:
        try:
            raise KeyError("a")
        except KeyError as first:
            raise ValueError("b") from first
    except ValueError as error:
        found = guest.list_chain(error)
        found[1][0].__cause__ = error
        again = guest.list_chain(error)
    assert [because for _, because in again] == ["", "cause"]
    assert [type(one).__name__ for one, _ in found] == ["ValueError", "KeyError"]
    assert guest.describe_exception(found[0][0], "")["frames"][0][2] == "test_exception_chain_goes_from_last_to_first"
