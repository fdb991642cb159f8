"""Judge runs with the reported failure: on which releases, and whether it was introduced or fixed. Pure."""

from __future__ import annotations

from bot.verdict.rules.reproduced.contradicted import judge_contradicted
from bot.verdict.rules.reproduced.facts import list_grounds
from bot.verdict.rules.reproduced.judge import judge_reproduced
from bot.verdict.rules.reproduced.ported import judge_only_ported
from bot.verdict.rules.reproduced.younger_package import judge_younger_package

__all__ = ["judge_contradicted", "judge_only_ported", "judge_reproduced", "judge_younger_package", "list_grounds"]
