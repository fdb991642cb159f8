"""Judge runs without the reported failure: clean runs, other failures, or no answer at all. Pure."""

from __future__ import annotations

from bot.verdict.rules.not_reproduced.judge import judge_not_reproduced

__all__ = ["judge_not_reproduced"]
