"""The loops that an answer replaces: the same testcase on the same releases, one after the other, as a shell does.

Every way returns the last exit code of each run, in the same order. A signal counts as ``uv run`` tells it: its
number, negative, as a byte.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.speed.course import CallFailed
from bench.speed.probe import LIMITS, list_date_options, list_packages, make_uv_words, run_process
from runners.core.packages.catalogue import Release, load_catalogue
from runners.core.protocol import Testcase
from runners.core.toolchain.guest import GUEST
from runners.environments.store import Environment, open_store
from runners.probe.layout import GUEST_ENV, make_layout, make_task, open_view
from runners.sandbox.containers.command_line import build_limit_options, render_mount
from runners.sandbox.containers.engine import ContainerEngine, _choose_invocation
from runners.sandbox.containers.podman_store import build_client_environment, unpack_skeleton
from runners.sandbox.containers.skeleton import list_host_mounts
from runners.sandbox.contract import Mount, SandboxSpec
from runners.toolchains import find_toolchain

UV, READY, NOX, PODMAN = "uv run --with", "ready environments", "nox", "podman run"
NOX_VERSION = "2026.10.20"
_NOXFILE = """\
import json
from pathlib import Path

import nox
from nox.command import CommandFailed

RUNS = json.loads({runs!r})
STEPS = json.loads({steps!r})


def run_steps(session):
    for step in STEPS:
        try:
            session.run(*step, silent=True)
        except CommandFailed as failure:
            return failure.return_code
    return 0


@nox.session(venv_backend="uv")
@nox.parametrize("python,version", [(one["python"], version) for version, one in RUNS.items()], ids=list(RUNS))
def check(session, version):
    one = RUNS[version]
    session.install(*one["packages"])
    codes = [run_steps(session) for _ in range(one["times"])]
    Path(f"codes-{{version}}.json").write_text(json.dumps(codes))
"""

Way = Callable[[], list[int]]
"""Makes all runs. Returns the exit code of each."""


class Unavailable(Exception):
    """A way cannot be had on this machine. The message says why."""


def open_ways(
    testcase: Testcase, runs: Counter[str], folder: Path, stack: ExitStack, wanted: Collection[str]
) -> tuple[dict[str, Way], list[str]]:
    """Return the wanted ways, and a line for each that cannot be had. ``runs`` is release → number of runs.

    The ways write into ``folder``. What they keep open is closed with ``stack``.
    """
    plain = folder / "plain"
    _write_files(testcase, plain)
    environments = {version: find_environment(testcase, version) for version in runs}
    each = [environments[version] for version in runs.elements()]
    makers: dict[str, Callable[[], Way]] = {
        UV: lambda: make_uv_way(testcase, each, plain),
        READY: lambda: lambda: [run_ready(one, testcase, plain) for one in each],
        NOX: lambda: make_nox_way(testcase, runs, environments, folder / "nox"),
        PODMAN: lambda: make_podman_way(testcase, each, folder / "podman", stack),
    }
    ways, problems = {}, []
    for name, make in makers.items():
        if name not in wanted:
            continue
        try:
            ways[name] = make()
        except Unavailable as reason:
            problems.append(f"{name} is left out: {reason}")
    return ways, problems


def _write_files(testcase: Testcase, folder: Path) -> None:
    for name, text in testcase.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def find_environment(testcase: Testcase, version: str) -> Environment:
    return open_store().get_environment(find_release(testcase, version), testcase.requirements)


def find_release(testcase: Testcase, version: str) -> Release:
    return load_catalogue().find(testcase.toolchain, version)


def normalize_code(code: int) -> int:
    """Return an exit code as `uv run` gives it: -11 (Python) and 139 (a shell) for signal 11 become 245."""
    return (128 - code) % 256 if 128 < code < 128 + 65 else code % 256


# ---------------------------------------------------------------------------------------------- uv, and no tool


def make_uv_way(testcase: Testcase, each: Sequence[Environment], folder: Path) -> Way:
    """Return the way by ``uv run --with``.

    Raises:
        Unavailable: see `prepare_uv`.
    """
    for one in {one.digest: one for one in each}.values():
        prepare_uv(one, testcase)
    return lambda: [run_with_uv(one, testcase, folder) for one in each]


def prepare_uv(environment: Environment, testcase: Testcase) -> None:
    """Let uv fetch the packages of a release, and check that it then starts Python without the network.

    uv exits with 1 if it lacks a package, as many failing testcases do: such a loop would seem to be fast. The store
    gets wheels by their addresses, which are no entries of uv's cache for a package index.

    Raises:
        Unavailable: uv cannot get the packages.
    """
    words = [*make_uv_words(environment, testcase.toolchain, testcase.requirements), "python", "-c", ""]
    variables = {**_list_plain_variables(testcase), "UV_CACHE_DIR": str(open_store().uv.cache)}
    for command in ([word for word in words if word != "--offline"], words):
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"{environment.version}: {done.stderr.strip()[-300:]}")


def run_with_uv(environment: Environment, testcase: Testcase, folder: Path, *, limit: tuple[str, ...] = ()) -> int:
    """Run the steps with ``uv run --with``, each behind the words of ``limit``, such as ``timeout 60``."""
    words = [*limit, *make_uv_words(environment, testcase.toolchain, testcase.requirements)]
    variables = {**_list_plain_variables(testcase), "UV_CACHE_DIR": str(open_store().uv.cache)}
    return run_steps([[*words, *step] for step in testcase.steps], folder, variables)


def _list_plain_variables(testcase: Testcase) -> dict[str, str]:
    """Return our environment without the variables of Python, and with those of the toolchain."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return {**quiet, **find_toolchain(testcase.toolchain).VARIABLES}


