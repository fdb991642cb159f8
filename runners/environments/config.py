"""Read the configuration file of this machine's operator. No issue and no repository can write the file.

Its path is ``$REPROBOT_CONFIG``, else ``reprobot/config.toml`` in the user's configuration directory. The file is
optional. The variable `NIGHTLY_PAGES` adds pages of wheels without a file, for example in a workflow.
"""

from __future__ import annotations

import os
import tomllib
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
from packaging.utils import canonicalize_name

from runners.core.errors import UserError

MAX_CONFIG_BYTES = 1024**2
NIGHTLY_PAGES = "REPROBOT_NIGHTLIES"
"""Variable with pages of links to wheels: ``TOOLCHAIN=ADDRESS``, separated by blanks or commas."""


class WheelSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[wheels]]`` table: a further source of a toolchain's wheels. Exactly one of the three keys is set."""

    toolchain: str
    index: str | None = None
    """A simple index: each package's page is at ``<index>/<package>/``."""
    page: str | None = None
    """A page with links to wheels (``--find-links`` of pip)."""
    folder: str | None = None
    """A folder of wheels."""
    packages: tuple[str, ...] = ()
    """Package names if they differ from the toolchain's own. A build has all of them at one version."""


Positive = Annotated[float, msgspec.Meta(gt=0)]


class PackageSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[packages]]`` table: a further source of a package that testcases require, such as PyTorch for CPUs.

    Exactly one of ``index``, ``page`` and ``folder`` is set, as for ``[[wheels]]``.
    """

    package: str
    index: str | None = None
    page: str | None = None
    folder: str | None = None

    @property
    def link(self) -> str:
        """The page or folder that lists the package's wheels (uv's ``--find-links``)."""
        if self.index is not None:
            return f"{self.index.rstrip('/')}/{canonicalize_name(self.package)}/"
        return self.page or str(Path(self.folder or "").expanduser().absolute())


class RequirementsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[requirements]``: the budget for the packages that testcases require."""

    download_mib: Positive = 1536.0
    """Limit of an environment's download if its testcase requires packages. A release alone is never refused."""
    gpu_packages: bool = False
    """Install CUDA's packages with PyTorch (2 to 3 GiB more). Without them, PyTorch runs on the CPU only."""


class BuildCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[builds.build]``: how to build the toolchain at a commit. The command runs in the sandbox, without network.

    It starts in ``/build``, which contains the repository at that commit, and must write wheels to ``/out``.
    ``/cache`` is kept between builds (``CCACHE_DIR`` and ``SCCACHE_DIR`` point there). The command and the variables
    may contain ``{commit}``, ``{short}`` (7 digits), ``{count}`` (commits of the main branch before this one) and
    ``{name}`` (of the build).
    """

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    requires: tuple[str, ...] = ()
    """Packages for the build's ``python``, as wheels of the package index: ``setuptools>=80``."""
    given: dict[str, str] = {}
    """Further read-only paths: path inside → path on this machine."""
    variables: dict[str, str] = {}
    timeout_s: Positive = 3600.0
    memory_gib: Positive = 16.0
    processes: Annotated[int, msgspec.Meta(gt=0)] = 2048
    expected_s: Positive = 600.0
    """Expected time of one build."""
    keep_gib: Positive = 20.0
    """Disk space for finished builds. The longest unused ones are removed."""
    as_of: date | None = None
    """Date for resolving the dependencies of every build, instead of the day of its commit."""
    over: str = ""
    """The part that all builds share and that no commit affects: ``the compiled libraries of apache-tvm 0.26.0``.

    Set ``as_of`` with it. Such builds, including the two ends, are compared only with one another. The answer states
    this. A release among them would differ in the shared part. Then the search would blame the commit next to it.
    """


class BuildsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[builds]]`` table: a toolchain's repository and its sources of builds between two releases."""

    toolchain: str
    repository: str
    """Address of the repository, or a folder with a clone."""
    branch: str = "main"
    packages: tuple[str, ...] = ()
    """Packages that one build has, all at one version. Needed for the ``python`` toolchain."""
    tag: str = ""
    """Pattern of a version's tag, such as ``v{version}``, if it differs from the toolchain's own."""
    artifacts: tuple[str, ...] = ()
    """Folders or addresses with the wheels of one commit; ``{commit}`` or ``{short}`` is replaced by its sha."""
    build: BuildCommand | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole configuration file."""

    wheels: tuple[WheelSource, ...] = ()
    builds: tuple[BuildsConfig, ...] = ()
    packages: tuple[PackageSource, ...] = ()
    requirements: RequirementsConfig = RequirementsConfig()
    wheel_gib: Positive = 16.0
    """Limit of the disk space of one wheel from an index. The largest known ones (PyTorch with CUDA) take 3."""
    store_gib: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    """Limit of the store on disk. The longest unused environments are removed. IREE's and TVM's releases take 13."""

    def find_builds(self, toolchain: str) -> BuildsConfig | None:
        """Return the first ``[[builds]]`` table of a toolchain."""
        return next((one for one in self.builds if one.toolchain == toolchain), None)


def find_config() -> Path:
    """Return the path of the configuration file, whether or not the file exists."""
    chosen = os.environ.get("REPROBOT_CONFIG")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config").absolute() / "reprobot" / "config.toml"


def read_config(path: Path | None = None) -> Config:
    """Return the configuration, with defaults if there is no file.

    Raises:
        UserError: the file cannot be read, is not TOML, or has unknown keys or wrong values.
    """
    file = path or find_config()
    try:
        text = file.read_bytes()[:MAX_CONFIG_BYTES].decode()
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    try:
        config = msgspec.convert(tomllib.loads(text), Config)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UserError(f"{file}: {error}") from None
    for number, one in enumerate(config.wheels, 1):
        _check_source(one, f"{file}, [[wheels]] number {number}")
    for number, package in enumerate(config.packages, 1):
        _check_source(package, f"{file}, [[packages]] number {number}")
    pages = read_nightlies(os.environ.get(NIGHTLY_PAGES, ""))
    return msgspec.structs.replace(config, wheels=(*config.wheels, *pages)) if pages else config


def read_nightlies(text: str) -> tuple[WheelSource, ...]:
    """Return the pages of wheels that the variable `NIGHTLY_PAGES` names.

    Raises:
        UserError: a word is not ``TOOLCHAIN=ADDRESS``, or the toolchain does not exist.
    """
    return tuple(map(_read_page, text.replace(",", " ").split()))


def _read_page(word: str) -> WheelSource:
    from runners.toolchains import find_toolchain  # most configurations need none

    toolchain, _, address = word.partition("=")
    if not address.startswith("https://"):
        raise UserError(
            f"nightlies: {word!r} is no page of wheels: write TOOLCHAIN=ADDRESS, as in"
            " iree=https://nightlies.example/links.html"
        )
    return WheelSource(toolchain=find_toolchain(toolchain).NAME, page=address)


def _check_source(source: WheelSource | PackageSource, where: str) -> None:
    given = [key for key in ("index", "page", "folder") if getattr(source, key) is not None]
    if len(given) != 1:
        raise UserError(
            f"{where}: give exactly one of index, page and folder, not {' and '.join(given) or 'none of them'}"
        )
    for key in ("index", "page"):
        address = getattr(source, key)
        if address is not None and not address.startswith(("https://", "http://")):
            raise UserError(f"{where}: {key} {address!r} is no https:// address; a directory is a folder")
