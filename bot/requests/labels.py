"""The labels of verdicts: which are ours, how they look, and what to change on an issue."""

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
PLAIN = "c5def5"


def labels_of(settings: Settings, kind: VerdictKind) -> tuple[str, ...]:
    """The labels of a verdict under this repository's names."""
    return settings.choose_labels(kind, LABELS[kind])


def managed(settings: Settings) -> tuple[str, ...]:
    """Every label that some verdict puts on an issue: ours to take off again."""
    return tuple(dict.fromkeys(name for kind in VerdictKind for name in labels_of(settings, kind)))


def apply(forge: Forge, repository: str, number: int, settings: Settings, kind: VerdictKind | None) -> None:
    """Put the verdict's labels on, created where missing, and take stale ones of ours off; None takes all off."""
    wanted = labels_of(settings, kind) if kind is not None else ()
    there = forge.labels(repository, number)
    for name in managed(settings):
        if name in there and name not in wanted:
            forge.remove_label(repository, number, name)
    missing = tuple(name for name in wanted if name not in there)
    for name in missing:
        forge.ensure_label(
            repository, name, colour=_colour(settings, name), description="What Reprobot saw when it ran the testcase"
        )
    if missing:
        forge.add_labels(repository, number, missing)


def _colour(settings: Settings, name: str) -> str:
    """The colour of the first verdict that has this label as its first."""
    kinds = (kind for kind in VerdictKind if labels_of(settings, kind)[:1] == (name,))
    return COLOURS.get(next(kinds, VerdictKind.NO_REPRO), PLAIN)
