"""Find the environment of a release, in which the toolchain's canary has passed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from packaging.requirements import Requirement

from runners.builds.source import Unbuildable
from runners.core.errors import InfraError, ReprobotError
from runners.core.failure.oracle import get_last_output
from runners.core.packages.catalogue import Release
from runners.core.packages.requirements import pin_layers
from runners.core.protocol import Exited, Limits, NotRun, Testcase
from runners.environments.resolve import Forbidden, Unresolvable
from runners.environments.store import Environment
from runners.probe.canary import explain_failed_canary, identify_copy, make_canary_key
from runners.probe.task import PLAIN
from runners.toolchains import find_toolchain, make_canary_testcase
from runners.workbench.machine import Machine
from runners.workbench.probes import run_once

CANARY_LIMITS = Limits(wall_s=120)


def find_environment(machine: Machine, version: str, testcase: Testcase) -> Environment | NotRun:
    """Return the environment of a release with the testcase's requirements, or the reason for its absence.

    The day of the report chooses the versions of large packages. The files of an environment are compared with its
    record once (about 0.07 s), not for each run.
    """
    requirements = pin_layers(testcase.requirements, machine.day)
    name = (testcase.toolchain, version, requirements)
    environment, copy = machine.ready.get(name, (None, ""))
    if environment is not None and copy == identify_copy(environment):
        return environment
    found = _check_environment(machine, testcase.toolchain, version, requirements)
    if isinstance(found, Environment):
        machine.ready[name] = found, identify_copy(found)
    return found


def _check_environment(
    machine: Machine, name: str, version: str, requirements: Sequence[str]
) -> Environment | NotRun:
    try:
        release = find_release(machine, name, version)
        environment = machine.store.get_environment(release, requirements)
    except Forbidden as reason:
        return NotRun(why=str(reason), cause="forbidden")
    except (Unresolvable, Unbuildable) as reason:
        return NotRun(why=str(reason), cause="unavailable")
    except InfraError as reason:
        return NotRun(why=str(reason), cause="infra")
    toolchain = find_toolchain(environment.toolchain)
    if any(Requirement(text).name in toolchain.OPEN_DEPENDENCIES for text in requirements):
        return environment  # the run decides whether the release works with this package
    program = make_canary_testcase(toolchain, environment.version, requirements)
    key = make_canary_key(environment, machine.engine, program, toolchain.VARIABLES)
    failed = machine.canaries.check_once(key, lambda: run_canary(machine, environment, program, requirements))
    return failed or environment


def find_release(machine: Machine, toolchain: str, version: str) -> Release:
    """Return a listed build between releases, provided now, or else a release of the catalogue.

    Raises:
        Unbuildable: the build is not available.
        InfraError: the build is not available at the moment.
    """
    if version in machine.registry:
        return machine.registry.provide_release(version)
    return machine.catalogue.find(toolchain, version)


def find_younger_packages(machine: Machine, name: str, version: str) -> dict[str, tuple[str, str]]:
    """Return the packages of which an installation on the report's day gets newer versions: name → both versions.

    Empty if this cannot be determined, for example without a network. Then no run follows.
    """
    if machine.day is None or version in machine.registry:
        return {}
    with contextlib.suppress(ReprobotError):
        return machine.store.find_younger(machine.catalogue.find(name, version), machine.day)
    return {}


def prepare_build(machine: Machine, name: str, testcase: Testcase) -> None:
    """Provide a listed build and its environment. The run of the build reports failures."""
    with contextlib.suppress(ReprobotError):
        machine.store.get_environment(
            machine.registry.provide_release(name), pin_layers(testcase.requirements, machine.day)
        )


def run_canary(
    machine: Machine, environment: Environment, program: Testcase, requirements: Sequence[str] = ()
) -> NotRun | None:
    """Compile and run a small program. Return None on success, else the reason not to run any testcase there."""
    toolchain = find_toolchain(environment.toolchain)
    probe = run_once(machine, environment, program, CANARY_LIMITS, PLAIN)
    if isinstance(probe.ended, NotRun):
        return probe.ended
    if probe.ended == Exited(code=0) and toolchain.CANARY.prints in probe.steps[-1].stdout:
        return None
    last_line = get_last_output(probe.steps).strip().splitlines()[-1:]
    beside = f" with {', '.join(requirements)}" if requirements else ""
    return explain_failed_canary(
        f"{toolchain.TITLE} {environment.version}{beside}", probe.ended, last_line[0] if last_line else ""
    )
