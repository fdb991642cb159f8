"""Test that an engine really starts a sandbox on this machine, and that the sandbox has the essential properties."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.protocol import Exited, Limits, Signalled
from runners.sandbox.contract import Engine, EngineReport, Mount, SandboxSpec
from runners.sandbox.process import defer_interrupts

_LOOK = """
cat /proc/self/status &&
{ grep -q NoNewPrivs: /proc/self/status || setpriv --dump | sed -n s/no_new_privs:/NoNewPrivs:/p; } &&
echo interfaces && cat /proc/net/dev
"""
"""Print the identity and the networks that a process inside sees. Runs in any image with a shell.

gVisor's status does not show whether privileges can be gained, so setpriv uses the system call.
"""
_LIMITS = Limits(wall_s=30, memory_bytes=256 * 1024**2, processes=64, disk_bytes=16 * 1024**2)


def find_problem(engine: Engine) -> str | None:
    """Return None if a sandbox started with the essential properties. Otherwise one sentence with the reason."""
    spec = SandboxSpec(argv=("/bin/sh", "-c", _LOOK), mounts=(), limits=_LIMITS, run_id="selftest")
    return _find_problem(engine, spec)


def _find_problem(engine: Engine, spec: SandboxSpec) -> str | None:
    """Return the problem of two attempts. A kill, as on an exhausted machine, is not evidence against the engine."""
    problem, may_pass = _try_once(engine, spec)
    return _try_once(engine, spec)[0] if may_pass else problem


def _try_once(engine: Engine, spec: SandboxSpec) -> tuple[str | None, bool]:
    """Return the problem, and True if another attempt may succeed."""
    try:
        report = _run_uninterrupted(engine, spec)
    except (InfraError, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise  # this process is short of memory, which is not the engine's fault
        return f"its self-test could not start: {error}", True
    if report.ended != Exited(code=0):
        words = report.stderr.decode("utf-8", "replace").strip()[-300:]
        killed = isinstance(report.ended, Signalled)
        return f"its self-test ended with {report.ended}: {words or 'no message'}", killed
    breaches = list_breaches(report.stdout.decode("utf-8", "replace"))
    return f"its self-test found that it does not hold: {', '.join(breaches)}" if breaches else None, False


def _run_uninterrupted(engine: Engine, spec: SandboxSpec) -> EngineReport:
    with defer_interrupts():
        return engine.run(spec)


_CROWD = "i=0; while [ $i -lt 64 ]; do sleep 9 & i=$((i+1)); done; echo everybody"
_FEW = Limits(wall_s=30, memory_bytes=256 * 1024**2, processes=24, disk_bytes=16 * 1024**2)


def find_missing_limits(engine: Engine) -> str | None:
    """Return None if an engine that sets the limits itself really limits processes. Otherwise one sentence.

    For an ordinary user with version 1 of control groups, podman accepts the options and ignores them. Then memory
    has no limit either.
    """
    spec = SandboxSpec(argv=("/bin/sh", "-c", _CROWD), mounts=(), limits=_FEW, run_id="selftest")
    try:
        report = _run_uninterrupted(engine, spec)
    except (InfraError, OSError) as error:
        return f"its self-test of limits could not start: {error}"
    if b"everybody" not in report.stdout:
        return None
    return "it limits neither processes nor memory for this user: run as root, or use bubblewrap or control groups v2"


_GUEST = Path(__file__).parent.parent / "guest"
_STEP = """
import os, sys
sys.path.append("/opt/guest")
from runners.guest.probe import processes, supervisor
supervisor.become_untouchable()
_, records = supervisor.take_streams()
step = processes.start_process(["/bin/sh", "-c", sys.argv[1]], dict(os.environ), {"file_bytes": 65536}, (records, 2))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(step, 0)[1]))
"""
_REACH = """
# 0 and 1 are the null device by now
for number in 2 3 4 5 6 7 8 9 10 11 12; do
    (exec 9</proc/1/fd/$number) 2>/dev/null && echo "descriptor $number"
    (exec 9>/proc/1/fd/$number) 2>/dev/null && echo "descriptor $number"
done
kill -0 1 2>/dev/null && echo "descriptor none, but signals"
true
"""


def find_step_problem(engine: Engine) -> str | None:
    """Run the test of `find_problem` in a step that the supervisor starts. The step must not reach the supervisor.

    This test is for an engine whose process 1 has more rights than a testcase. Linux isolates processes of one user
    if one of them requests it. Another kernel must show that it does.
    """
    prefix = Path(sys.base_prefix).resolve()
    home = "/usr" if prefix == Path("/usr") else "/opt/python"
    python = f"{home}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    spec = SandboxSpec(
        argv=(python, "-I", "-S", "-c", _STEP, _LOOK + _REACH),
        mounts=(
            Mount(host=_GUEST, guest="/opt/guest/runners/guest"),
            *(() if home == "/usr" else (Mount(host=prefix, guest=home),)),
        ),
        environment={} if home == "/usr" else {"LD_LIBRARY_PATH": f"{home}/lib"},
        limits=_LIMITS,
        run_id="selftest",
    )
    return _find_problem(engine, spec)


def list_breaches(output: str) -> list[str]:
    """Return one clause for each essential property that the output of the self-test shows to be missing."""
    status, _, rest = output.partition("interfaces\n")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    value = {name: text.split() for name, text in fields.items()}
    interfaces = {line.split(":")[0].strip() for line in rest.splitlines() if ":" in line}
    breaches = []
    if "0" in value.get("Uid", ["0"]):
        breaches.append("it runs as root")
    if any(int(word, 16) for word in (value.get(name, ["f"])[0] for name in ("CapEff", "CapPrm", "CapBnd"))):
        breaches.append("it has capabilities")
    if value.get("NoNewPrivs") != ["1"]:
        breaches.append("it may gain privileges")
    if any(line.startswith("descriptor ") for line in rest.splitlines()):
        breaches.append(
            "a testcase can reach the process that reports on it, and so forge how it ended; use another engine, or "
            "another release of this one"
        )
    if interfaces - {"lo"}:
        breaches.append(f"it sees the network ({', '.join(sorted(interfaces - {'lo'}))})")
    return breaches
