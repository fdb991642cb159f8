"""Make one run on this machine: find the environment, then run in a sandbox, on a GPU if the device needs one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

import msgspec

from runners.core.errors import InfraError
from runners.core.protocol import Limits, NotRun, Testcase
from runners.core.runs import RunRequest, RunResult
from runners.core.toolchain.facts import NVIDIA, HostCompiler
from runners.environments.store import Environment, default_root
from runners.hardware import gpu, lavapipe
from runners.hardware.detect import Absent, detect_hardware
from runners.probe.layout import GUEST_ENV, make_layout, make_task
from runners.probe.run import run_probe
from runners.probe.task import Conditions, ProbeResult, derive_conditions
from runners.sandbox.contract import Engine
from runners.sandbox.process import Stopped
from runners.toolchains import find_device, find_toolchain
from runners.workbench.machine import Machine

HOOK_FILE = "/tmp/reprobot-findings.jsonl"
"""The file that a guest program writes: a path inside the sandbox, which has its own /tmp."""
HOOK_VARIABLES = {"REPROBOT_FINDINGS": HOOK_FILE}
GPU_WAIT_S = 900.0
"""Maximum time that a run waits for others that use the same GPU."""


def make_run(machine: Machine, environment: Environment, request: RunRequest) -> RunResult:
    """Make a run in an environment whose canary passed."""
    probe = run_on_device(machine, environment, request)
    return RunResult(
        steps=probe.steps,
        ended=probe.ended,
        seconds=probe.seconds,
        peak_bytes=probe.peak_bytes,
        engine=probe.engine,
        hook_file=probe.probe_file,
        environment=environment.digest,
        fork=_describe_fork(machine, request),
        driver=get_stand_in(machine, request),
        image=get_image(machine),
    )


def get_stand_in(machine: Machine, request: RunRequest) -> str:
    """Return the name of the software that replaces the request's device. Empty if there is none."""
    return machine.driver.name if machine.driver is not None and request.device == lavapipe.DEVICE else ""


def get_image(machine: Machine) -> str:
    """Return the digest of the sandbox's image. Empty for the host's own system."""
    return machine.engine.image if machine.engine.own_system else ""


def _describe_fork(machine: Machine, request: RunRequest) -> str:
    """Describe the fork that a build is, and the wheel that contains it. Empty for the toolchain's own builds."""
    if request.version in machine.registry:
        return ""
    release = machine.catalogue.find(request.testcase.toolchain, request.version)
    if release.fork is None:
        return ""
    return f"{release.fork}, carried by {release.distributions[0].replace('==', ' ')}"


def choose_conditions(request: RunRequest) -> Conditions:
    chosen = derive_conditions(request.varied, request.attempt)
    return Conditions(
        scripts=chosen.scripts,
        fork=chosen.fork and request.may_fork and not request.fresh,
        early=chosen.early,
        threads=chosen.threads,
        perturb=chosen.perturb,
        seed=request.seed,
    )


def run_on_device(machine: Machine, environment: Environment, request: RunRequest) -> ProbeResult:
    """Run a testcase, alone on the GPU if its device is one that is here. A GPU left ill is our failure.

    A run on a GPU has a sandbox of its own: no session opens the device's files. All else is as on a processor.
    """
    device = find_device(find_toolchain(request.testcase.toolchain), request.device)
    if device is None or device.hardware is not NVIDIA or isinstance(detect_hardware(NVIDIA), Absent):
        return run_once(
            machine, environment, request.testcase, request.limits, choose_conditions(request),
            with_hook=request.hook, fresh=request.fresh,
        )  # fmt: skip
    if unfit := gpu.find_gpu_problems(os.environ, containers=machine.engine.name in ("docker", "podman")):
        return _report_not_run(machine.engine, NotRun(why="; ".join(unfit)[:2000], cause="unavailable"))
    try:
        card = gpu.choose_gpu(os.environ)
        with gpu.lock_gpu(card, default_root() / "gpus", GPU_WAIT_S):
            before = gpu.read_health(card)
            alone = choose_conditions(msgspec.structs.replace(request, fresh=True))
            probe = run_once(
                machine, environment, request.testcase, request.limits, alone, with_hook=request.hook,
                fresh=True, devices=card.nodes,
                more_variables={} if machine.engine.own_system else list_compiler_variables(device.compiler),
            )  # fmt: skip
            ill = gpu.find_fault(before, gpu.await_health(before))
    except InfraError as reason:
        return _report_not_run(machine.engine, NotRun(why=str(reason)))
    return probe if ill is None else _report_not_run(machine.engine, NotRun(why=ill))


def list_compiler_variables(compiler: HostCompiler | None, root: Path = Path("/")) -> dict[str, str]:
    """Return the variables by which a toolchain finds the machine's compiler. Empty if the machine has none."""
    if compiler is None or not (root / compiler.program.lstrip("/")).exists():
        return {}
    return {"PATH": f"{GUEST_ENV}/bin:{Path(compiler.program).parent}:/usr/bin:/bin", **compiler.variables}


def run_once(
    machine: Machine,
    environment: Environment,
    testcase: Testcase,
    limits: Limits,
    conditions: Conditions,
    *,
    with_hook: bool = False,
    fresh: bool = False,
    devices: tuple[str, ...] = (),
    more_variables: Mapping[str, str] = MappingProxyType({}),
) -> ProbeResult:
    """Run a testcase in a session, forked if possible. ``with_hook`` returns the file of a guest program.

    A ``fresh`` run has its own sandbox, because earlier probes of a session could have changed the session. The same
    applies to a run without a record of the script: forks share the layout of their address space, unlike new
    processes.
    """
    in_session = conditions.scripts and not fresh
    run = machine.sessions.run if in_session else partial(run_probe, devices=devices)
    driver = machine.driver
    task = make_task(
        environment,
        testcase,
        limits,
        conditions=conditions,
        more_variables={
            **({} if driver is None else driver.environment),
            **(HOOK_VARIABLES if with_hook else {}),
            **more_variables,
        },
        probe_file=HOOK_FILE if with_hook else None,
    )
    layout = make_layout(environment, extra=() if driver is None else driver.mounts)
    try:
        return run(machine.engine, layout, task, run_id=machine.run_id)
    except Stopped:
        raise
    except InfraError as reason:
        return _report_not_run(machine.engine, NotRun(why=str(reason)))


def _report_not_run(engine: Engine, reason: NotRun) -> ProbeResult:
    return ProbeResult(steps=(), ended=reason, seconds=0.0, peak_bytes=0, engine=engine.name)
