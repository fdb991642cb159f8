"""A request → what is said at once, and the plan of what is to be run. The planning job, and the head of the daemon.

Reads the issue as data, asks the forge who may, writes replies and the progress note. Starts nothing: what leaves
here is a sealed plan, which other jobs run without any of our permissions.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.forge.contract import Reaction
from bot.requests.commands import PREFIX, Command, Verb, help_text
from bot.requests.conversation import Desk, Handled, Talk, react
from bot.requests.permissions import DAY, may_say
from bot.requests.plan_file import Sealed
from bot.requests.recheck import due
from bot.requests.replies import cancel, status, void
from bot.requests.request import Request, Trigger
from bot.requests.start_run import plan_run

__all__ = ["Desk", "Handled", "handle"]

RUNS = frozenset({Verb.RUN, Verb.RERUN, Verb.BISECT, Verb.MINIMIZE, Verb.APPROVE})
_REPLY = "<!-- reprobot:reply to={to} -->"


def handle(desk: Desk, request: Request) -> Handled:
    """Answer the request, as far as words go, and plan what it wants run.

    Raises:
        UserError: the forge refuses, or the issue is gone.
        InfraError: the forge does not answer.
    """
    number = request.number
    if number is None:
        number = due(desk.forge, request.repository, desk.settings, now=desk.now)
    if number is None:
        return Handled(number=0, said=("no issue is due",))
    if request.asked:
        react(desk, request, number, Reaction.EYES)  # before anything slow: people look for it at once
    talk = Talk(desk, request, number)
    for mistake in request.mistakes:
        talk.refuse(f"Line {mistake.line}: {mistake.why}{'' if mistake.why.endswith('?') else '.'}")
    sealed = _obey(talk, _commands(request))
    if talk.confused:
        react(desk, request, number, Reaction.CONFUSED)
    elif request.comment is not None:
        react(desk, request, number, Reaction.ROCKET if sealed else Reaction.PLUS_ONE)
    _say(talk)
    return Handled(number=number, said=tuple(talk.said), sealed=sealed)


def _commands(request: Request) -> tuple[Command, ...]:
    """Words first, in their order; of several runs asked for in one comment the last one counts."""
    if request.trigger is Trigger.SCHEDULE:
        return (Command(verb=Verb.RERUN),)
    words = [command for command in request.commands if command.verb not in RUNS]
    runs = [command for command in request.commands if command.verb in RUNS]
    return (*words, *runs[-1:])


def _obey(talk: Talk, commands: Sequence[Command]) -> Sealed | None:
    standing = talk.standing()
    sealed = None
    for command in commands:
        if (denied := may_say(command, standing)) is not None:
            talk.refuse(f"{denied.why}.")
            continue
        match command.verb:
            case Verb.HELP:
                talk.reply(help_text())
            case Verb.STATUS:
                talk.reply(status(talk))
            case Verb.CANCEL:
                cancel(talk)
            case Verb.VOID:
                void(talk, command, standing)
            case Verb.RUN | Verb.RERUN | Verb.BISECT | Verb.MINIMIZE | Verb.APPROVE:
                sealed = plan_run(talk, command, standing)
    return sealed


def _say(talk: Talk) -> None:
    """One reply for everything, once for each event, within the budget of replies."""
    if not talk.replies:
        return
    to = talk.request.comment or f"{talk.request.trigger}-{talk.request.at:%Y%m%d%H%M%S}"
    mark = _REPLY.format(to=to)
    mine = [
        comment for comment in talk.comments if comment.author == talk.me and "<!-- reprobot:reply" in comment.body
    ]
    recent = [comment for comment in mine if comment.created > talk.desk.now - DAY]
    if any(mark in comment.body for comment in mine) or len(recent) >= talk.settings.budgets.replies:
        return
    text = "\n\n".join(talk.replies)
    hint = f"\n\n`{PREFIX} help` lists the commands." if talk.confused else ""
    talk.forge.create_comment(talk.repository, talk.number, f"{text}{hint}\n\n{mark}\n")
