"""What is answered with words alone: how things stand, a run that is dropped, a verdict that is withdrawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec

from bot.forge import sticky_comment
from bot.forge.run_record import Run, RunState, Void
from bot.report.quote import code
from bot.requests import labels
from bot.requests.commands import PREFIX, Command
from bot.requests.conversation import Talk, log_of
from bot.requests.permissions import Standing, spent

STALE = timedelta(hours=6)
"""A run that has not ended by then never will: GitHub stops a hosted job after six hours."""


def under_way(talk: Talk) -> Run | None:
    """The run under way, if there is one."""
    alive = [r for r in talk.record.runs if r.state is RunState.RUNNING and r.at > talk.desk.now - STALE]
    return alive[-1] if alive else None


def status(talk: Talk) -> str:
    lines = []
    if (alive := under_way(talk)) is not None:
        lines.append(f"Running since {alive.at:%H:%M} UTC{log_of(alive.url)}.")
    past = [run for run in talk.record.runs if run.verdict]
    if past:
        lines.append(f"Last answer: {past[-1].verdict}, {past[-1].at:%Y-%m-%d %H:%M} UTC{log_of(past[-1].url)}.")
    if talk.record.void is not None:
        lines.append("That verdict was voided by a maintainer.")
    lines = lines or ["Nothing was run on this issue yet."]
    used = spent({talk.number: talk.record}, number=talk.number, user="", now=talk.desk.now).issue
    left = max(0, talk.settings.budgets.issue - used)
    return " ".join([*lines, f"{left} of {talk.settings.budgets.issue} runs are left here for today."])


def cancel(talk: Talk) -> None:
    alive = under_way(talk)
    if talk.sheet.note == _note_cancelled(talk):
        return  # by this very command, before we were killed
    if alive is None:
        talk.reply("Nothing is running here.")
        return
    record = talk.record.ended(alive.id, RunState.CANCELLED)
    talk.publish(replace(talk.sheet, record=record, note=_note_cancelled(talk)))
    talk.said.append(f"run {alive.id} is cancelled: its answer will not be posted")


def _note_cancelled(talk: Talk) -> str:
    return f"> The run under way was cancelled by {code(talk.request.actor)}; `{PREFIX} rerun` starts another."


def void(talk: Talk, command: Command, standing: Standing) -> None:
    """Withdraw the verdict; it stays readable, under who withdrew it and why, until there is another."""
    if talk.sheet.verdict == sticky_comment.RUNNING:
        talk.reply("There is no verdict here to void.")
        return
    void = Void(by=standing.login[:100], at=talk.desk.now, why=command.words[:400])
    record = msgspec.structs.replace(talk.record, void=void)
    talk.publish(replace(talk.sheet, record=record))
    labels.apply(talk.forge, talk.repository, talk.number, talk.settings, None)
    talk.said.append("the verdict is voided")
