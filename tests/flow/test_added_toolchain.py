"""The toolchain of docs/add-a-toolchain.md works as the page states it, from an issue to a verdict."""

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
from runners.core.packages.catalogue import Catalogue, decode_listing
from runners.core.progress import Silent
from runners.toolchains import TOOLCHAINS, Toolchain, find_toolchain
from runners.workbench import open_workbench

PAGE = (Path(__file__).parents[2] / "docs" / "add-a-toolchain.md").read_text(encoding="utf-8")


def read_block(language: str, fence: str = "```") -> str:
    """Return the page's first block of a language outside the issue."""
    text = PAGE if fence == "````" else re.sub(r"^````.*?^````$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    (found,) = re.findall(rf"^{fence}{language}\n(.*?)^{fence}$", text, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Toolchain:
    """The toolchain of the page, under the name that the page's line gives it."""
    (tmp_path / "packaging_.py").write_text(read_block("python"))  # `packaging` itself is in use here
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("packaging_")
    del sys.modules["packaging_"]  # the next test imports it anew
    line = re.search(r'^"(\w+)": (\w+)\(\),$', PAGE, re.MULTILINE)
    assert line is not None
    toolchain = cast(Toolchain, getattr(module, line[2])())
    monkeypatch.setitem(cast(dict[str, Toolchain], TOOLCHAINS), line[1], toolchain)
    return toolchain


def test_three_facts_are_a_toolchain(added: Toolchain) -> None:
    """The page states the required facts, and no fact that the contract does not have."""
    required = {name for name, fact in vars(Toolchain).items() if getattr(fact, "__isabstractmethod__", False)}
    stated = {name for name in vars(type(added)) if not name.startswith("_")}
    assert required == {"NAME", "CANARY", "list_distributions"}
    assert required <= stated <= set(dir(Toolchain))
    assert find_toolchain("packaging") is added


def test_a_missing_required_fact_is_refused(added: Toolchain) -> None:
    """A class without one of the required facts cannot be made an object."""
    nameless = type("Nameless", (Toolchain,), {"CANARY": added.CANARY})
    with pytest.raises(TypeError, match="NAME"):
        nameless()


def test_the_releases_of_the_page_have_the_distributions_of_the_class(added: Toolchain) -> None:
    listing = decode_listing(read_block("json").encode())
    assert all(release.distributions == added.list_distributions(release.version) for release in listing.releases)


@pytest.mark.sandbox
@pytest.mark.compilers
def test_an_issue_about_an_added_toolchain_gets_its_verdict(added: Toolchain) -> None:
    """Real releases run in a real sandbox, and no other module changes."""
    listing = decode_listing(read_block("json").encode())
    catalogue = Catalogue({added.NAME: listing})
    report = verbs.reproduce_issue(
        parse_issue(read_block("markdown", "````").encode(), source="issue.md", today=date(2026, 11, 21)),
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
