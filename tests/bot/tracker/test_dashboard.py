"""The dashboard: whole without the network, and safe with strangers' words."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.tracker.dashboard import render_csv, render_dashboard, render_markdown, write_dashboard
from bot.tracker.rows import Change, IssueRow
from runners.core.packages.catalogue import load_catalogue
from tests.bot.tracker.rows import SUMMARY, make_row
from tests.bot.tracker.world import World, write_issue
from tests.support.browser import load_page

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&\u202e\u2028"


def render(*rows: IssueRow, changes: tuple[Change, ...] = ()) -> str:
    return render_dashboard("octo/compiler", rows, changes, (), SUMMARY, load_catalogue(), now=NOW)


def read_data(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, object] = json.loads(found[1])
    return data


def test_page_loads_nothing() -> None:
    """No address is fetched, and the policy lets no other script or style run."""
    page = render(make_row("7"))
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b|\bsrc=|@import|url\(|fetch\(|XMLHttpRequest", page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy[1] or f"{tag}-src 'sha256-{digest}'" in policy[1]
    assert "default-src" in policy[1]
    assert "unsafe" not in policy[1]


def test_strangers_words_are_data() -> None:
    """No text of an issue can end the data block; the script sets texts and no markup."""
    row = make_row("7", title=HOSTILE, labels=(HOSTILE,), headline=HOSTILE, why=HOSTILE, passes=(HOSTILE,))
    page = render(row)
    assert page.count("<script") == 2
    assert "<img" not in page
    assert "alert(1)" in str(read_data(page)["rows"])
    script = Path("bot/tracker/dashboard.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\.href\s*=", script)


def test_only_web_addresses_become_links() -> None:
    """An address comes from the forge's name, but the state's file may have been changed."""
    script = Path("bot/tracker/dashboard.js").read_text()
    assert script.count("href: url") == 1
    assert r"/^https:\/\//.test(url" in script


def test_cells_stand_under_their_releases() -> None:
    data = read_data(
        render(
            make_row("1", cells={"0.25.0": "bad", "0.26.0": "good"}),
            make_row("2", cells={"0.25.0.post1": "incompatible"}),
            make_row("3", toolchain="iree", cells={"3.8.0": "mixed"}),
        )
    )
    assert data["releases"] == {"iree": ["3.8.0"], "tvm": ["0.25.0", "0.25.0.post1", "0.26.0"]}
    assert [row["cells"] for row in data["rows"]] == ["b.g", ".i", "m"]  # type: ignore[attr-defined]


@pytest.mark.contract
def test_the_newest_release_stands_beside_the_verdict(tmp_path: Path) -> None:
    """On a narrow screen the last columns are out of sight. A release on which no shown issue ran has no column."""
    page = render(
        make_row("1", cells={"0.25.0": "bad", "0.26.0": "good"}),
        make_row("2", toolchain="iree", cells={"3.8.0": "bad", "3.9.0": "bad"}),
    )
    heads = re.search(r"<thead>(.*?)</thead>", load_page(page, tmp_path), re.DOTALL)
    assert heads is not None
    assert re.findall(r"<span>(.*?)</span>", heads[1]) == ["iree 3.9.0", "iree 3.8.0", "tvm 0.26.0", "tvm 0.25.0"]


def test_formulas_are_disarmed_in_csv() -> None:
    text = render_csv([make_row("7", title='=HYPERLINK("http://x")', labels=("@x",))])
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["title"].startswith("'=")
    assert row["labels"].startswith("'@")


def test_markdown_quotes_titles() -> None:
    assert "**confirmed**" in render_markdown("t", [make_row("7", title="@all <b>")])
    assert "`@\u200ball <b>`" in render_markdown("t", [make_row("7", title="@all <b>")])


def test_files_of_a_sweep(tmp_path: Path) -> None:
    """Changes, duplicates and costs of a real sweep reach the page and the files beside it."""
    for name in ("one", "two"):
        write_issue(tmp_path / "issues", name)
    world = World(folder=tmp_path / "issues", out=tmp_path / "out")
    summary = world.sweep()
    write_dashboard(world.out, "t", world.state, summary, world.open().catalogue, now=NOW)
    rows = json.loads((world.out / "issues.json").read_text())["issues"]
    assert {row["issue"]["id"]: row["like"] for row in rows} == {"one.md": ["two.md"], "two.md": ["one.md"]}
    assert json.loads((world.out / "sweep.json").read_text())["runs_made"] == summary.runs_made
    data = read_data((world.out / "index.html").read_text())
    assert all((world.out / row["page"]).is_file() for row in data["rows"])  # type: ignore[attr-defined]
    assert world.sweep().answered == 0  # likeness is no part of an answer
