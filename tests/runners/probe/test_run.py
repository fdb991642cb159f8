"""The result of a probe, from the engine's report and the supervisor's records."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runners.core.errors import InfraError
from runners.core.protocol import (
    Ended,
    Exited,
    Limits,
    NotRun,
    OutOfMemory,
    Signalled,
    Testcase,
    TestcaseKind,
    TimedOut,
)
from runners.probe.layout import GUEST_ENV, Layout
from runners.probe.run import find_file_problem, run_probe
from runners.probe.task import ProbeResult, Task
from runners.sandbox.contract import WORK, EngineReport, Mount, SandboxSpec
from runners.sandbox.limits import cpu_time
from runners.toolchains import Toolchain, iree, tvm

LIMITS = Limits(wall_s=10, memory_bytes=2**28)
STARTED = {"started": {"pid": 1, "python": "3.11.7"}}
END = {"end": {"probe_file": None}}
OUT_OF_MEMORY = OutOfMemory(limit_bytes=2**28)


def step(**changes: Any) -> dict[str, Any]:
    record = {"argv": ["python"], "status": 0, "timed_out": False, "seconds": 0.5, "maxrss_bytes": 1}
    return {"step": {**record, "stdout": "", "stderr": "", "truncated": False, **changes}}


@dataclass
class Scripted:
    """An engine that returns a given report and records its calls."""

    lines: list[dict[str, Any]]
    ended: Ended = field(default_factory=lambda: Exited(code=0))
    raw: bytes = b""
    remaps_paths: bool = True
    name: str = "scripted"
    guarantees: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
    image: str = ""
    own_system: bool = False
    spec: SandboxSpec | None = None
    view: dict[str, str] = field(default_factory=dict)

    def find_problem(self) -> str | None:
        return None

    def run(self, spec: SandboxSpec) -> EngineReport:
        self.spec = spec
        for mount in spec.mounts:
            if mount.guest == GUEST_ENV:
                self.view = {str(p.relative_to(mount.host)): _shown(p) for p in sorted(mount.host.rglob("*"))}
        data = b"".join(json.dumps(line).encode() + b"\n" for line in self.lines) + self.raw
        return EngineReport(ended=self.ended, stdout=data, stderr=b"words of the engine", seconds=1.0, peak_bytes=42)


def _shown(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return "directory" if path.is_dir() else path.read_text()


def layout(prefix: str = "/somewhere/private/3.11.7", extra: tuple[Mount, ...] = ()) -> Layout:
    return Layout(
        site_packages=Path("/store/abc/site-packages"),
        prefix=Path(prefix),
        executable=Path(prefix, "bin/python3.11"),
        version="3.11",
        extra=extra,
    )


def probe(engine: Scripted, steps: int = 1, **changes: Any) -> ProbeResult:
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"repro.py": "print('é')"},
        steps=(("python", "repro.py"),) * steps,
    )
    shown = changes.pop("layout", layout())
    usual = {"tools": {"python": "/opt/env/bin/python"}, "limits": LIMITS}
    task = Task(testcase=testcase, **{**usual, **changes})
    return run_probe(engine, shown, task, run_id="r")


def job(engine: Scripted) -> dict[str, Any]:
    assert engine.spec is not None
    found: dict[str, Any] = json.loads(engine.spec.stdin)
    return found


@pytest.mark.parametrize(
    ("record", "ended"),
    [
        ({"status": 0}, Exited(code=0)),
        ({"status": 3 << 8}, Exited(code=3)),
        ({"status": 137 << 8}, Exited(code=137)),
        ({"status": 11}, Signalled(code=11)),
        ({"status": 6 | 0x80}, Signalled(code=6)),
    ],
)
def test_a_wait_status_becomes_an_exit_code_or_a_signal(record: dict[str, Any], ended: Ended) -> None:
    """Exit codes and signals stay distinct (137 is an exit code like any other)."""
    found = probe(Scripted([STARTED, step(**record), END]))
    assert found.ended == ended
    assert found.steps[0].ended == ended
    assert found.steps[0].argv == ("python", "repro.py")


def test_output_has_no_terminal_codes() -> None:
    """TVM colours the programs that it prints, also into a pipe, and a report quotes them without colours."""
    coloured = "\x1b[95;03m@R\x1b[39;00m.\x1b]0;title\x07function"
    (seen,) = probe(Scripted([STARTED, step(stdout=coloured, stderr=coloured), END])).steps
    assert (seen.stdout, seen.stderr) == ("@R.function", "@R.function")


def test_out_of_memory_is_reported_by_the_engine() -> None:
    """If the engine reports out of memory, the last step ended so, whatever its status is."""
    found = probe(Scripted([STARTED, step(status=9), END], ended=OUT_OF_MEMORY))
    assert found.ended == OUT_OF_MEMORY
    assert found.steps[-1].ended == OUT_OF_MEMORY


def test_out_of_memory_of_the_supervisor_names_the_step_that_was_running() -> None:
    """If everything inside was killed, the step without a record ended so."""
    found = probe(Scripted([STARTED, step()], ended=OUT_OF_MEMORY), steps=2)
    assert [one.ended for one in found.steps] == [Exited(code=0), OUT_OF_MEMORY]


def test_a_timeout_names_the_step_and_its_frames() -> None:
    """The text has the step, its activity, and the frames of Python's fault handler, innermost first."""
    frames = f'  File "{WORK}/repro.py", line 2 in f\n  File "x", line 3 in g\n'
    dump = f"Current thread 0x1 (most recent call first):\n{frames}"
    thread = {"process": 2, "name": "python", "state": "R", "busy": 0.9, "waits_in": ""}
    late = step(status=6, timed_out=True, last_words=dump, threads=[thread])
    found = probe(Scripted([STARTED, late, END]))
    assert found.ended == TimedOut(
        where="step 1 (python repro.py), after 10 s; the testcase's own code computes; "
        f"at {WORK}/repro.py:2 in f < x:3 in g"
    )


