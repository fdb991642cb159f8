"""Run cells in servers of the watcher or of a sweep, with an environment of listed variables only.

The parent has a token, so another process must start the sandboxes, and must not inherit the parent's environment. A
server gets the variables on a list, plans whose digests it checks, and a folder for each result file. It ends when
the parent ends. ``server.py`` is its program.
"""

from __future__ import annotations

import contextlib
import resource
import selectors
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from runners.cells.messages import Answer, Request, read_usage
from runners.core.errors import InfraError
from runners.core.protocol import JobCell

PASSES = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "PYENV_ROOT",
        "UV_PYTHON_INSTALL_DIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "PIP_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "UV_INDEX_URL",
        "UV_CONFIG_FILE",
        "PIP_CONFIG_FILE",
        "UV_FIND_LINKS",
        "PIP_FIND_LINKS",
        "UV_OFFLINE",
        "DOCKER_HOST",
        "CONTAINER_HOST",
        "CONTAINERS_CONF",
        "REPROBOT_CACHE",
        "REPROBOT_CONFIG",
        "REPROBOT_NIGHTLIES",
        "REPROBOT_GPU",
        "REPROBOT_IMAGE",
    }
)
"""The only variables that a server gets, because a list of all secrets is impossible. Same list:
``tools/bare-env.sh``."""
GRACE_S = 900
"""Additional time beyond the plan's own budget, for building environments and for diagnoses."""
STOP_S = 20.0
"""Time for a server to close its sandboxes."""
STOP_UNUSED_S = 1.0
"""Time for a server without a cell, which may be running a self-test."""
_LOG_TAIL_BYTES = 2_000
_ROOT = Path(__file__).parents[2]
_START = (
    "import importlib, sys; sys.path.insert(0, sys.argv.pop(1));"
    " sys.exit(importlib.import_module('runners.cells.server').main(sys.argv[1:]))"
)
"""Starts a server with the packages of this process, because other projects may install packages of these names."""


def filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environment`` that a server may have."""
    return {name: value for name, value in environment.items() if name in PASSES}


class _Server:
    """A process of ``server.py``, which runs one cell at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.cpu_s = 0.0
        """Processor seconds up to the last answer."""
        self._was_used = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, str(_ROOT)],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, request: Request, limit_s: float) -> int:
        """Run a cell and return its exit status.

        Raises:
            TimeoutError: the cell did not end in time. The server cannot be used any more.
            InfraError: the server's line is not an answer.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._was_used = True
        with contextlib.suppress(BrokenPipeError):  # the server has ended, and standard output shows it
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            self._process.stdin.flush()
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            if not ready.select(limit_s):
                raise TimeoutError
        line = self._process.stdout.readline()
        if not line:
            return self._process.wait() or 1
        try:
            answer = msgspec.json.decode(line, type=Answer)
        except msgspec.DecodeError as error:
            raise InfraError(f"the process that runs cells gave no answer ({str(error)[:200]})") from None
        self.cpu_s = answer.cpu_s
        return answer.status

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        """Stop the server, which closes its sandboxes. Another thread may wait for its answer."""
        assert self._process.stdin is not None
        if not self._was_used:
            self._process.terminate()  # its imports may take longer than the caller's remaining time
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=STOP_S if self._was_used else STOP_UNUSED_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def discard(self) -> None:
        """Stop a server that no other thread uses."""
        assert self._process.stdout is not None
        self.stop()
        self._process.stdout.close()


class CellProcesses:
    """The servers of one watcher or sweep. Thread-safe: concurrent calls of `run` use several servers."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = filter_environment(environment)
        self._idle: list[_Server] = []
        self._busy: set[_Server] = set()
        self._ended_cpu_s = 0.0
        self._closed = False
        self._guard = threading.Lock()

    def start_ahead(self) -> None:
        """Start a server now, because its imports take as long as those of a process that reads an issue."""
        with self._guard:
            if not self._closed and not self._idle:
                self._idle.append(_Server(self._environment))

    def run(
        self, plan: Path, digest: str, cell: JobCell, results: Path, ledger: Path | None = None, *, cluster: str = ""
    ) -> None:
        """Run one cell in a server and wait for its result file in the folder ``results``.

        Runs in ``ledger`` are not repeated; the others are added to it. With ``cluster``, the server sends the cell
        to a worker of the Dask scheduler at this address.

        Raises:
            InfraError: the cell failed, or took longer than the plan's budget and `GRACE_S`.
        """
        plan, results = plan.absolute(), results.absolute()  # a cell has another working folder
        log = results.parent / f"{cell.id}.log"
        results.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        limit = cell.plan.budget.wall_s + GRACE_S
        words = (str(plan), digest, cell.id, str(results))
        request = Request(
            words=(*words, cluster) if cluster else words if ledger is None else (*words, str(ledger.absolute())),
            log=str(log),
            folder=str(results.parent),
            cluster=bool(cluster),
        )
        with self._take() as server:
            try:
                code = server.run(request, limit)
            except TimeoutError:
                raise InfraError(f"the cell {cell.id} did not end within {limit / 60:.0f} minutes") from None
        if code != 0:
            last = log.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip().rpartition("\n")[2]
            raise InfraError(f"the cell {cell.id} ended with status {code}: {last or 'it printed no message'}")

    @contextlib.contextmanager
    def _take(self) -> Iterator[_Server]:
        """Lend an idle server, or a new one. If the caller fails, the server is stopped."""
        with self._guard:
            if self._closed:
                raise InfraError("no cell begins any more: the processes that run cells have been stopped")
            server = self._idle.pop() if self._idle else _Server(self._environment)
            self._busy.add(server)
        try:
            yield server
        except BaseException:
            self._discard(server)
            raise
        with self._guard:
            if not self._closed and not server.has_ended:
                self._busy.discard(server)
                self._idle.append(server)
                return
        self._discard(server)

    def _discard(self, server: _Server) -> None:
        with self._guard:
            self._busy.discard(server)
            self._ended_cpu_s += server.cpu_s
        server.discard()

    def measure_cpu(self) -> float:
        """Return the processor seconds of this process, and those of the servers and their sandboxes."""
        with self._guard:
            served = sum(server.cpu_s for server in (*self._idle, *self._busy))
            return read_usage(resource.RUSAGE_SELF) + self._ended_cpu_s + served

    def close(self) -> None:
        """Stop every server and its running cell. No further cell begins."""
        with self._guard:
            self._closed = True
            idle, busy = [*self._idle], [*self._busy]
            self._idle.clear()
        for server in idle:
            server.discard()
        for server in busy:
            server.stop()
