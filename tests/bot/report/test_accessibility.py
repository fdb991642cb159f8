"""axe finds no fault on a page: checked in Chromium, with the package that its authors publish."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from bot.report.page import render_page
from bot.tracker.dashboard import render_dashboard
from bot.tracker.rows import Change
from bot.verdict.verdict import Report
from runners.core.packages.catalogue import load_catalogue
from tests.bot.report import reports
from tests.bot.report.test_gantt import TIMES
from tests.bot.tracker.rows import SUMMARY, make_row
from tests.support.browser import load_page

AXE = "axe-core@4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Of ``axe.min.js`` in the package."""
SIZES = {"desktop": "1000,900", "telephone": "390,900"}
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_RUN = """
setTimeout(() => axe.run().then(found => {
  const shown = document.createElement("pre");
  shown.id = "found";
  shown.textContent = JSON.stringify(found.violations.map(one => [one.id, one.nodes.length, one.nodes[0].html]));
  document.body.append(shown);
}), 200);
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script, from the package index of npm, pinned by version and hash."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("axe")
    made = subprocess.run(
        [npm, "pack", AXE, "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000"],
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    archives = list(folder.glob("*.tgz"))
    if made.returncode or not archives:
        pytest.skip(f"{AXE} cannot be fetched: {made.stderr[-200:]}")
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        script = member.read()
    assert hashlib.sha256(script).hexdigest() == SHA256
    return script.decode()


def show_dashboard() -> str:
    """Return a dashboard with each of its parts: rows of both compilers, a change, and cells of every kind."""
    rows = (
        make_row("1", cells={"0.25.0": "bad", "0.26.0": "good", "0.27.0": "mixed"}),
        make_row(
            "2", toolchain="iree", cells={"3.8.0": "other-failure", "3.9.0": "timeout", "3.13.0": "unavailable"}
        ),
    )
    changes = (Change(id="1", before="confirmed", after="fixed", why="new release"),)
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    return render_dashboard("octo/compiler", rows, changes, (), SUMMARY, load_catalogue(), now=now)


def show_times() -> str:
    """Return a page with the chart of the runs' times, unfolded: axe skips what is folded."""
    return render_page(replace(reports.regression(), times=TIMES)).replace("<details>", "<details open>")


def show_page(make: Callable[[], Report]) -> str:
    return render_page(make())


PAGES: dict[str, Callable[[], str]] = {
    **{name: partial(show_page, make) for name, make in reports.ALL.items()},
    "dashboard": show_dashboard,
    "times": show_times,
}


@pytest.mark.contract
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(name: str, size: str, axe: str, tmp_path: Path) -> None:
    """On a page of each shape, wide and narrow. The page's policy is left out: it would refuse axe, as any script."""
    page = _POLICY.sub("", PAGES[name]())
    safe = axe.replace("</script", "<\\/script")
    scripts = f"<script>{safe}</script><script>{_RUN}</script></body>"
    document = load_page(page.replace("</body>", scripts), tmp_path, SIZES[size])
    found = re.search(r'<pre id="found">(.*?)</pre>', document, re.DOTALL)
    assert found is not None, document[-500:]
    assert json.loads(found[1]) == []