def test_a_supervisor_that_hangs_is_a_timeout() -> None:
    """The engine's clock ends a probe that the supervisor's clock did not end."""
    found = probe(Scripted([STARTED], ended=TimedOut(where="the whole probe")))
    assert found.ended == TimedOut(where="step 1 (python repro.py), after 10 s")


CPU_UP = TimedOut(where="the whole probe", clock="processor")


@pytest.mark.parametrize(
    "lines", [[step(status=9, timed_out=True), END], [step(), END], []], ids=["told", "ended meanwhile", "killed"]
)
def test_processor_time_is_reported_by_the_engine(lines: list[dict[str, Any]]) -> None:
    """The probe and its last step both end with a timeout, whatever the supervisor recorded of the step."""
    limits = msgspec.structs.replace(LIMITS, cpu_s=3.0)
    found = probe(Scripted([STARTED, *lines], ended=CPU_UP), limits=limits)
    used_up = TimedOut(where="step 1 (python repro.py), after 3 s of processor time", clock="processor")
    assert found.ended == used_up
    assert [one.ended for one in found.steps] == [used_up]


def test_a_process_killed_for_its_processor_time_is_a_timeout() -> None:
    """Without a control group, the kernel's limit for each process counts."""
    found = probe(Scripted([STARTED, step(status=9, used_up=True), END]))
    assert isinstance(found.ended, TimedOut)
    assert found.ended.clock == "processor"


def test_a_supervisor_that_never_started_is_our_failure() -> None:
    """The testcase has not run, so there is no observation."""
    with pytest.raises(InfraError, match="words of the engine"):
        probe(Scripted([], ended=Exited(code=1)))


def test_a_job_that_was_refused_is_our_failure() -> None:
    """A file that cannot be written inside is no property of the compiler."""
    with pytest.raises(InfraError, match="No space left"):
        probe(Scripted([STARTED, {"error": "OSError: No space left on device"}], ended=Exited(code=1)))


