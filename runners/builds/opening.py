"""Open the sources of builds that this machine's configuration names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from packaging.version import InvalidVersion

from runners.builds.artifacts import ArtifactSource
from runners.builds.command import CommandSource
from runners.builds.commit_range import BuildRegistry, RangeFinder
from runners.builds.history import MainHistory, open_history
from runners.builds.published import FindTag, order_by_version, place_releases
from runners.builds.source import BuildSource
from runners.core.bisection.commits import Prior
from runners.core.errors import UserError
from runners.core.packages.catalogue import Catalogue, Release
from runners.environments.config import BuildCommand, BuildsConfig, Config
from runners.environments.interpreters import choose_interpreter
from runners.environments.store import Store
from runners.environments.wheel_sources import PYTHONS, add_network_builds
from runners.sandbox.contract import Engine
from runners.toolchains import Toolchain, find_toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """The parts of this machine that the sources need."""

    catalogue: Catalogue
    config: Config
    store: Store
    engine: Engine
    run_id: str
    say: Callable[[str], None]
    history: str = ""
    """A clone to use instead of the configured repository."""


def open_range_finder(
    name: str, context: BuildContext, registry: BuildRegistry, *, prior: Prior | None, wanted: tuple[str, ...]
) -> RangeFinder:
    """Return the range finder of a toolchain. A cached history that lacks one of the ``wanted`` revisions is fetched.

    Raises:
        UserError: the configuration of the toolchain's builds is incomplete, or its history is not a clone.
        InfraError: the history or a source cannot be reached.
    """
    toolchain, settings = find_toolchain(name), context.config.find_builds(name)
    find_tag = _make_tag_finder(toolchain, settings)
    address = context.history or (settings.repository if settings else "")
    history = None
    if address:
        revisions = tuple(find_tag(text) or text for text in wanted)
        branch = settings.branch if settings else "main"
        history = open_history(address, context.store.root, branch=branch, wanted=revisions)
    catalogue = add_network_builds(context.catalogue, name, context.config.wheels)
    listed = [r for r in catalogue.get_listing(name).releases if r.source not in {"bundle", "machine"}]
    sources: list[BuildSource] = [
        order_by_version(listed) if history is None else place_releases(listed, history, find_tag)
    ]
    if history is not None and settings is not None:
        sources += _open_commit_sources(toolchain, settings, history, context)
    over = settings.build.over if settings is not None and settings.build is not None else ""
    if over:
        sources = [source for source in sources if isinstance(source, CommandSource)]
    return RangeFinder(
        toolchain=name,
        catalogue=catalogue,
        history=history,
        sources=tuple(sources),
        find_tag=find_tag,
        registry=registry,
        repository=_read_public_name(address) or toolchain.REPOSITORY or "",
        prior=prior,
        over=over,
    )


def _open_commit_sources(
    toolchain: Toolchain, settings: BuildsConfig, history: MainHistory, context: BuildContext
) -> Iterator[BuildSource]:
    packages = settings.packages or tuple(pin.partition("==")[0] for pin in toolchain.list_distributions("0"))
    if not packages and (settings.artifacts or settings.build):
        raise UserError(f'[[builds]] of {toolchain.NAME} must say which packages they build: packages = ["name"]')
    for location in settings.artifacts:
        yield ArtifactSource(location=location, toolchain=toolchain.NAME, packages=packages)
    if settings.build is not None:
        yield _open_command_source(settings, settings.build, packages, history, context)


def _open_command_source(
    settings: BuildsConfig,
    command: BuildCommand,
    packages: tuple[str, ...],
    history: MainHistory,
    context: BuildContext,
) -> CommandSource:
    if not context.engine.remaps_paths:
        raise UserError(f"builds are made in a sandbox; {context.engine.name} is none: use --sandbox auto")
    return CommandSource(
        settings=settings,
        command=command,
        packages=packages,
        history=history,
        engine=context.engine,
        tools=context.store.get_environment(_make_tools_release(command)),
        root=context.store.root,
        run_id=context.run_id,
        say=context.say,
    )


def _make_tools_release(command: BuildCommand) -> Release:
    """Return a CPython of this machine with the packages of ``requires``.

    The operator chose the packages, so all are allowed.
    """
    minor = choose_interpreter(PYTHONS).version
    return Release(
        toolchain="python",
        version=minor,
        released=datetime.now(UTC).date(),
        distributions=command.requires,
        pythons=(minor,),
        source="machine",
    )


def _make_tag_finder(toolchain: Toolchain, settings: BuildsConfig | None) -> FindTag:
    """Return a function from a version to its tag, by the configuration or the toolchain's convention.

    The function returns None for a text that is not a version.
    """

    def find_tag(version: str) -> str | None:
        if settings is not None and settings.tag:
            return settings.tag.replace("{version}", version.removeprefix("v"))
        try:
            return toolchain.find_tag(version)
        except InvalidVersion:
            return None

    return find_tag


def _read_public_name(address: str) -> str:
    """Return ``owner/name`` of a repository on GitHub. Empty for any other address."""
    parts = urlsplit(address)
    return parts.path.strip("/").removesuffix(".git") if parts.hostname == "github.com" else ""
