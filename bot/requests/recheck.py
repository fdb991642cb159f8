"""The clock's question: which issue's answer is due to be looked at again."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.forge import sticky_comment
from bot.forge.contract import Forge
from bot.requests.labels import labels_of
from bot.settings import Settings
from bot.verdict.verdict import VerdictKind

OPEN_ENDED = (VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.FLAKY, VerdictKind.INCONCLUSIVE)
"""What a newer release may turn into another answer."""
MIN_AGE = timedelta(days=1)
MOST_READ = 20
"""Issues whose comments are read for one tick: each costs a request."""


def due(forge: Forge, repository: str, settings: Settings, *, now: datetime) -> int | None:
    """The open issue whose answer is oldest, a day old at least: one for each tick. None when none is."""
    me = forge.whoami()
    labels = dict.fromkeys(name for kind in OPEN_ENDED for name in labels_of(settings, kind))
    briefs = {brief.number: brief for label in labels for brief in forge.issues_labelled(repository, label)}
    candidates = sorted(briefs.values(), key=lambda brief: brief.updated)[:MOST_READ]
    runs = {
        brief.number: ran
        for brief in candidates
        if brief.open and not brief.locked and not brief.is_pull_request
        for ran in [_last_run(forge, repository, brief.number, me)]
        if ran is not None and now - ran >= MIN_AGE
    }
    return min(runs, key=lambda number: runs[number], default=None)


def _last_run(forge: Forge, repository: str, number: int, me: str) -> datetime | None:
    record = sticky_comment.records(forge.comments(repository, number), me).get(number)
    return record.runs[-1].at if record is not None and record.runs else None
