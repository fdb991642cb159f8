"""Decide whether an edit of an issue or a reply of its author brings another testcase. The run was not requested.

The code of an edit or a reply is often a workaround, a variant, or the old code in another format. So such an event
starts a run only if the issue's testcase changed, or if our answer was not definite.
"""

from __future__ import annotations

from dataclasses import replace

from bot.extract import Extraction, Repro
from bot.issue import Comment, Issue
from bot.requests.commands import SlashCommand, Verb
from bot.requests.conversation import IssueConversation
from bot.requests.markdown_lines import find_fences
from bot.requests.request import Trigger
from bot.requests.testcase import extract_with_blocks
from bot.verdict.verdict import VerdictKind
from runners.core.protocol import digest_of

OPEN_QUESTIONS = frozenset(
    {
        VerdictKind.NO_REPRO,
        VerdictKind.INCOMPLETE,
        VerdictKind.UNTESTABLE,
        VerdictKind.INCONCLUSIVE,
        VerdictKind.NOT_REPRODUCED,
    }
)
"""Verdicts after which a new program of the author runs instead of the issue's program."""


def find_follow_up(conversation: IssueConversation) -> SlashCommand | None:
    """Return the run that the event calls for; None if the issue's testcase is the same as before."""
    if conversation.request.trigger is Trigger.REPLY:
        return _find_run_of_reply(conversation)
    former = conversation.request.former
    if former is not None and not _is_changed(conversation, replace(conversation.issue, body=former)):
        return None
    return SlashCommand(verb=Verb.RUN)


def _find_run_of_reply(conversation: IssueConversation) -> SlashCommand | None:
    """Return a run of the issue's testcase if the reply completes it, or of the reply's own program."""
    issue = conversation.issue
    reply = next((one for one in conversation.comments if one.id == conversation.request.comment), None)
    if reply is None or not issue.is_by(reply.author):
        return None
    comment = Comment(author=reply.author, body=reply.body)
    before = replace(issue, comments=tuple(one for one in issue.comments if one != comment))
    if _is_changed(conversation, before):
        return SlashCommand(verb=Verb.RUN)
    blocks = find_fences(reply.body)
    if not blocks or conversation.sticky.verdict not in OPEN_QUESTIONS:
        return None
    settings = conversation.settings
    own = extract_with_blocks(issue, toolchain=settings.toolchain, blocks=blocks, allow=settings.allow)
    is_complete = isinstance(own, Repro) and not own.missing and not own.only_defines
    return SlashCommand(verb=Verb.RUN, blocks=blocks) if is_complete else None


def _is_changed(conversation: IssueConversation, before: Issue) -> bool:
    """True if the issue has another testcase than ``before``, or lacks other parts of one."""
    settings = conversation.settings
    was, now = (
        extract_with_blocks(issue, toolchain=settings.toolchain, allow=settings.allow)
        for issue in (before, conversation.issue)
    )
    return _identify(was) != _identify(now)


def _identify(extraction: Extraction) -> tuple[object, ...]:
    digest = digest_of(extraction.testcase) if isinstance(extraction, Repro) else ""
    return digest, extraction.missing, extraction.intent
