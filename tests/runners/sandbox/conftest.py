"""Engines that work on this machine, and one way to run an attack on them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from runners.core.protocol import Limits, Testcase, TestcaseKind
from runners.probe.layout import Layout
from runners.probe.run import run_probe
from runners.probe.task import ProbeResult, Task
from runners.sandbox import owner
from runners.sandbox.contract import Engine
from runners.sandbox.select import list_sandboxes
from tests.runners.sandbox.kit.attack import LIMITS

KIT = Path(__file__).parent / "kit" / "payload.py"
TOOLS = {"python": "/opt/env/bin/python"}
SLOWER = float(os.environ.get("REPROBOT_KIT_SLOWER", "1"))
"""Factor for all times, for slow machines such as an emulated processor (``tools/vm.sh``)."""


@pytest.fixture(params=[engine.name for engine in list_sandboxes() if engine.name != "gvisor"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine that confines; skipped with its own reason if it does not work.

    gVisor, which has its own kernel and keeps no session, runs the kit in ``test_gvisor.py``.
    """
    (found,) = [engine for engine in list_sandboxes() if engine.name == request.param]
    why = found.find_problem()
    if why is not None:
        pytest.skip(why)
    return found


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a variable in our environment that must not be found inside."""
    monkeypatch.setenv("CONFORMANCE_SECRET", "s3cr3t")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """This interpreter without packages."""
    return python_layout(tmp_path)


def python_layout(directory: Path) -> Layout:
    packages = directory / "site-packages"
    packages.mkdir(mode=0o755)
    prefix = Path(sys.base_prefix).resolve()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Layout(
        site_packages=packages, prefix=prefix, executable=prefix / "bin" / f"python{version}", version=version
    )


def slowed(limits: Limits) -> Limits:
    """Return limits with `SLOWER` times the time. Sizes and numbers are the same on every machine."""
    cpu_s = None if limits.cpu_s is None else SLOWER * limits.cpu_s
    return msgspec.structs.replace(limits, wall_s=SLOWER * limits.wall_s, cpu_s=cpu_s)


def run_source(
    engine: Engine,
    layout: Layout,
    source: str,
    *,
    limits: Limits = LIMITS,
    steps: tuple[tuple[str, ...], ...] = (("python", "attack.py"),),
    probe_file: str | None = None,
) -> ProbeResult:
    """Run one probe of ``source``, with the kit as a second file."""
    files = {"attack.py": source, "kit.py": KIT.read_text()}
    task = Task(
        testcase=Testcase(kind=TestcaseKind.PYTHON, toolchain="none", files=files, steps=steps),
        tools=TOOLS,
        variables={"PYTHONFAULTHANDLER": "1"},
        limits=slowed(limits),
        probe_file=probe_file,
    )
    return run_probe(engine, layout, task, run_id="conformance")


def name_of(**changes: object) -> str:
    """Return a name like those of this process, with other parts."""
    prefix, pid, start, space, made, serial = owner.make_name().split("-")
    parts = {"prefix": prefix, "pid": pid, "start": start, "space": space, "made": made, "serial": serial}
    return "-".join(map(str, {**parts, **changes}.values()))