def run_ready(environment: Environment, testcase: Testcase, folder: Path) -> int:
    site, python = str(environment.site_packages), str(environment.interpreter.executable)
    inside = f"{GUEST_ENV}/lib/python{environment.interpreter.version}/site-packages"
    commands = [
        [word.replace(inside, site).replace(f"{GUEST_ENV}/bin/python", python) for word in program] + arguments
        for program, arguments in _list_commands(environment, testcase)
    ]
    variables = {**find_toolchain(testcase.toolchain).VARIABLES, "PYTHONPATH": site, "PATH": os.environ["PATH"]}
    return run_steps(commands, folder, variables)


def _list_commands(environment: Environment, testcase: Testcase) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return the program of each step, by its path inside of a sandbox, and its arguments."""
    tools = make_task(environment, testcase, LIMITS).tools
    commands = []
    for name, *arguments in testcase.steps:
        program = tools[name]
        commands.append(((program,) if isinstance(program, str) else tuple(program), arguments))
    return commands


def run_steps(commands: Sequence[Sequence[str]], folder: Path, variables: dict[str, str]) -> int:
    """Run the steps up to the first that fails, as a shell does with ``set -e``. Return the last exit code."""
    codes = (normalize_code(run_process(list(words), folder, variables)[0]) for words in commands)
    return next((code for code in codes if code), 0)


# ---------------------------------------------------------------------------------------------- nox


def make_nox_way(testcase: Testcase, runs: Counter[str], environments: dict[str, Environment], folder: Path) -> Way:
    """Return the way by nox: a session for each release, whose environment is made by the first call.

    Raises:
        Unavailable: nox cannot be installed.
    """
    _write_files(testcase, folder)
    sessions = {
        version: {
            "python": str(environments[version].interpreter.executable),
            "packages": _list_install_words(testcase, version),
            "times": times,
        }
        for version, times in runs.items()
    }
    (folder / "noxfile.py").write_text(make_noxfile(sessions, testcase.steps))
    program, uv = install_nox(folder), open_store().uv
    variables = {
        **_list_plain_variables(testcase),
        "UV_CACHE_DIR": str(uv.cache),
        "PATH": os.pathsep.join([str(Path(uv.binary).parent), os.environ["PATH"]]),
    }
    return lambda: _run_nox(program, list(runs), folder, variables)


def _list_install_words(testcase: Testcase, version: str) -> list[str]:
    release = find_release(testcase, version)
    return [*list_packages(release, testcase.requirements), *list_date_options(release)]


def make_noxfile(sessions: dict[str, dict[str, object]], steps: Sequence[Sequence[str]]) -> str:
    """Return a noxfile with one session for each release. It writes the exit codes of a release to a file."""
    return _NOXFILE.format(runs=json.dumps(sessions), steps=json.dumps([list(step) for step in steps]))


def install_nox(folder: Path) -> str:
    """Install nox into an environment of its own below ``folder``. Return the path of its program.

    Raises:
        Unavailable: the package index does not have it, or cannot be reached.
    """
    uv, own = open_store().uv.binary, folder / "own"
    for words in (["venv", str(own)], ["pip", "install", "--python", str(own), f"nox=={NOX_VERSION}"]):
        done = subprocess.run([uv, "--quiet", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(done.stderr.strip()[-300:])
    return str(own / "bin" / "nox")


def _run_nox(program: str, versions: Sequence[str], folder: Path, variables: dict[str, str]) -> list[int]:
    """Call nox once. An environment of an earlier call is used again, without a look at its packages (``-R``)."""
    for version in versions:
        (folder / f"codes-{version}.json").unlink(missing_ok=True)
    done = subprocess.run(
        [program, "-R"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    if done.returncode:
        raise CallFailed(f"nox failed: {done.stderr[-600:]}")
    codes = (json.loads((folder / f"codes-{version}.json").read_text()) for version in versions)
    return [normalize_code(code) for found in codes for code in found]


# ---------------------------------------------------------------------------------------------- podman


def make_podman_way(testcase: Testcase, each: Sequence[Environment], folder: Path, stack: ExitStack) -> Way:
    """Return the way with a container for each run, from the folder and with the settings of our podman engine.

    Raises:
        Unavailable: podman does not work here.
    """
    engine = ContainerEngine(name="podman", image_name="")
    if (problem := engine.find_problem()) is not None:
        raise Unavailable(problem)
    client = _choose_invocation(engine)[0].client
    _write_files(testcase, folder)
    views = {
        one.digest: stack.enter_context(open_view(make_layout(one), remapped=True, probe_file=None)).mounts
        for one in each
    }
    commands = [make_podman_words(client, one, testcase, views[one.digest], folder) for one in each]
    variables = build_client_environment()
    return lambda: [normalize_code(run_process(words, folder, variables)[0]) for words in commands]


def make_podman_words(
    client: Sequence[str], environment: Environment, testcase: Testcase, mounts: Sequence[Mount], files: Path
) -> list[str]:
    """Return the command that runs all steps in one container. The files stand where our guest programs do."""
    shown = [Mount(host=Path(path), guest=path) for path in list_host_mounts()]
    shown += [Mount(host=files, guest=GUEST) if mount.guest == GUEST else mount for mount in mounts]
    layout = make_layout(environment)
    variables = dict(find_toolchain(testcase.toolchain).VARIABLES)
    if layout.library_path is not None:
        variables["LD_LIBRARY_PATH"] = layout.library_path
    steps = [shlex.join([*program, *arguments]) for program, arguments in _list_commands(environment, testcase)]
    spec = SandboxSpec(argv=(), mounts=(), limits=LIMITS)
    return [
        *client,
        *("run", "--rm", "--pull=never", "--network=none", "--log-driver=none", "--cgroupns=private"),
        *("--read-only", "--read-only-tmpfs=false", "--workdir=/work"),
        *build_limit_options(spec, grouped=False),
        *(f"--env={name}={value}" for name, value in variables.items()),
        *(f"--mount={render_mount(mount)}" for mount in shown),
        *("--entrypoint=", "--rootfs", str(unpack_skeleton())),
        *("/bin/sh", "-e", "-c", "\n".join([f"cp -R {GUEST}/. .", *steps])),
    ]
