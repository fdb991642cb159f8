"""Commands that look after this machine: its sandboxes, environments and catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.options import JsonOption

if TYPE_CHECKING:
    pass


def run_doctor(json: JsonOption = None) -> None:
    """Check this machine: which parts of Reprobot work here, and why the others do not."""
    import msgspec

    from bot.cli import terminal
    from bot.cli.preflight import check_outputs
    from bot.report.document import format_json
    from bot.report.files import write_file
    from runners.doctor import check_machine_parts

    check_outputs(json)
    checks = check_machine_parts()
    if json is not None:
        write_file(json, format_json({"schema": 1, "checks": [msgspec.to_builtins(check) for check in checks]}))
    terminal.show_checks(checks)


def run_clean(
    keep: Annotated[
        float | None,
        typer.Option(help="Keep this many GiB of environments, the most recently used.", min=0, metavar="GIB"),
    ] = None,
) -> None:
    """Remove leftovers of runs, and the cached environments: all, or those over --keep."""
    from runners.environments.store import default_root, open_store
    from runners.sandbox.select import remove_leftovers, remove_skeleton

    for leftover in remove_leftovers():
        typer.echo(f"removed {leftover}")
    store = open_store(default_root())
    if keep is None and not remove_skeleton():
        typer.echo("kept podman's base directory: a probe is running in it. Clean again when the probe has ended")
    freed = store.clean() if keep is None else store.trim(int(keep * 2**30))
    typer.echo(f"freed {freed / 2**20:.0f} MiB in {default_root()}")


def run_refresh() -> None:
    """Ask the package index and the configured sources for builds that the catalogue does not have yet."""
    from bot.cli import terminal
    from runners.environments.refresh import refresh_catalogue

    with terminal.show_progress() as sink:
        for name, count in refresh_catalogue(sink):
            typer.echo(f"{name}: {count} releases known")