@pytest.mark.parametrize(
    "raw",
    [
        b"not json\n",
        b'{"step": {"argv": []}}\n',
        b'{"started": 3}\n',
        json.dumps(step(status=1 << 40)).encode(),
        json.dumps(step(stdout="x" * 70_000)).encode(),
        json.dumps({"surprise": 1}).encode(),
        b"\xff\xfe\n",
        b"[" * 100_000,
        b"",
    ],
)
def test_a_broken_record_is_no_evidence(raw: bytes) -> None:
    """Malformed, oversized or missing records give "not run" with the reason, and no exception."""
    found = probe(Scripted([STARTED], raw=raw, ended=Signalled(code=9)))
    assert isinstance(found.ended, NotRun)
    assert "brought down its supervisor in step 1" in found.ended.why


def test_a_broken_record_does_not_undo_the_steps_before_it() -> None:
    """Steps recorded before the break stay. The probe as a whole is no evidence."""
    found = probe(Scripted([STARTED, step()], raw=b"}{\n"), steps=2)
    assert found.steps[0].ended == Exited(code=0)
    assert isinstance(found.ended, NotRun)


def test_the_view_is_a_virtual_environment_without_host_paths() -> None:
    """The view's home, links and mounts are guest paths. Host paths appear as sources of mounts only."""
    engine = Scripted([STARTED, step(), END])
    probe(engine)
    assert engine.view["pyvenv.cfg"] == "home = /opt/python/bin\ninclude-system-site-packages = false\n"
    assert engine.view["bin/python"] == engine.view["bin/python3.11"] == "-> /opt/python/bin/python3.11"
    assert engine.spec is not None
    assert engine.spec.argv == (
        "/opt/python/bin/python3.11",
        "-I",
        "-S",
        "/opt/reprobot/runners/guest/launch.py",
        "probe.supervisor",
    )
    assert (
        Mount(host=Path("/store/abc/site-packages"), guest="/opt/env/lib/python3.11/site-packages")
        in engine.spec.mounts
    )
    assert "/somewhere" not in engine.spec.stdin.decode()
    assert "/store" not in engine.spec.stdin.decode()


def test_the_systems_interpreter_stays_where_it_is() -> None:
    """Nothing below /usr is mounted twice."""
    engine = Scripted([STARTED, step(), END])
    probe(engine, layout=layout(prefix="/usr"))
    assert engine.spec is not None
    assert engine.spec.argv[0] == "/usr/bin/python3.11"
    assert "/opt/python" not in {mount.guest for mount in engine.spec.mounts}


def test_steps_inherit_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps get their variables, a language and a search path, and no variable of this process."""
    monkeypatch.setenv("GITHUB_TOKEN", "s3cr3t")
    engine = Scripted([STARTED, step(), END])
    probe(engine, variables={"TVM_BACKTRACE": "1"})
    expected = {"LANG": "C.UTF-8", "PATH": "/opt/env/bin:/usr/bin:/bin", "TVM_BACKTRACE": "1"}
    assert job(engine)["environment"] == expected
    assert engine.spec is not None
    assert engine.spec.environment == {}


def test_a_testcase_finds_the_compilers_programs_by_their_names() -> None:
    """A Python program may start ``iree-compile``, as its author did. Importers are modules, and have no folder."""
    engine = Scripted([STARTED, step(), END])
    tools = {"python": "/opt/env/bin/python", "iree-x": ("/opt/env/lib/x/iree-x",), "iree-y": ("python", "-m", "y")}
    probe(engine, tools=tools)
    assert job(engine)["environment"]["PATH"] == "/opt/env/bin:/opt/env/lib/x:/usr/bin:/bin"


def test_a_shared_interpreter_finds_its_library(tmp_path: Path) -> None:
    """A libpython whose absolute path does not exist inside is found by LD_LIBRARY_PATH, after the caller's own."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libpython3.11.so.1.0").touch()
    engine = Scripted([STARTED, step(), END])
    probe(engine, layout=layout(prefix=str(tmp_path)), variables={"LD_LIBRARY_PATH": "/opt/env/x"})
    assert job(engine)["environment"]["LD_LIBRARY_PATH"] == "/opt/env/x:/opt/python/lib"
    assert engine.spec is not None
    assert engine.spec.environment == {"LD_LIBRARY_PATH": "/opt/python/lib"}


