"""Run uv to resolve and install wheels. uv never builds or runs code of a package here. No other module starts uv."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uv as uv_package

from runners.core.errors import InfraError, explain_shortage
from runners.core.hostile.folders import try_remove_folder

_DROPPED = re.compile(
    r"^(PYTHON.*|VIRTUAL_ENV|CONDA_.*|UV_(PYTHON|EXCLUDE_NEWER|PRERELEASE|RESOLUTION|CONSTRAINT|OVERRIDE).*)$"
)
"""Variables of the caller that would change the resolution or the interpreter."""

_NETWORK = re.compile(
    r"error sending request|dns error|failed to lookup|network connectivity is disabled|network was disabled"
    r"|connection (?:refused|reset)|timed? out|Could not connect|Failed to fetch|tls|certificate",
    re.IGNORECASE,
)
_DISK = re.compile(
    r"os error 28|no space left|os error 122|quota exceeded|read-only file system|os error 30", re.IGNORECASE
)
_CUT_SHORT = re.compile(
    r"failed to read from zip file|end of file before message length|error (?:decoding|reading) .*body"
    r"|unexpected end of file|connection closed before message|incomplete message",
    re.IGNORECASE,
)
"""Messages of a download that ended early. During resolution, uv calls such a wheel invalid."""
_FAR = "2200-01-01"
"""A day after every publication date."""


_DRAFT = ".tmp"
"""Prefix of the names of uv's temporary folders in its cache."""
_DRAFT_S = 24 * 3600.0
"""Age after which no uv process can use such a folder."""
_LOOK_S = 0.1
"""Interval between two checks of the amount that uv has written."""


class _WroteTooMuch(Exception):
    """uv has written more than allowed."""


class NoSolution(Exception):
    """uv found no set of wheels for the requirements. The message is uv's last explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One wheel of a resolution."""

    name: str
    version: str
    sha256: str
    url: str
    uploaded: datetime | None = None
    size: int | None = None
    """Bytes, as the index states them. None if the source states none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv:
    """A uv binary with its cache. ``options`` are added to every command that may use an index."""

    cache: Path
    binary: str = field(default_factory=uv_package.find_uv_bin)
    offline: bool = False
    options: tuple[str, ...] = ()
    most_bytes: int = 16 * 1024**3
    """Limit of the disk space of one wheel, downloaded and unpacked."""
    excluded: tuple[str, ...] = ()
    """Packages that no resolution contains, even if others require them."""

    def resolve(
        self,
        requirements: Sequence[str],
        *,
        python: Path,
        minor: str,
        newest: datetime | None = None,
        deps: bool = True,
        prereleases: bool = False,
        undated: Sequence[str] = (),
    ) -> tuple[Pin, ...]:
        """Return the wheels for ``requirements`` on one CPython minor, none of them published after ``newest``.

        Packages in ``undated`` may be newer. Without ``deps``, dependencies are left out.

        Raises:
            NoSolution: no set of wheels fits.
            InfraError: the index cannot be reached, or uv failed.
        """
        arguments = ["pip", "compile", "-", "--format", "pylock.toml", "--no-header", "--only-binary", ":all:"]
        arguments += ["--python", str(python), "--python-version", minor, "--no-python-downloads", "--no-sources"]
        if newest:
            arguments += ["--exclude-newer", _format_time(newest)]
            arguments += [f"--exclude-newer-package={name}={_FAR}" for name in undated]
        arguments += [] if deps else ["--no-deps"]
        arguments += ["--prerelease", "allow"] if prereleases else []
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as overrides:
            overrides.write("".join(f"{name} ; python_version < '3'\n" for name in self.excluded))
            overrides.flush()
            arguments += ["--overrides", overrides.name] if self.excluded else []
            done = self._run([*arguments, *self._build_index_options()], stdin="\n".join(requirements) + "\n")
        if done.returncode != 0:
            raise self._classify_failure(done.stderr, f"resolving {', '.join(requirements)}")
        return _read_pylock(done.stdout)

    def install(self, lock: str, target: Path, *, python: Path) -> None:
        """Unpack the wheels of a hashed lock into the folder ``target``, hard-linked, with bytecode compiled.

        Raises:
            InfraError: a download, a hash or the disk failed, or a wheel is too large.
        """
        arguments = ["pip", "install", "-r", "-", "--target", str(target), "--no-deps", "--require-hashes"]
        arguments += ["--only-binary", ":all:", "--link-mode", "hardlink", "--compile-bytecode", "--no-sources"]
        arguments += ["--python", str(python), "--no-python-downloads"]
        done = self._run([*arguments, *self._build_index_options()], stdin=lock)
        if done.returncode != 0:
            failure = self._classify_failure(done.stderr, "installing an environment")
            raise failure if isinstance(failure, InfraError) else InfraError(f"uv cannot install a lock: {failure}")

    def forget(self, *packages: str) -> None:
        """Drop packages from the cache, so that they are downloaded again."""
        self._run(["cache", "clean", *packages])

    def remove_old_drafts(self) -> None:
        """Remove the folders into which killed uv processes were unpacking, once they are a day old."""
        for draft in self.cache.glob(f"{_DRAFT}*"):
            with contextlib.suppress(OSError):
                if time.time() - draft.stat().st_mtime > _DRAFT_S:
                    try_remove_folder(draft)

    def _build_index_options(self) -> tuple[str, ...]:
        return (*self.options, *(["--offline"] if self.offline else []))

    def _run(self, arguments: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not _DROPPED.match(name)}
        environment |= {"UV_CACHE_DIR": str(self.cache), "NO_COLOR": "1", "UV_NO_PROGRESS": "1"}
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfraError(
                f"{self.cache} cannot be made ({error.strerror}): free some space, or set REPROBOT_CACHE to a "
                "folder that can be written"
            ) from error
        try:
            process = subprocess.Popen(
                [self.binary, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=self.cache.parent,  # a pyproject.toml in our own directory could change uv's settings
                umask=0o022,
            )
            with process:
                return _wait_within(process, stdin, self.cache, self.most_bytes)
        except _WroteTooMuch:
            raise InfraError(
                f"uv wrote more than {self.most_bytes / 1024**3:g} GiB for {stdin.partition(' ')[0] or 'its cache'}: "
                "if the package needs that, raise wheel_gib in the operator's configuration"
            ) from None
        except OSError as error:
            shortage = explain_shortage(error)
            raise shortage or InfraError(f"uv cannot be started ({error}): reinstall reprobot") from error

    def _classify_failure(self, stderr: str, doing: str) -> NoSolution | InfraError:
        if _DISK.search(stderr):
            return InfraError(
                f"the disk with {self.cache} is full or read-only: free some space, or set REPROBOT_CACHE"
            )
        if _CUT_SHORT.search(stderr):
            return InfraError(
                f"a download from the package index was cut short while {doing}: try again, whole downloads are kept"
            )
        if _NETWORK.search(stderr):
            return InfraError(
                f"the package index cannot be reached while {doing}: connect, or use versions already built"
            )
        if "No solution found" in stderr:
            return NoSolution(_read_explanation(stderr))
        return InfraError(f"uv failed while {doing}: {' '.join(stderr.split())[-600:]}")


def _wait_within(
    process: subprocess.Popen[str], stdin: str, cache: Path, most_bytes: int
) -> subprocess.CompletedProcess[str]:
    """Wait for uv. If uv writes more than ``most_bytes``, kill it and remove the unpacked part.

    A wheel's list of contents may understate their lengths, and uv unpacks during the download. So only the amount
    that uv has written shows the size in time. uv may exceed the limit for `_LOOK_S`.
    """
    drafts: set[Path] = set()
    begun: str | None = stdin
    try:
        while True:
            try:
                out, err = process.communicate(begun, timeout=_LOOK_S)
                return subprocess.CompletedProcess(process.args, process.returncode, out, err)
            except subprocess.TimeoutExpired:
                begun = None  # the input is passed already
            drafts |= _list_drafts(process.pid, cache)
            if _read_written_bytes(process.pid) > most_bytes:
                raise _WroteTooMuch
    except BaseException:
        process.kill()
        process.wait()
        for draft in drafts:
            try_remove_folder(draft)
        raise


def _read_written_bytes(pid: int) -> int:
    """Return the bytes that a process has written; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in text.splitlines())["wchar"])


