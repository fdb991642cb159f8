"""Resolve a release and a testcase's requirements to a lock: hashed wheels, as of the release's day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import Release
from runners.environments.files import write_text
from runners.environments.interpreters import Interpreter
from runners.environments.stand_ins.gpu import list_excluded
from runners.environments.uv import NoSolution, Pin, Uv, measure_download_bytes
from runners.toolchains import Toolchain, find_toolchain

MAX_DOWNLOAD_BYTES = 1536 * 1024**2
"""Largest download of an environment with a testcase's requirements, unless the operator allows more."""


class Unresolvable(UserError):
    """A testcase's requirements have no solution together with this release. This is not evidence about a bug."""


class Forbidden(Unresolvable):
    """A limit of this installation's operator forbids a testcase's requirements."""


class Requirements(NamedTuple):
    """Requirements of an environment."""

    together: tuple[str, ...]
    """Resolved in one set, with all dependencies."""
    alone: tuple[str, ...]
    """Resolved without dependencies, for wheels of which only a part is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """Resolves with uv and keeps each resolution in ``folder``."""

    folder: Path
    uv: Uv
    say: Callable[[str], None]
    max_download_bytes: int = MAX_DOWNLOAD_BYTES
    gpu_packages: bool = False
    """False: resolutions omit the GPU packages that stand-ins replace (`runners.environments.stand_ins.gpu`)."""

    def resolve(self, release: Release, extra: tuple[str, ...], interpreter: Interpreter) -> str:
        """Return the lock of a release and the ``extra`` requirements of a testcase.

        A kept resolution stays valid, because its date is in the past.

        Raises:
            Unresolvable: the extra requirements do not fit the release.
            Forbidden: they make the download too large.
            InfraError: the index cannot be reached, or the release alone has no solution.
        """
        requirements = collect_requirements(release, extra)
        if not requirements.together:
            return ""
        inputs = [requirements, str(release.as_of), interpreter.version, interpreter.platform, *release.links]
        inputs += [*self.uv.options, *(["with GPU packages"] if self.gpu_packages else [])]
        if extra and self.max_download_bytes != MAX_DOWNLOAD_BYTES:
            inputs.append(f"within {self.max_download_bytes} bytes")  # stored with the limit that it passed
        path = self.folder / f"{_digest(json.dumps(inputs))}.json"
        lock = _read_resolution(path)
        if lock is None:
            self.say(f"resolving {release.toolchain} {release.version} as of {_format_day(release)}")
            lock = self._resolve_anew(release, requirements, extra, interpreter)
            write_text(path, json.dumps({"wanted": requirements, "lock": lock}, indent=1))
        return lock

    def _resolve_anew(
        self, release: Release, requirements: Requirements, extra: tuple[str, ...], interpreter: Interpreter
    ) -> str:
        uv = add_links(self.uv, release.links)
        if extra and not self.gpu_packages:
            uv = replace(uv, excluded=list_excluded(Requirement(text).name for text in extra))
        pins = _resolve_together(uv, release, requirements.together, extra, interpreter)
        if requirements.alone:
            python, minor = interpreter.executable, interpreter.version
            pins += uv.resolve(requirements.alone, python=python, minor=minor, newest=release.as_of, deps=False)
        if extra:
            self._check_download(pins, release)
        return render_lock(pins)

    def _check_download(self, pins: Sequence[Pin], release: Release) -> None:
        """Refuse a testcase whose requirements make the download too large. A release alone is never refused."""
        size, limit = measure_download_bytes(pins) // 1024**2, self.max_download_bytes // 1024**2
        if size > limit:
            largest = max(pins, key=lambda p: measure_download_bytes([p])).name
            raise Forbidden(
                f"the testcase's requirements make {release.toolchain} {release.version} a download of "
                f"{size} MiB (most of it for {largest}); the operator's limit is {limit} MiB"
            )


def add_links(uv: Uv, links: Sequence[str]) -> Uv:
    """Return ``uv`` with these pages and folders as further sources of wheels."""
    options = [word for link in links for word in ("--find-links", link)]
    return replace(uv, options=(*uv.options, *options)) if links else uv


def _resolve_together(
    uv: Uv, release: Release, requirements: tuple[str, ...], extra: tuple[str, ...], interpreter: Interpreter
) -> tuple[Pin, ...]:
    """Resolve as of the release's day. If that fails, allow newer versions of packages that the testcase pins, then
    also of packages that only these need."""

    def resolve(wanted: Sequence[str], undated: Sequence[str], newest: datetime | None) -> tuple[Pin, ...]:
        python, minor = interpreter.executable, interpreter.version
        return uv.resolve(wanted, python=python, minor=minor, newest=newest, undated=undated)

    pinned = [text for text in extra if Requirement(text).specifier]
    names = [Requirement(text).name for text in pinned]
    try:
        return resolve(requirements, (), release.as_of)
    except NoSolution as failure:
        explanation = str(failure)
    if pinned:
        try:
            return resolve(requirements, names, release.as_of)
        except NoSolution as failure:
            explanation = str(failure)
        with suppress(NoSolution):
            own = {
                pin.name for pin in resolve([text for text in requirements if text not in extra], (), release.as_of)
            }
            young = {pin.name for pin in resolve(pinned, (), None)}
            return resolve(requirements, [*names, *sorted(young - own)], release.as_of)
    build, day = f"{release.toolchain} {release.version}", _format_day(release)
    if not extra:
        raise InfraError(f"{build} cannot be resolved as of {day}: {explanation}")
    raise Unresolvable(f"{', '.join(extra)} as of {day} does not go with {build} in wheels: {explanation}")


def collect_requirements(release: Release, extra: tuple[str, ...]) -> Requirements:
    """Return the requirements of a release with a testcase's ``extra`` ones."""
    toolchain = find_toolchain(release.toolchain)
    bundle = toolchain.find_bundle(release.version)
    if bundle:
        return Requirements((*bundle.requirements, *release.pins, *extra), release.distributions)
    companions = _list_companions(toolchain, extra)
    return Requirements((*release.distributions, *release.pins, *companions, *extra), ())


def _list_companions(toolchain: Toolchain, extra: tuple[str, ...]) -> tuple[str, ...]:
    """Return the toolchain's own extras, except packages for which the testcase states a requirement."""
    named = {Requirement(text).name for text in extra}
    return tuple(companion for companion in toolchain.COMPANIONS if companion not in named)


def render_lock(pins: Sequence[Pin]) -> str:
    """Return pins as sorted, hashed requirement lines. Without addresses, the same wheels give the same text."""
    return "".join(f"{p.name}=={p.version} --hash=sha256:{p.sha256}\n" for p in sorted(pins, key=lambda p: p.name))


def _format_day(release: Release) -> str:
    return f"{release.as_of:%Y-%m-%d}" if release.as_of else "today"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_resolution(path: Path) -> str | None:
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))["lock"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return lock if isinstance(lock, str) else None
