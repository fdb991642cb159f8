"""Labels for verdicts: choose their names and colours, and update an issue's labels."""

from __future__ import annotations

from bot.forge.contract import Forge
from bot.settings import Settings
from bot.verdict.verdict import LABELS, VerdictKind

COLOURS = {
    VerdictKind.REGRESSION: "b60205",
    VerdictKind.CONFIRMED: "d93f0b",
    VerdictKind.FIXED: "0e8a16",
    VerdictKind.FLAKY: "fbca04",
}
OTHER_COLOUR = "c5def5"


def choose_labels(settings: Settings, kind: VerdictKind) -> tuple[str, ...]:
    """Return the labels of a verdict under this repository's names."""
    return settings.choose_labels(kind, LABELS[kind])


def list_managed_labels(settings: Settings) -> tuple[str, ...]:
    """Return every label that a verdict can put on an issue. Only these are ever removed."""
    return tuple(dict.fromkeys(name for kind in VerdictKind for name in choose_labels(settings, kind)))


def update_labels(forge: Forge, repository: str, number: int, settings: Settings, kind: VerdictKind | None) -> None:
    """Add the verdict's labels to an issue, creating missing ones, and remove our labels of other verdicts.

    None removes all of ours.
    """
    target = choose_labels(settings, kind) if kind is not None else ()
    present = forge.list_labels(repository, number)
    for name in list_managed_labels(settings):
        if name in present and name not in target:
            forge.remove_label(repository, number, name)
    missing = tuple(name for name in target if name not in present)
    for name in missing:
        forge.ensure_label(
            repository,
            name,
            colour=_choose_colour(settings, name),
            description="What Reprobot saw when it ran the testcase",
        )
    if missing:
        forge.add_labels(repository, number, missing)


def _choose_colour(settings: Settings, name: str) -> str:
    """Return the colour of the first verdict whose first label is ``name``."""
    kinds = (kind for kind in VerdictKind if choose_labels(settings, kind)[:1] == (name,))
    return COLOURS.get(next(kinds, VerdictKind.NO_REPRO), OTHER_COLOUR)
