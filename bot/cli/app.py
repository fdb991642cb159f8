"""argv → verb. What the verbs do is in app.py; what they print in terminal.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bot.cli import daemon, jobs, terminal, verbs
from bot.extract import extract
from bot.forge import github
from bot.forge.attachments import hosts_of, web_get, with_attachments
from bot.forge.source import read_source
from bot.issue import Issue, is_remote
from bot.plan import Wishes
from bot.report.document import dumps, extract_document, smaller_document, suspects_document
from bot.report.files import Outputs, write_file, write_report
from runners.builds.commit_log import CommitLog
from runners.builds.history import open_history
from runners.core.bench import MOST_PROBES, MOST_SECONDS
from runners.core.catalogue import Catalogue
from runners.core.errors import UserError
from runners.core.progress import Sink
from runners.core.protocol import Budget
from runners.core.requirements import parse_allowance
from runners.doctor import check_machine_parts
from runners.environments.config import read_config
from runners.environments.refresh import refresh_catalogue
from runners.environments.store import default_root, open_store
from runners.environments.wheel_sources import open_catalogue
from runners.sandbox.select import check_engine_name, remove_leftovers, remove_skeleton, use_image
from runners.toolchains import find_toolchain, list_compilers
from runners.workbench import Workbench, open_workbench

app = typer.Typer(
    name="reprobot",
    help="Answers a bug report for an ML compiler: runs its repro against many releases and says what it saw.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

IssueArgument = Annotated[
    str,
    typer.Argument(metavar="ISSUE", help="A Markdown file ('# title' first), '-', owner/repo#N, or an issue's URL."),
]
ToolchainOption = Annotated[
    str | None, typer.Option(help=f"{list_compilers()}; found from the text when not given.", metavar="NAME")
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(help="A package that a testcase may also install; repeatable; 'import=package'.", metavar="NAME"),
]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the JSON document here.", metavar="FILE")]
HistoryOption = Annotated[
    Path | None,
    typer.Option(help="A clone of the toolchain's repository: its commits are ranked.", metavar="DIR"),
]
SandboxOption = Annotated[
    str, typer.Option(help="auto, docker, podman, bubblewrap, gvisor or none.", metavar="ENGINE")
]
ImageOption = Annotated[
    str,
    typer.Option(
        help="Run in this runner image instead of the host's system (docker, podman).",
        metavar="NAME",
        envvar="REPROBOT_IMAGE",
        callback=use_image,
    ),
]
TimeoutOption = Annotated[
    float | None, typer.Option(help="Seconds that one run may take (120; 40 for a hang).", min=1, max=3600)
]
WheelsOption = Annotated[
    list[str] | None,
    typer.Option(help="A directory of wheels, whose builds join the releases; repeatable.", metavar="DIR"),
]
HtmlOption = Annotated[Path | None, typer.Option(help="Write a self-contained page here.", metavar="FILE")]
CommentOption = Annotated[Path | None, typer.Option(help="Write the Markdown comment here.", metavar="FILE")]
FetchOption = Annotated[
    bool | None,
    typer.Option(
        "--fetch-attachments/--no-fetch-attachments",
        help="Fetch files that the issue links to on GitHub, when it lacks them; done for issues read from there.",
    ),
]


def _read(source: str, toolchain: str | None, fetch: bool | None) -> Issue:
    today = datetime.now(tz=UTC).date()
    issue = read_source(
        source, today=today, fetch=lambda repo, number: github.fetch_issue(github.connect(), repo, number)
    )
    if not (is_remote(source) if fetch is None else fetch):
        return issue
    hosts = hosts_of(os.environ)
    return with_attachments(issue, toolchain=toolchain, forge=hosts.forge, get=web_get(hosts.allow))


def _checked(toolchain: str | None, sandbox: str, allow: list[str] | None) -> dict[str, str]:
    """What --allow gives, after refusing a toolchain or an engine that nobody knows: before anything is fetched."""
    if toolchain is not None:
        find_toolchain(toolchain)
    check_engine_name(sandbox)
    return parse_allowance(allow or [])


def _folders(wheels: list[str] | None) -> tuple[str, ...]:
    return tuple(str(Path(folder).expanduser().absolute()) for folder in wheels or ())


def _bench(
    wishes: Wishes, catalogue: Catalogue, progress: Sink, allowed: Mapping[str, str]
) -> Callable[[], Workbench]:
    also = frozenset(allowed.values())
    return lambda: open_workbench(wishes.sandbox, catalogue, progress, also_allowed=also, history=wishes.history)


@app.command()
def reproduce(
    issue: IssueArgument,
    toolchain: ToolchainOption = None,
    versions: Annotated[
        str | None,
        typer.Option(help="'0.25.0,0.26.0', '3.4.0..3.8.0', '>=3.4,<3.8', 'latest' or 'all'.", metavar="LIST|RANGE"),
    ] = None,
    devices: Annotated[str, typer.Option(help="Further devices to run it on: 'vulkan'.", metavar="LIST")] = "",
    bisect: Annotated[
        bool, typer.Option("--bisect/--no-bisect", help="Look for the releases where it changes.")
    ] = True,
    sandbox: SandboxOption = "auto",
    image: ImageOption = "",
    timeout: TimeoutOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    wheels: WheelsOption = None,
    history: HistoryOption = None,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Also cut the testcase down to what its failure needs.")
    ] = False,
    json: JsonOption = None,
    html: HtmlOption = None,
    comment: CommentOption = None,
) -> None:
    """Take the repro out of an issue, run it in sandboxes against releases, and say what happened and since when."""
    allowed = _checked(toolchain, sandbox, allow)
    read = _read(issue, toolchain, fetch_attachments)
    wishes = Wishes(
        versions=versions,
        devices=tuple(name for name in devices.replace(" ", "").split(",") if name),
        bisect=bisect,
        timeout_s=timeout,
        sandbox=sandbox,
        allowed=tuple(allow or ()),
        wheels=_folders(wheels),
        history=str(history or ""),
        minimize=minimize,
    )
    catalogue = open_catalogue(default_root() / "catalogue", wishes.wheels)
    with terminal.progress() as progress:
        report = verbs.reproduce(
            read,
            toolchain=toolchain,
            wishes=wishes,
            catalogue=catalogue,
            open_bench=_bench(wishes, catalogue, progress, allowed),
            allowed=allowed,
            history=None if history is None else CommitLog(history),
        )
    text = write_report(report, Outputs(json=json, html=html, comment=comment))
    terminal.show(report, text)


@app.command()
def bisect(
    issue: IssueArgument,
    good: Annotated[str, typer.Option(help="A version, tag or commit that works.", metavar="V")],
    bad: Annotated[str, typer.Option(help="One that fails as reported.", metavar="V")],
    toolchain: ToolchainOption = None,
    history: HistoryOption = None,
    minutes: Annotated[
        float | None, typer.Option(help="How long it may take (240).", min=1, max=10_000, metavar="N")
    ] = None,
    workers: Annotated[int, typer.Option(help="Runs side by side.", min=1, max=64, metavar="N")] = 2,
    sandbox: SandboxOption = "auto",
    image: ImageOption = "",
    timeout: TimeoutOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    wheels: WheelsOption = None,
    json: JsonOption = None,
    html: HtmlOption = None,
    comment: CommentOption = None,
) -> None:
    """Find where it changes between two versions: to the nightly, or to the commit, as far as builds can be had."""
    allowed = _checked(toolchain, sandbox, allow)
    read = _read(issue, toolchain, fetch_attachments)
    wishes = Wishes(
        ends=(good, bad),
        history=str(history or ""),
        minutes=minutes,
        timeout_s=timeout,
        sandbox=sandbox,
        allowed=tuple(allow or ()),
        wheels=_folders(wheels),
        budget=Budget(workers=workers),
    )
    catalogue = open_catalogue(default_root() / "catalogue", wishes.wheels)
    with terminal.progress() as progress:
        report = verbs.bisect(
            read,
            toolchain=toolchain,
            wishes=wishes,
            catalogue=catalogue,
            open_bench=_bench(wishes, catalogue, progress, allowed),
            allowed=allowed,
            history=None if history is None else CommitLog(history),
        )
    text = write_report(report, Outputs(json=json, html=html, comment=comment))
    terminal.show(report, text)


@app.command()
def suspects(
    issue: IssueArgument,
    toolchain: Annotated[str, typer.Option(help=f"{list_compilers()}.", metavar="NAME")],
    start: Annotated[
        str, typer.Option("--from", help="The commits after this one: a release, tag or commit.", metavar="REV")
    ],
    end: Annotated[str, typer.Option("--to", help="Up to and including this one.", metavar="REV")],
    history: HistoryOption = None,
    json: JsonOption = None,
) -> None:
    """Rank the commits of a range by how much they have to do with an issue. Runs nothing, and accuses nobody."""
    find_toolchain(toolchain)
    catalogue = open_catalogue(default_root() / "catalogue")
    read = _read(issue, toolchain, None)
    commits, found = verbs.find_suspects(
        read,
        toolchain=toolchain,
        start=start,
        end=end,
        catalogue=catalogue,
        history=CommitLog(history or _clone_of(toolchain, catalogue, (start, end))),
        dated=is_remote(issue) or read.created < datetime.now(tz=UTC).date(),
    )
    if json is not None:
        write_file(json, dumps(suspects_document(commits, found)))
    terminal.show_suspects(commits, found)


def _clone_of(toolchain: str, catalogue: Catalogue, wanted: tuple[str, str]) -> Path:
    """The configured history of a toolchain, or a clone of its own repository, cached without file contents."""
    builds, repository = read_config().find_builds(toolchain), catalogue.listing(toolchain).repository
    if builds is None and repository is None:
        raise UserError("name a clone of the toolchain's repository with --history DIR")
    source = builds.repository if builds is not None else f"https://github.com/{repository}"
    return open_history(source, default_root(), wanted=wanted).clone


@app.command(name="minimize")
def minimize_(
    issue: IssueArgument,
    toolchain: ToolchainOption = None,
    version: Annotated[
        str | None, typer.Option(help="The release to cut it down on; else the newest that fails.", metavar="V")
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(help="A release on which every step must pass; needed for some wrong results.", metavar="V"),
    ] = None,
    sandbox: SandboxOption = "auto",
    image: ImageOption = "",
    probes: Annotated[int, typer.Option(help="Runs it may take.", min=5, max=10_000)] = MOST_PROBES,
    minutes: Annotated[float, typer.Option(help="Time it may take.", min=0.1, max=600)] = MOST_SECONDS / 60,
    timeout: TimeoutOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    json: JsonOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the smaller testcase here: its longest file.", metavar="FILE")
    ] = None,
) -> None:
    """Cut an issue's testcase down to what its failure needs, in sandboxes, and check that it is the same failure."""
    allowed = _checked(toolchain, sandbox, allow)
    read = _read(issue, toolchain, fetch_attachments)
    wishes = Wishes(versions=version, timeout_s=timeout, sandbox=sandbox, allowed=tuple(allow or ()))
    catalogue = open_catalogue(default_root() / "catalogue")
    with terminal.progress() as progress:
        smaller = verbs.minimize(
            read,
            toolchain=toolchain,
            wishes=wishes,
            catalogue=catalogue,
            open_bench=_bench(wishes, catalogue, progress, allowed),
            allowed=allowed,
            good=good,
            probes=probes,
            seconds=60 * minutes,
        )
    if json is not None:
        write_file(json, dumps(smaller_document(read, smaller)))
    if out is not None:
        write_file(out, max(smaller.testcase.files.values(), key=len, default=""))
    terminal.show_smaller(smaller)


