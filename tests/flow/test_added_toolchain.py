"""docs/add-a-toolchain.md is true: what it says is enough for a new toolchain, from issue to verdict."""

from __future__ import annotations

import importlib
import re
import sys
from datetime import date
from pathlib import Path
from typing import cast

import pytest

from bot.cli import verbs
from bot.forge.source import parse_issue
from bot.plan import RunOptions
from runners.core.catalogue import Catalogue, decode_listing
from runners.core.progress import Silent
from runners.toolchains import TOOLCHAINS, Toolchain, find_toolchain
from runners.workbench import open_workbench

PAPER = (Path(__file__).parents[2] / "docs" / "add-a-toolchain.md").read_text(encoding="utf-8")


def block(language: str, fence: str = "```") -> str:
    """The paper's one block of that kind."""
    (found,) = re.findall(rf"^{fence}{language}\n(.*?)^{fence}$", PAPER, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Toolchain:
    """The module of the paper, under the name that its one line gives it."""
    text = PAPER[: PAPER.index("## 2.")]
    (tmp_path / "packaging_.py").write_text(text[text.index("```python\n") + 10 : text.rindex("```\n")])
    monkeypatch.syspath_prepend(tmp_path)
    toolchain = cast(Toolchain, importlib.import_module("packaging_"))
    del sys.modules["packaging_"]  # the next test imports it anew
    monkeypatch.setitem(cast(dict[str, Toolchain], TOOLCHAINS), toolchain.NAME, toolchain)
    return toolchain


def test_the_module_says_all_that_a_toolchain_says(added: Toolchain) -> None:
    """Every fact of the contract, and no name that the contract does not have."""
    facts = {name for name in vars(Toolchain) if not name.startswith("_")}
    assert facts <= set(dir(find_toolchain("packaging")))
    listing = decode_listing(block("json").encode())
    assert all(release.distributions == added.list_distributions(release.version) for release in listing.releases)


@pytest.mark.sandbox
@pytest.mark.compilers
def test_an_issue_about_an_added_toolchain_gets_its_verdict(added: Toolchain) -> None:
    """On real releases of a real package in a real sandbox; no other module was touched."""
    listing = decode_listing(block("json").encode())
    catalogue = Catalogue({added.NAME: listing})
    report = verbs.reproduce_issue(
        parse_issue(block("markdown", "````").encode(), source="issue.md", today=date(2026, 11, 21)),
        toolchain=added.NAME,
        options=RunOptions(),
        catalogue=catalogue,
        open_bench=lambda: open_workbench("auto", catalogue, Silent()),
    )
    assert report.verdict.kind == "regression"
    (change,) = [found for found in report.bisections if found.direction == "introduced"]
    assert (change.last_good, change.first_bad) == ("21.3", "22.0")
    assert change.commits is not None
    assert change.commits.compare_url == "https://github.com/pypa/packaging/compare/21.3...22.0"
