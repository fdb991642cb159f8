"""Run git in our own repositories (`foreign_clone`, `history`): no hook, pager or other program starts."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from types import MappingProxyType

from runners.core.errors import InfraError

GIT_S = 300.0
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
_NETWORK_VARIABLES = ("HOME", "http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "SSL_CERT_FILE")
_PROTOCOLS = "git:http:https:ssh"
"""Without ``file`` and ``ext``, because git executes programs that a local repository or an address names."""
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.quotePath": "true",
    "safe.directory": "*",
    "gc.auto": "0",
}
"""Settings that override the repository's configuration."""


def call_git(
    folder: Path,
    *arguments: str,
    network: bool,
    seconds: float = GIT_S,
    file_bytes: int | None = None,
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in ``folder`` and return its result with any status.

    Without ``network``, git does not fetch, not even missing objects of a partial clone, and takes no optional lock.
    ``variables`` are added to the environment, which contains none of our variables except those for the network. git
    is killed if it writes a file of more than ``file_bytes``. A clone writes all objects into one file.

    Raises:
        InfraError: git cannot be started or takes too long.
    """
    command, environment = _make_command(folder, arguments, network=network, variables=variables)
    command = command if file_bytes is None else ["/usr/bin/prlimit", f"--fsize={file_bytes}", "--", *command]
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise InfraError(f"git {arguments[0]} took more than {seconds:.0f} s in {folder}") from None
    except OSError as error:
        raise InfraError(f"git cannot be started ({error.strerror}): install it") from None


def _make_command(
    folder: Path, arguments: tuple[str, ...], *, network: bool, variables: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of git."""
    options = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    passed = _NETWORK_VARIABLES if network else ()
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        **{name: os.environ[name] for name in passed if name in os.environ},
        # The variable overrides every `protocol.NAME.allow`. The option `-c protocol.allow` does not.
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS if network else "none",
        **({} if network else {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}),
        "GIT_CEILING_DIRECTORIES": str(folder.absolute().parent),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        **variables,
    }
    return ["git", "--no-pager", *options, "-C", str(folder), *arguments], environment


def run_git(
    folder: Path,
    *arguments: str,
    seconds: float = GIT_S,
    file_bytes: int | None = None,
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> str:
    """Run git in ``folder``, with the network, and return its standard output.

    Raises:
        InfraError: git failed, cannot be started or takes too long.
    """
    done = call_git(folder, *arguments, network=True, seconds=seconds, file_bytes=file_bytes, variables=variables)
    if done.returncode != 0:
        raise InfraError(f"git {arguments[0]} failed in {folder}: {read_reason(done)}")
    return done.stdout.decode(errors="replace")


def read_lines(folder: Path, most: int, *arguments: str) -> list[str]:
    """Run git in ``folder``, without the network, and return at most ``most`` + 1 lines of its output.

    Raises:
        InfraError: git failed or cannot be started.
    """
    command, environment = _make_command(folder, arguments, network=False, variables=_NO_VARIABLES)
    try:
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
        ) as process:
            assert process.stdout is not None
            lines = list(itertools.islice(process.stdout, most + 1))
            if len(lines) > most:
                process.kill()
    except OSError as error:
        raise InfraError(f"git cannot be started ({error.strerror}): install it") from None
    if process.returncode != 0 and len(lines) <= most:
        raise InfraError(f"git {arguments[0]} failed in {folder}")
    return [line.rstrip("\n") for line in lines]


def read_reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the last line of git's errors."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no reason given"


def read_day(seconds: str) -> date:
    """Return the day, in UTC, of a time that git printed.

    The committer can choose any time. A time that is missing or not a number counts as 1970-01-01. A time outside
    Python's range of years counts as the nearest year.
    """
    try:
        offset = int(seconds.strip() or 0)
    except ValueError:
        return date(1970, 1, 1)
    first, last = (int(datetime.combine(day, time(), UTC).timestamp()) for day in (date.min, date.max))
    return datetime(1970, 1, 1, tzinfo=UTC).date() + timedelta(days=max(first, min(offset, last)) // 86400)