@app.command(name="extract")
def extract_(
    issue: IssueArgument,
    toolchain: ToolchainOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    json: JsonOption = None,
) -> None:
    """Only read the issue: its testcase, what is missing, and what the reporter claims. Runs nothing."""
    read = _read(issue, toolchain, fetch_attachments)
    text = dumps(extract_document(read, extract(read, toolchain=toolchain, allowed=parse_allowance(allow or []))))
    if json is None:
        terminal.write(text + "\n")
    else:
        write_file(json, text)


@app.command()
def doctor(json: JsonOption = None) -> None:
    """What works on this machine, and why the rest does not."""
    checks = check_machine_parts()
    if json is not None:
        write_file(json, dumps({"schema": 1, "checks": [msgspec.to_builtins(check) for check in checks]}))
    terminal.show_checks(checks)


@app.command()
def clean(
    keep: Annotated[
        float | None,
        typer.Option(help="Keep this many GiB of environments, the last used ones.", min=0, metavar="GIB"),
    ] = None,
) -> None:
    """Remove what runs left behind, and the cache: all of it, or what is over --keep."""
    for left in remove_leftovers():
        typer.echo(f"removed {left}")
    store = open_store(default_root())
    if keep is None and not remove_skeleton():
        typer.echo("kept what podman starts from: a probe is running in it. Clean again when it has ended")
    freed = store.clean() if keep is None else store.trim(int(keep * 2**30))
    typer.echo(f"freed {freed / 2**20:.0f} MiB in {default_root()}")


@app.command()
def refresh() -> None:
    """Ask the package index for releases that the catalogue does not know yet."""
    with terminal.progress() as progress:
        for name, known in refresh_catalogue(progress):
            typer.echo(f"{name}: {known} releases known")


app.command()(jobs.plan)
app.command()(jobs.probe)
app.command()(jobs.report)
app.command()(daemon.watch)
app.command()(daemon.sweep)
