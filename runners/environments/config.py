"""What the operator of this machine has configured: a file of their own, which no issue and no repository can write.

``$REPROBOT_CONFIG``, else ``reprobot/config.toml`` in the user's configuration directory; it need not exist.
"""

from __future__ import annotations

import os
import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec

from runners.core.errors import UserError

MAX_CONFIG_BYTES = 1024**2


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[wheels]]`` table: where else a toolchain's wheels are. Exactly one of the three keys says where."""

    toolchain: str
    index: str | None = None
    """A simple index: each package's page is at ``<index>/<package>/``."""
    page: str | None = None
    """A page with links to wheels, what pip calls find-links."""
    folder: str | None = None
    """A directory of wheels."""
    packages: tuple[str, ...] = ()
    """Their names, all at one version, where they are not the toolchain's own."""


Positive = Annotated[float, msgspec.Meta(gt=0)]


class BuildCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[builds.build]``: how to build the toolchain at a commit. Runs in the sandbox, without network.

    It starts in ``/build``, which holds the repository at that commit; wheels belong into ``/out``; ``/cache`` stays
    from build to build (``CCACHE_DIR`` and ``SCCACHE_DIR`` point there). In words of the command and in variables,
    ``{commit}``, ``{short}``, ``{count}`` (commits of the main branch before this one) and ``{name}`` stand for what
    they say.
    """

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    requires: tuple[str, ...] = ()
    """Packages that ``python`` has while it builds, as wheels of the package index: ``setuptools>=80``."""
    given: dict[str, str] = {}
    """What it may read besides: path inside → path on this machine."""
    variables: dict[str, str] = {}
    timeout_s: Positive = 3600.0
    memory_gib: Positive = 16.0
    processes: Annotated[int, msgspec.Meta(gt=0)] = 2048
    expected_s: Positive = 600.0
    """What one build takes, as far as is known beforehand."""
    keep_gib: Positive = 20.0
    """Finished builds that are kept, those last used."""
    as_of: date | None = None
    """The day as of which the needs of every build are resolved, in place of its commit's own."""
    over: str = ""
    """What every build has that its commit did not make: ``what was compiled for apache-tvm 0.26.0``.

    Set ``as_of`` with it. Such builds are compared with one another only, the two ends included, and the answer says
    it. A release beside them would differ in what they have in common, and the search would blame the commit next to
    it.
    """


class Builds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[builds]]`` table: where a toolchain's history is, and its builds between two releases."""

    toolchain: str
    repository: str
    """Address of its repository, or a folder with a clone."""
    branch: str = "main"
    packages: tuple[str, ...] = ()
    """Of the ``python`` toolchain: the packages whose builds these are, all at one version."""
    tag: str = ""
    """The tag of a version, ``v{version}``, where it is not the toolchain's custom."""
    artifacts: tuple[str, ...] = ()
    """Folders or addresses with the wheels of one commit each; ``{commit}`` or ``{short}`` stands for its sha."""
    build: BuildCommand | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    wheels: tuple[Place, ...] = ()
    builds: tuple[Builds, ...] = ()

    def builds_of(self, toolchain: str) -> Builds | None:
        """The first table about a toolchain."""
        return next((one for one in self.builds if one.toolchain == toolchain), None)

    store_gib: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    """Environments unused for longest go when the store takes more than this; IREE's and TVM's releases take 13."""


def config_path() -> Path:
    """Where the file is looked for."""
    chosen = os.environ.get("REPROBOT_CONFIG")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").absolute() / "reprobot" / "config.toml"


def read_config(path: Path | None = None) -> Config:
    """The configuration, empty where there is no file.

    Raises:
        UserError: it cannot be read, or says what nothing here understands.
    """
    place = path or config_path()
    try:
        text = place.read_bytes()[:MAX_CONFIG_BYTES].decode()
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{place} cannot be read: {error}") from None
    try:
        config = msgspec.convert(tomllib.loads(text), Config)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UserError(f"{place}: {error}") from None
    for number, one in enumerate(config.wheels, 1):
        _check(one, f"{place}, [[wheels]] number {number}")
    return config


def _check(place: Place, where: str) -> None:
    said = [key for key in ("index", "page", "folder") if getattr(place, key) is not None]
    if len(said) != 1:
        what = " and ".join(said) or "none of them"
        raise UserError(f"{where}: give exactly one of index, page and folder, not {what}")
    for key in ("index", "page"):
        address = getattr(place, key)
        if address is not None and not address.startswith(("https://", "http://")):
            raise UserError(f"{where}: {key} {address!r} is no https:// address; a directory is a folder")
