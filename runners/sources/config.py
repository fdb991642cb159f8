"""What an operator says about builds between releases: one YAML file, or a part of the repository's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from runners.errors import UserError

MOST_BYTES = 64 * 1024


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all parts: a key that we do not know is refused, not ignored."""


class BuildCommand(Part, frozen=True, kw_only=True):
    """How to build the toolchain at a commit. Runs in the sandbox, without network, in ``/build``.

    ``/build`` holds the repository at that commit; wheels belong into ``/out``; ``/cache`` stays from build to build
    (``CCACHE_DIR`` and ``SCCACHE_DIR`` point there). ``{commit}``, ``{short}``, ``{count}`` (commits of the main
    branch before this one) and ``{name}`` stand for what they say in words of the command and in variables.
    """

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    requires: tuple[str, ...] = ()
    """Packages that ``python`` has while it builds, as wheels of the package index: ``setuptools>=80``."""
    given: dict[str, str] = {}
    """What it may read besides, without any network: path inside → path on this machine."""
    variables: dict[str, str] = {}
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 3600.0
    memory_gib: Annotated[float, msgspec.Meta(gt=0)] = 16.0
    processes: Annotated[int, msgspec.Meta(gt=0)] = 2048
    expected_s: Annotated[float, msgspec.Meta(gt=0)] = 600.0
    """What a build is expected to take, until some were seen."""
    keep_gib: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    """Finished builds that are kept, the last used ones."""


class Builds(Part, frozen=True, kw_only=True):
    """Where the builds between two releases of a toolchain come from."""

    toolchain: str
    repository: str
    """Address of the toolchain's repository, or a folder with a clone of it."""
    branch: str = "main"
    distribution: str = ""
    """Of the ``python`` toolchain: the package whose builds these are."""
    tag: str = ""
    """Tag of a version, ``v{version}``, where it is not the toolchain's custom."""
    nightlies: tuple[str, ...] = ()
    """Pages (an index's page of the distribution, a find-links page) or folders that list wheels."""
    artifacts: tuple[str, ...] = ()
    """Folders or addresses with the wheels of one commit each, ``{commit}`` or ``{short}`` in their names."""
    build: BuildCommand | None = None


def read_builds(path: Path) -> Builds:
    """The file's content.

    Raises:
        UserError: it cannot be read, or says something that is not known.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise UserError(f"{path} is longer than {MOST_BYTES >> 10} KiB")
    try:
        return msgspec.yaml.decode(data, type=Builds)
    except msgspec.MsgspecError as error:
        raise UserError(f"{path}: {error}") from None