def test_without_mounts_paths_inside_become_paths_of_the_host() -> None:
    """An engine without a file system of its own gets the same layout by substitution."""
    engine = Scripted([STARTED, step(), END], remaps_paths=False)
    hooks = Mount(host=Path("/src/hooks"), guest="/opt/hooks")
    probe(
        engine,
        layout=layout(extra=(hooks,)),
        variables={"A": "/opt/hooks/x.json", "B": "/opt/hooksmith", "C": "/tmp/found"},
        probe_file="/tmp/found",
    )
    given = job(engine)
    assert engine.spec is not None
    assert engine.spec.mounts == ()
    assert engine.spec.argv[0] == "/somewhere/private/3.11.7/bin/python3.11"
    assert given["environment"]["A"] == "/src/hooks/x.json"
    assert given["environment"]["B"] == "/opt/hooksmith"
    assert given["environment"]["C"] == given["probe_file"]
    assert given["probe_file"] != "/tmp/found"
    assert given["steps"][0]["argv"][0].endswith("/env/bin/python")


@pytest.mark.parametrize(
    ("tool", "variables", "toolchain", "prints"),
    [
        ("/opt/env/bin/python", {"PYTHONFAULTHANDLER": "1"}, tvm, True),
        ("/opt/env/bin/python", {}, tvm, False),
        ("/opt/env/x/iree-compile", {}, iree, True),
        ("/opt/env/x/iree-compile", {}, tvm, False),
    ],
)
def test_the_job_marks_programs_that_print_their_stack(
    tool: str, variables: dict[str, str], toolchain: Toolchain, prints: bool
) -> None:
    """The guest programs know no compiler: the job has the facts that they need."""
    engine = Scripted([STARTED, step(), END])
    probe(engine, tools={"python": tool}, variables=variables, guest=toolchain.GUEST)
    given = job(engine)
    assert given["steps"][0]["prints_stack"] is prints
    assert tuple(given["compile_functions"]) == toolchain.GUEST.compile_functions
    assert tuple(given["reports_at_exit"]) == toolchain.GUEST.reports_at_exit


def test_the_supervisor_has_time_to_report_before_the_engine_ends_it() -> None:
    """The engine's time limit is above the testcase's, and the record of a full output fits its output limit."""
    engine = Scripted([STARTED, step(), END])
    probe(engine)
    assert engine.spec is not None
    assert engine.spec.limits.wall_s > LIMITS.wall_s + 5
    assert engine.spec.limits.cpu_s == job(engine)["cpu_s"] == cpu_time.compute_allowance(LIMITS)
    assert engine.spec.limits.output_bytes > 2 * 6 * job(engine)["limits"]["output_bytes"]


def test_the_view_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The private directory of a probe is removed at its end, also after an exception."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InfraError):
        probe(Scripted([], ended=Exited(code=1)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (("a", "a/b"), "inside another file"),
        (("a/b/c", "a"), "inside another file"),
        (("x" * 256,), "too long"),
        (("ä" * 128,), "too long"),
        (("/".join(["d" * 200] * 20),), "too long"),
        (("../x",), "no path below"),
        (("a//b",), "no path below"),
        (("",), "no path below"),
        (("a\0",), "no path below"),
        (("a", "ab", "b/a", "b/c", "x" * 255), ""),
    ],
)
def test_files_that_cannot_be_written_are_the_testcase_s_problem(files: tuple[str, ...], why: str) -> None:
    """The answer names the file. It used to be a failure of the infrastructure, which is retried."""
    found = find_file_problem(files)
    assert why in found
    assert bool(found) is bool(why)