def _list_drafts(pid: int, cache: Path) -> set[Path]:
    """Return uv's temporary folders in its cache in which the process has open files."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError, ValueError):
            inside = Path(os.readlink(link)).relative_to(cache.resolve()).parts
            if inside[:1] and inside[0].startswith(_DRAFT):
                found.add(cache / inside[0])
    return found


def _read_explanation(stderr: str) -> str:
    """Return uv's reason without the warnings before and the hints after."""
    text = " ".join(stderr.partition("No solution found")[2].split())
    reason = re.sub(r"^when resolving dependencies:?\s*(cause:|╰─▶)?\s*", "", text).partition(" hint: ")[0]
    return reason[:600] or "no solution found"


def measure_download_bytes(pins: Sequence[Pin]) -> int:
    """Return the total size of these wheels, as stated by their index or server. An unknown size counts as 0."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        unknown = pool.map(_fetch_length, (pin.url for pin in pins if pin.size is None))
        return sum(pin.size or 0 for pin in pins) + sum(unknown)


def _fetch_length(url: str) -> int:
    from urllib.request import Request, urlopen  # TLS takes 0.03 s, which a start from the store need not spend

    if not url.startswith("https://"):
        return 0
    try:
        with urlopen(Request(url, method="HEAD"), timeout=20) as answer:
            return int(answer.headers.get("Content-Length") or 0)
    except (OSError, ValueError):
        return 0


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_pylock(text: str) -> tuple[Pin, ...]:
    return tuple(_read_package(package) for package in tomllib.loads(text).get("packages", []))


def _read_package(package: dict[str, Any]) -> Pin:
    wheel = package["wheels"][0]  # without --universal, uv lists the only wheel that fits the interpreter
    return Pin(
        name=package["name"],
        version=package["version"],
        sha256=wheel["hashes"]["sha256"],
        url=wheel.get("url") or wheel.get("path", ""),
        uploaded=wheel.get("upload-time"),
        size=wheel.get("size"),
    )
