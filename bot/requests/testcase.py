"""Read the testcase that a command is about, and choose the options of its run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from bot.extract import Extraction, NoRepro, Repro, extract
from bot.issue import Issue
from bot.plan import RunOptions
from bot.report.assemble import ReportInput
from bot.requests.commands import SlashCommand, Verb
from bot.requests.markdown_lines import CodeBlock
from bot.settings import Settings
from runners.core.packages.requirements import parse_allowance
from runners.core.protocol import Budget, Claim, ClaimKind


def choose_options(settings: Settings, command: SlashCommand, *, anyway: bool = False) -> RunOptions:
    """Return the command's options; for each option without a value, that of the settings."""
    given = command.options
    versions = given.get("versions", settings.versions)
    if command.verb is Verb.BISECT:
        versions = f"{given['good']}..{given['bad']}"
    devices = tuple(given["devices"].split(",")) if "devices" in given else settings.devices
    limits = settings.limits
    timeout = given.get("timeout", limits.timeout)
    return RunOptions(
        versions=versions,
        devices=devices,
        bisect=settings.bisect or command.verb is Verb.BISECT,
        anyway=anyway,
        minimize=command.verb is Verb.MINIMIZE,
        timeout_s=float(timeout) if timeout is not None else None,
        sandbox=settings.sandbox,
        allowed=settings.allow,
        budget=Budget(probes=limits.probes, wall_s=60.0 * limits.minutes),
    )


def read_testcase(issue: Issue, settings: Settings, command: SlashCommand, *, anyway: bool = False) -> ReportInput:
    """Extract the testcase that a command is about, and choose the options of its run.

    ``anyway`` runs the testcase even if the text reports no failure, because an account requested the run.
    """
    return ReportInput(
        issue=issue,
        toolchain=settings.toolchain,
        options=choose_options(settings, command, anyway=anyway),
        extraction=extract_with_blocks(
            issue, toolchain=settings.toolchain, blocks=command.blocks, allow=settings.allow
        ),
    )


def extract_with_blocks(
    issue: Issue, *, toolchain: str | None, blocks: Sequence[CodeBlock] = (), allow: Sequence[str] = ()
) -> Extraction:
    """Extract the testcase of an issue, or of ``blocks`` instead. The claim is always the issue's."""
    allowed = parse_allowance(allow)
    of_issue = extract(issue, toolchain=toolchain, allowed=allowed)
    if not blocks:
        return of_issue
    known = of_issue.testcase.toolchain if isinstance(of_issue, Repro) else of_issue.toolchain
    stand_in = replace(issue, body="\n\n".join(map(_fence_block, blocks)), comments=(), attachments=(), refused=())
    of_blocks = extract(stand_in, toolchain=known, allowed=allowed)
    claim = _choose_claim(of_blocks.claim, of_issue.claim)
    if isinstance(of_blocks, NoRepro):
        return replace(of_blocks, claim=claim)
    return replace(of_blocks, claim=claim, spans=())


def _fence_block(block: CodeBlock) -> str:
    ticks = "```"
    while ticks in block.text:
        ticks += "`"
    return f"{ticks}{block.info}\n{block.text.rstrip()}\n{ticks}"


def _choose_claim(of_blocks: Claim, of_issue: Claim) -> Claim:
    """Return the issue's claim, unless only the blocks show how the testcase fails (by a check of their own)."""
    if of_issue.kind is ClaimKind.UNKNOWN and of_blocks.kind is not ClaimKind.UNKNOWN:
        return msgspec.structs.replace(of_blocks, versions=of_blocks.versions or of_issue.versions)
    return of_issue
