"""Run a testcase once in an environment: in a sandbox, on a GPU if its device needs one."""

from __future__ import annotations

import os
from functools import partial

from runners.core.errors import InfraError
from runners.core.protocol import Cell, Limits, NotRun, Testcase
from runners.core.toolchain.hardware import NVIDIA
from runners.environments.store import Environment, default_root
from runners.hardware import gpu
from runners.hardware.detect import Absent, detect_hardware
from runners.probe.layout import layout_of, task_of
from runners.probe.run import run_probe
from runners.probe.task import Conditions, Probe, conditions_of
from runners.sandbox.contract import Engine
from runners.sandbox.process import Stopped
from runners.toolchains import find_device, find_toolchain
from runners.workbench.machine import Machine

HOOK_FILE = "/tmp/reprobot-findings.jsonl"
"""The file that a guest program writes. A path inside the sandbox, whose /tmp is its own."""
HOOK_VARIABLES = {"REPROBOT_FINDINGS": HOOK_FILE}
GPU_WAIT_S = 900.0
"""How long a cell waits for others that use the same GPU."""


def run_on_device(machine: Machine, environment: Environment, cell: Cell, conditions: Conditions) -> Probe:
    """Run a cell, alone on the GPU if its device is one that is here. A GPU that it leaves ill is our failure."""
    device = find_device(find_toolchain(cell.toolchain), cell.device)
    if device is None or device.hardware is not NVIDIA or isinstance(detect_hardware(NVIDIA), Absent):
        return run_once(machine, environment, cell.testcase, cell.limits, conditions)
    if unfit := gpu.find_gpu_problems(os.environ, containers=machine.engine.name in ("docker", "podman")):
        return report_not_run(machine.engine, NotRun(why="; ".join(unfit)[:2000], cause="unavailable"))
    try:
        card = gpu.choose_gpu(os.environ)
        with gpu.lock_gpu(card, default_root() / "gpus", GPU_WAIT_S):
            before = gpu.read_health(card)
            alone = conditions_of(cell.varied, 2)
            probe = run_once(machine, environment, cell.testcase, cell.limits, alone, devices=card.nodes)
            ill = gpu.find_fault(before, gpu.read_health(card))
    except InfraError as reason:
        return report_not_run(machine.engine, NotRun(why=str(reason)))
    return probe if ill is None else report_not_run(machine.engine, NotRun(why=ill))


def run_once(
    machine: Machine,
    environment: Environment,
    testcase: Testcase,
    limits: Limits,
    conditions: Conditions,
    *,
    with_hook: bool = False,
    devices: tuple[str, ...] = (),
) -> Probe:
    """Run a testcase in a session, forked where possible; ``with_hook`` brings back the file of a guest program.

    A confirming run, which leaves no record of the script, has a sandbox of its own: forks share the layout of their
    address space, which new processes do not.
    """
    run = machine.sessions.probe if conditions.scripts else partial(run_probe, devices=devices)
    driver = machine.driver
    task = task_of(
        environment,
        testcase,
        limits,
        conditions=conditions,
        more_variables=({} if driver is None else driver.environment) | (HOOK_VARIABLES if with_hook else {}),
        probe_file=HOOK_FILE if with_hook else None,
    )
    layout = layout_of(environment, extra=() if driver is None else driver.mounts)
    try:
        return run(machine.engine, layout, task, run_id=machine.run_id)
    except Stopped:
        raise
    except InfraError as reason:
        return report_not_run(machine.engine, NotRun(why=str(reason)))


def report_not_run(engine: Engine, reason: NotRun) -> Probe:
    return Probe(steps=(), ended=reason, seconds=0.0, peak_bytes=0, engine=engine.name)
