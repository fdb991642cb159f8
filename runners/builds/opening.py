"""The sources of builds that this machine's configuration names, opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from packaging.version import InvalidVersion

from runners.builds.artifacts import Artifacts
from runners.builds.command import Workshop
from runners.builds.commit_range import Between, Registry
from runners.builds.history import History, open_history
from runners.builds.listed import Tag, ordered, place
from runners.builds.source import Source
from runners.core.bisection.commits import Prior
from runners.core.catalogue import Catalogue, Release
from runners.core.errors import UserError
from runners.environments import interpreters
from runners.environments.config import BuildCommand, Builds, Config
from runners.environments.store import Store
from runners.environments.wheel_sources import PYTHONS, with_pages
from runners.sandbox.contract import Engine
from runners.toolchains import Toolchain, find_toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What of this machine the sources need."""

    catalogue: Catalogue
    config: Config
    store: Store
    engine: Engine
    run_id: str
    say: Callable[[str], None]
    history: str = ""
    """A clone that is used in place of the configured repository."""


def open_between(
    name: str, around: Surroundings, registry: Registry, *, prior: Prior | None, wanted: tuple[str, ...]
) -> Between:
    """What lays trails for a toolchain. A cached history that lacks one of the ``wanted`` revisions is fetched.

    Raises:
        UserError: the configuration names no source for it.
        InfraError: its history or a source cannot be reached.
    """
    toolchain, settings = find_toolchain(name), around.config.builds_of(name)
    tag = _tag(toolchain, settings)
    address = around.history or (settings.repository if settings else "")
    history = None
    if address:
        revisions = tuple(tag(text) or text for text in wanted)
        branch = settings.branch if settings else "main"
        history = open_history(address, around.store.root, branch=branch, wanted=revisions)
    catalogue = with_pages(around.catalogue, name, around.config.wheels)
    listed = [r for r in catalogue.listing(name).releases if r.source not in {"bundle", "machine"}]
    sources: list[Source] = [ordered(listed) if history is None else place(listed, history, tag)]
    if history is not None and settings is not None:
        sources += _of_commits(toolchain, settings, history, around)
    over = settings.build.over if settings is not None and settings.build is not None else ""
    if over:
        sources = [source for source in sources if isinstance(source, Workshop)]
    return Between(
        toolchain=name,
        catalogue=catalogue,
        history=history,
        sources=tuple(sources),
        tag=tag,
        registry=registry,
        repository=_public_name(address) or toolchain.REPOSITORY or "",
        prior=prior,
        over=over,
    )


def _of_commits(toolchain: Toolchain, settings: Builds, history: History, around: Surroundings) -> Iterator[Source]:
    packages = settings.packages or tuple(pin.partition("==")[0] for pin in toolchain.distributions("0"))
    if not packages and (settings.artifacts or settings.build):
        raise UserError(f'[[builds]] of {toolchain.NAME} must say which packages they build: packages = ["name"]')
    for where in settings.artifacts:
        yield Artifacts(place=where, toolchain=toolchain.NAME, packages=packages)
    if settings.build is not None:
        yield _workshop(settings, settings.build, packages, history, around)


def _workshop(
    settings: Builds, command: BuildCommand, packages: tuple[str, ...], history: History, around: Surroundings
) -> Workshop:
    if not around.engine.remaps_paths:
        raise UserError(f"builds are made in a sandbox; {around.engine.name} is none: use --sandbox auto")
    return Workshop(
        settings=settings,
        command=command,
        packages=packages,
        history=history,
        engine=around.engine,
        tools=around.store.environment(_tools_of(command)),
        root=around.store.root,
        run_id=around.run_id,
        say=around.say,
    )


def _tools_of(command: BuildCommand) -> Release:
    """A CPython of this machine with the packages that building needs: chosen by the operator, so none is refused."""
    minor = interpreters.choose(PYTHONS).version
    return Release(
        toolchain="python",
        version=minor,
        released=datetime.now(UTC).date(),
        distributions=command.requires,
        pythons=(minor,),
        source="machine",
    )


def _tag(toolchain: Toolchain, settings: Builds | None) -> Tag:
    """The tag of a version, by the configuration or the toolchain's custom; None for what is no version."""

    def tag(version: str) -> str | None:
        if settings is not None and settings.tag:
            return settings.tag.replace("{version}", version.removeprefix("v"))
        try:
            return toolchain.tag(version)
        except InvalidVersion:
            return None

    return tag


def _public_name(address: str) -> str:
    """``owner/name`` of a repository on GitHub."""
    parts = urlsplit(address)
    return parts.path.strip("/").removesuffix(".git") if parts.hostname == "github.com" else ""
